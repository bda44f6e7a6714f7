"""The transport loss: entropic transport with relaxed marginals along some modes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import methodcaller
from typing import Any

from gwntf.backends import Backend
from gwntf.core import Array, InputError, Relaxation
from gwntf.data import Block, Blocks, BlockState, DataTensor, PerBlock, Sums, SweepResult, Tile, TileResult
from gwntf.data.columns import ColumnBlock
from gwntf.geometry import Cost, Kernel, build_kernel
from gwntf.losses.base import FitState, ObjectiveTerms, PlanTerms
from gwntf.losses.entrywise import KullbackLeibler
from gwntf.losses.simplex import SimplexLoss, column_masses, zero_mass
from gwntf.losses.warm import WarmStarts
from gwntf.transport import TransportLimits, positive, transport_mode

_FEW, _FEW_PLAIN = 12, 2
"""Scalings of the first transports of an adaptive loss, also for the scheme of the papers."""

_INNER_STEPS = 10
"""Updates of new samples with the same Psi_bar."""


class _Kernels:
    """Kernels of a loss, built in each process when first needed and never sent to workers."""

    def __init__(self, costs: tuple[Cost | None, ...], reg: float) -> None:
        self._costs, self._reg = costs, reg
        self._built: dict[int, Kernel] = {}

    def __reduce__(self) -> Any:
        return _Kernels, (self._costs, self._reg)

    def on(self, mode: int, backend: Backend, dtype: Any) -> Kernel:
        """Return the kernel of a mode; within a process, backend and number type must not change."""
        cost = self._costs[mode]
        if mode not in self._built and cost is not None:
            self._built[mode] = build_kernel(cost, self._reg, backend, dtype)
        return self._built[mode]


@dataclass(frozen=True, eq=False, kw_only=True)
class TransportLoss(SimplexLoss):
    """sum_n sum_fibers W(x, x^) over the transported modes; see `transport_loss`."""

    costs: tuple[Cost | None, ...]  # One per axis, not all None; None leaves the mode out
    relaxation: Relaxation  # lam, alpha, beta
    limits: TransportLimits  # Accuracy of the transports
    warm_limit: float = math.inf  # Memory in bytes for warm starts; if they need more, every transport starts cold
    # Whether a fit starts with few scalings per transport and doubles them, up to the limit, as F converges
    adaptive: bool = False
    warm: bool = True  # Whether warm starts are kept
    reuse: bool = False  # Whether Psi_bar is kept, for several updates of new samples per transport
    complete: bool = False  # Whether every entry was observed; false before `prepared`
    kernels: _Kernels = field(init=False)

    def __post_init__(self) -> None:
        if self.transported and self.relaxation.psi == 1.0:
            allowed = "a finite positive number"  # an exact model marginal would never change the factors
            raise InputError("reg_m", f"{self.relaxation.reg_m_model!r} for the model", allowed)
        object.__setattr__(self, "kernels", _Kernels(self.costs, self.relaxation.reg))

    def prepared(self, data: DataTensor) -> TransportLoss:
        """Return the loss that keeps what fits into memory: warm starts first, which save more time than Psi_bar."""
        found = replace(self, complete=data.complete)
        choices = (found, replace(found, reuse=False), replace(found, warm=False))
        return next(
            (loss for loss in choices if loss.state_bytes(data) <= self.warm_limit), replace(choices[1], warm=False)
        )

    def state_bytes(self, data: DataTensor) -> int:
        """Return the size in bytes of the warm starts along all modes and of Psi_bar."""
        if not data.sparse:
            along_samples = 0 in self.transported
            targets = along_samples + (len(self.transported) > along_samples)
            copies = self.warm * len(self.transported) + self.reuse * targets
            return copies * math.prod(data.shape) * data.dtype.itemsize
        counts = ((mode, sum(data.blocks.map(methodcaller("fiber_count", mode)))) for mode in self.transported)
        entries = sum(count * data.shape[mode] for mode, count in counts)
        return int((self.warm + self.reuse) * entries * data.dtype.itemsize)

    @property
    def inner_steps(self) -> int:
        return _INNER_STEPS if self.reuse else 1

    def for_start(self) -> SimplexLoss | None:
        """Return KL with the same weight of the data term."""
        return None if self.plain else KullbackLeibler(weight=self.weight, held=self.held)

    def for_new_samples(self) -> SimplexLoss:
        loss = replace(self, costs=(None, *self.costs[1:]), reuse=self.plain is None)
        return loss if loss.transported else loss._kl()

    def _kl(self) -> KullbackLeibler:
        return KullbackLeibler(plain=self.plain, held=self.held)

    @property
    def transported(self) -> tuple[int, ...]:
        return tuple(mode for mode, cost in enumerate(self.costs) if cost is not None)

    @property
    def weight(self) -> float:
        return self.relaxation.reg_m_model * len(self.transported)

    @property
    def mass_curvature(self) -> float:
        """(alpha + reg) / (alpha + beta + reg), for the modes other than the samples."""
        own = sum(mode > 0 for mode in self.transported) / len(self.transported)
        return own * self.relaxation.mass_curvature

    @property
    def first_effort(self) -> int:
        return min(_FEW_PLAIN if self.plain else _FEW, self.last_effort) if self.adaptive else self.last_effort

    @property
    def last_effort(self) -> int:
        return self.limits.max_iter

    def first(self, blocks: Blocks, at: FitState) -> FitState:
        """Solve the first transports, which start cold, with the highest effort."""
        if self.plain:
            return super().first(blocks, at)
        return super().first(blocks, at._replace(effort=self.last_effort))._replace(effort=at.effort)

    def refined(self, effort: int) -> int | None:
        return min(2 * effort, self.last_effort) if effort < self.last_effort else None

    # --- methods of one block, run where it is stored ---

    def compare(
        self, block: Block, a: Array, rest: Sequence[Array], state: Any, effort: int, /
    ) -> tuple[SweepResult, Any]:
        """Transport a block of samples along all transported modes but the samples' own."""
        count, own = len(self.transported), tuple(mode for mode in self.transported if mode)
        if not own:
            return self._nothing(block, a, rest), state
        state = self._state(block.backend, state)
        kernels = {mode: self.kernels.on(mode, block.backend, block.dtype) for mode in own}
        look = partial(self._look, kernels, state, effort, 1 / count, len(own) / count)
        swept = block.sweep(look, a, rest, own)
        if swept.mass is not None:
            missed = self.relaxation.reg_m_model * zero_mass(block, swept, a, rest)
            for index in range(len(own)):
                swept.costs[3 * index + 2] += missed[index]
        return swept, state

    def _look(
        self,
        kernels: Mapping[int, Kernel],
        state: WarmStarts | None,
        effort: int,
        share: float,
        part: float,
        tile: Tile,
    ) -> TileResult:
        """Transport a tile of the data to the model; see `data.block.CompareTile`.

        `share` is the weight of the Psi of one mode in Psi_bar, and `part` the sum of these weights over the modes of
        this pass, which is the ratio at missing entries.
        """
        start, x, y, mask, axes, backend = tile
        xp = backend.xp
        seen = y if mask is None else y * mask
        target = xp.zeros_like(x) if state is None or not self.reuse else state.target(axes, start, x)
        target[...] = 0
        limits = replace(self.limits, max_iter=effort)
        costs, starts = [], {}
        for mode, axis in axes.items():
            log_u, warm = (None, False) if state is None or not self.warm else state.of(mode, start, x)
            terms = transport_mode(
                backend,
                kernels[mode],
                x,
                seen,
                axis,
                self.relaxation,
                limits,
                marginal=target,
                share=share,
                log_u=log_u,
                warm=warm,
            )
            if axis > 1:  # several fibers along this axis have the same index on the first one
                terms = xp.sum(terms.reshape(3, x.shape[0], -1), axis=2)
            costs.append(terms)
            starts[mode] = log_u

        def done() -> None:
            for mode, log_u in starts.items():
                if state is not None and log_u is not None:
                    state.keep(mode, start, log_u)
            if state is not None and self.reuse:
                state.keep_target(axes, start, target)

        return TileResult((_ratio(xp, target, seen, mask, part),), xp.concat(costs), done)

    def compare_target(self, block: Block, a: Array, rest: Sequence[Array], state: Any) -> SweepResult:
        count, own = len(self.transported), tuple(mode for mode in self.transported if mode)
        if not own:
            return self._nothing(block, a, rest)
        return block.sweep(partial(_look_at_target, state, len(own) / count), a, rest, own, sums=False)

    def _state(self, backend: Backend, state: Any, across: bool = False) -> WarmStarts | None:
        """Return the warm starts of a block (empty before its first transport), or None if none are kept."""
        return (WarmStarts(backend, across) if state is None else state) if self.warm or self.reuse else None

    def _nothing(self, block: Block, a: Array, rest: Sequence[Array]) -> SweepResult:
        xp = block.backend.xp
        ratio = Sums({mode: xp.zeros_like(factor) for mode, factor in enumerate(rest, start=1)})
        if not block.sparse:
            size = math.prod(factor.shape[0] for factor in rest)
            ratio = Sums({0: block.backend.zeros((size, a.shape[1]), a)})
        return SweepResult(xp.zeros_like(a[:, :0], dtype=xp.float64).T, [xp.zeros_like(a)], [ratio])

    def visit_columns(
        self, columns: ColumnBlock, rest: Sequence[Array], state: Any, a: Array, *, effort: int
    ) -> tuple[Any, Sums, Array]:
        """Transport columns along the samples."""
        share = 1 / len(self.transported)
        xp, a = columns.backend.xp, columns.backend.asarray(a)
        state = self._state(columns.backend, state, across=not columns.sparse)
        kernels = {0: self.kernels.on(0, columns.backend, columns.backend.dtype(a))}
        look = partial(self._look, kernels, state, effort, share, share)
        swept = columns.sweep_samples_axis(look, a, rest)
        mass = swept.mass[:, 0] if swept.mass is not None else xp.zeros_like(swept.costs[:0, 0])
        return state, Sums(across=swept.costs[:, 0], product=swept.sums[0], mass=mass), swept.rows[0]

    def add_product(self, backend: Backend, kept: BlockState, product: Array) -> tuple[BlockState, None]:
        """Add the result of the transport along the samples to the numerator of the rows."""
        return kept._replace(own=kept.own + kept.rows * backend.asarray(product)), None

    # --- methods of all blocks, run in the process of the fit ---

    def evaluated(
        self, blocks: Blocks, at: FitState, function: Callable[..., Any], *parts: PerBlock, **options: Any
    ) -> FitState:
        found = super().evaluated(blocks, at, function, *parts, **options)
        if 0 not in self.transported:
            return found
        columns, sums, products = blocks.run_columns(
            self.visit_columns, at.rest, at.columns, found.kept, effort=at.effort
        )
        kept, _ = blocks.apply(self.add_product, found.kept, products)
        rows, across = blocks.collect(found.sums, sums)
        rows["product"] = rows["product"] + across["product"]
        rows["across"] = across["across"]
        if across["mass"].shape[0]:
            masses = rows["masses"] * column_masses(blocks.backend.xp, at.rest)
            rows["across"][2] += self.relaxation.reg_m_model * max(0.0, float(masses.sum() - across["mass"][0]))
        return found._replace(kept=kept, sums=rows, columns=columns)

    def numbers(self, blocks: Blocks, at: FitState, size: float) -> Array:  # noqa: ARG002
        found = at.sums["rows"]
        return blocks.backend.xp.concat([at.sums["across"], found]) if "across" in at.sums else found

    def terms(self, numbers: Sequence[float], graph: float, order: int) -> ObjectiveTerms:
        triples = dict(zip(self.transported, zip(*[iter(numbers)] * 3, strict=True), strict=True))
        modes = tuple(PlanTerms(*triples[mode]) if mode in triples else None for mode in range(order))
        return ObjectiveTerms(modes, 0.0, graph)

    def kernels_on(self, blocks: Blocks, dtype: Any) -> list[Kernel]:
        return [self.kernels.on(mode, blocks.backend, dtype) for mode in self.transported]


def _look_at_target(state: WarmStarts, part: float, tile: Tile) -> TileResult:
    """Compare the Psi_bar of the last transport of a tile with the model; `part` is the ratio at missing entries."""
    start, _, y, mask, axes, backend = tile
    xp, target = backend.xp, state.target(axes, start, y)
    ratio = _ratio(xp, target, y if mask is None else y * mask, mask, part)
    return TileResult((ratio,), xp.astype(backend.zeros((1, y.shape[0]), y), xp.float64))


def _ratio(xp: Any, target: Array, y: Array, mask: Array | None, part: float) -> Array:
    ratio = target / positive(xp, y)
    return ratio if mask is None else xp.where(mask, ratio, xp.full_like(ratio, part))


def transport_loss(
    costs: tuple[Cost | None, ...], relaxation: Relaxation, limits: TransportLimits, **options: Any
) -> SimplexLoss:
    """Return the transport loss, or KL(X | X^) if no mode has a cost; see `TransportLoss` for the parameters."""
    loss = TransportLoss(costs=costs, relaxation=relaxation, limits=limits, **options)
    return loss if loss.transported else loss._kl()
