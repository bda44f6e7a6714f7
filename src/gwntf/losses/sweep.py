"""One pass over the data: the transports at given factors, and what the factor step takes from them.

Everything that the factor step needs is linear in Psi / X^: the products (Psi/X^)_(1) A(-1) for the samples and
(Psi/X^)_(1)' A(1) for all other modes. So the data go by in blocks, each is compared with its part of the model, and
neither X^ nor Psi is ever there as a whole. Blocks of samples serve every mode but the samples' own, whose fibers cross
all samples: that one goes by in blocks of columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple, Protocol

from gwntf.core import Array, Relaxation
from gwntf.backends import Backend
from gwntf.geometry import Kernel
from gwntf.data import NonnegativeTensor, khatri_rao, other_mode_product
from gwntf.data.blocks import pieces, sample_blocks
from gwntf.transport import PlanTerms, TransportLimits, transport_mode
from gwntf.updates import ratio_to_model


class Products(NamedTuple):
    """What the factor step takes from dense data: R = Psi_bar / X^ times the factors.

    Attributes
    ----------
    samples : (I_1, R) array
        R_(1) A(-1).
    others : (I_2 * ... * I_N, R) array
        R_(1)' A(1), from which `other_mode_products` has the rest.
    """

    samples: Array
    others: Array


@dataclass(frozen=True)
class Swept:
    """What a sweep found.

    Attributes
    ----------
    terms : dict of int to PlanTerms
        Cost of every mode that was transported.
    by_sample : (I_1,) array or None
        W, or KL(x | x^) where no mode was transported, of every sample; None if samples are tied to each other.
    products : tuple of arrays
        For the factor step, as the pass understands them.
    """

    terms: dict[int, PlanTerms]
    by_sample: Array | None
    products: tuple[Array, ...]


class WarmStarts:
    """log U of every mode and block, kept from one sweep to the next while there is room for them.

    Attributes
    ----------
    enabled : bool
        Whether anything is kept.
    elsewhere : list of WarmStarts or None
        What blocks of data that go by one at a time keep for themselves; on a cluster, where each of them is.
    """

    def __init__(self, backend: Backend, enabled: bool) -> None:
        self._engine, self.enabled = backend, enabled
        self.elsewhere: Any = None
        self._kept: dict[tuple[int, int], Array] = {}
        self._cold: set[tuple[int, int]] = set()

    @property
    def arrays(self) -> list[Array]:
        """All that is kept."""
        return list(self._kept.values())

    @property
    def by_place(self) -> dict[tuple[int, int], Array]:
        """All that is kept, by mode and first place of the block."""
        return dict(self._kept)

    def clear(self) -> None:
        """Start cold; the arrays stay where they are."""
        self.elsewhere = None
        self._cold = set(self._kept)

    def of(self, mode: int, place: int, like: Array) -> tuple[Array | None, bool]:
        """Return the array for a block that begins at `place`, and whether it holds something."""
        if not self.enabled:
            return None, False
        kept = self._kept.get((mode, place))
        if kept is None:
            return self._engine.xp.zeros_like(like), False
        if math.prod(kept.shape) < math.prod(like.shape):  # from a fit that was shorter of memory
            return self._engine.xp.zeros_like(like), False
        if kept.shape != like.shape:
            kept = self._cut(mode, place, like)
        return kept, (mode, place) not in self._cold

    def keep(self, mode: int, place: int, log_u: Array | None) -> None:
        """Keep the array of a block, when all work on the block is done.

        Where it is not, for lack of memory, and is begun anew with a part of the block, that part starts cold again if
        the block did.
        """
        if log_u is not None:
            self._kept[mode, place] = log_u
            self._cold.discard((mode, place))

    def state(self) -> dict[str, Any]:
        """Mode, place and array of everything that is kept here, and the same of every block, for a file."""
        blocks = None if self.elsewhere is None else [block and block.state() for block in self.elsewhere]
        return {"kept": [(*key, self._kept[key]) for key in sorted(self._kept)], "blocks": blocks}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Keep what `state` has returned."""
        self._kept = {(mode, place): self._engine.asarray(array) for mode, place, array in state["kept"]}
        self._cold = set()
        blocks = state["blocks"]
        self.elsewhere = None if blocks is None else [block and self._like(block) for block in blocks]

    def _like(self, state: Mapping[str, Any]) -> WarmStarts:
        made = WarmStarts(self._engine, self.enabled)
        made.restore(state)
        return made

    def _cut(self, mode: int, place: int, like: Array) -> Array:
        """Return the first part of what is kept for a block that an backend short of memory has cut, and keep the rest.

        Blocks are along the samples, but for the samples' own mode along the columns.
        """
        kept, xp = self._kept.pop((mode, place)), self._engine.xp
        size = like.shape[0] if mode else like.shape[1]
        first, rest = (kept[:size], kept[size:]) if mode else (kept[:, :size], kept[:, size:])
        self._kept[mode, place + size] = xp.asarray(rest, copy=True)
        if (mode, place) in self._cold:
            self._cold.add((mode, place + size))
        self._kept[mode, place] = xp.asarray(first, copy=True)
        return self._kept[mode, place]


class Transported(NamedTuple):
    """Cost of a block along a mode, as a whole and along its first axis, and log U, to be kept."""

    terms: PlanTerms
    by_leading: Array
    log_u: Array | None


@dataclass(frozen=True)
class Sweep:
    """What a pass over the data is done with; `modes` are those to transport, none of them meaning KL(X | X^)."""

    backend: Backend
    kernels: Sequence[Kernel | None]
    relaxation: Relaxation
    limits: TransportLimits
    warm: WarmStarts
    modes: tuple[int, ...]

    def transport(
        self, mode: int, place: int, x: Array, y: Array, marginal: Array, *, axis: int
    ) -> Transported:
        """Transport a block along a mode, which is this axis of the block."""
        kernel = self.kernels[mode]
        if kernel is None:
            raise RuntimeError(f"mode {mode} is not transported")
        log_u, warm = self.warm.of(mode, place, x)
        result = transport_mode(
            self.backend,
            kernel,
            x,
            y,
            axis,
            self.relaxation,
            self.limits,
            marginal=marginal,
            share=1 / len(self.modes),
            log_u=log_u,
            warm=warm,
        )
        return Transported(result.terms, result.by_leading, log_u)


class DensePass:
    """A pass over all entries, for `TransportLoss`."""

    def __init__(self, backend: Backend, tensor: NonnegativeTensor) -> None:
        self._data = backend.asarray(tensor.values)
        self._observed = None if tensor.observed is None else backend.asarray(tensor.observed)
        self._bytes = int(tensor.values.nbytes)

    def scaling_bytes(self, modes: Sequence[int]) -> int:
        """Bytes of the scalings along some modes."""
        return len(modes) * self._bytes

    def __call__(self, sweep: Sweep, factors: Sequence[Array]) -> Swept:
        """Compare the data with the model of these factors."""
        first, other = factors[0], khatri_rao(factors[1:])
        parts = []
        if sweep.modes != (0,):
            parts.append(by_samples(sweep, self._data, self._observed, first, other))
        if 0 in sweep.modes:
            parts.append(by_columns(sweep, DenseColumns(self._data, self._observed), first, other))
        return joined(parts)

    def product(self, products: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        """Return (Psi_bar / X^)_(n) A(-n) for one n, from what a pass found."""
        return product_of(products, factors, mode)


def joined(parts: Sequence[Swept]) -> Swept:
    """Add up what was found by samples and by columns, whichever there is."""
    terms: dict[int, PlanTerms] = {}
    for part in parts:
        terms |= part.terms
    products = Products(*(reduce(add, arrays) for arrays in zip(*(p.products for p in parts), strict=True)))
    return Swept(terms, None if 0 in terms else parts[0].by_sample, products)


def product_of(products: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
    """Return (Psi_bar / X^)_(n) A(-n) for one n, from `Products`."""
    samples, others = products
    return other_mode_product(others, factors, mode) if mode else samples


def by_samples(sweep: Sweep, data: Array, observed: Array | None, first: Array, other: Array) -> Swept:
    """Sweep over blocks of samples for all modes but theirs."""
    backend, xp = sweep.backend, sweep.backend.xp
    modes = tuple(mode for mode in sweep.modes if mode)
    share = len(modes) / len(sweep.modes) if sweep.modes else 1.0

    def visit(rows: slice) -> Swept:
        x = data[rows]
        a = first[rows]
        with backend.quiet():
            model = (a @ other.T).reshape(*x.shape)
            mask = None if observed is None else observed[rows]
            seen = model if mask is None else model * mask
            ratio, found, by_sample = _compare(sweep, modes, rows.start, x, seen)
            ratio = _where_seen(backend, ratio, mask, share).reshape(x.shape[0], -1)
        products = Products(ratio @ other, ratio.T @ a)
        for mode, part in found.items():
            sweep.warm.keep(mode, rows.start, part.log_u)
        return Swept({mode: part.terms for mode, part in found.items()}, by_sample, products)

    blocks = backend.map(visit, sample_blocks(data.shape, backend.block_entries))
    return Swept(
        {mode: reduce(add, (block.terms[mode] for block in blocks)) for mode in modes},
        xp.concat([block.by_sample for block in blocks]),
        Products(
            xp.concat([block.products[0] for block in blocks]),
            reduce(add, (block.products[1] for block in blocks)),
        ),
    )


def _compare(
    sweep: Sweep, modes: tuple[int, ...], place: int, x: Array, seen: Array
) -> tuple[Array, dict[int, Transported], Array]:
    """Psi_bar / X^ (its part), what every mode gave and cost by sample of one block of samples."""
    xp = sweep.backend.xp
    if not modes:
        ratio, by_sample = sweep.backend.ratio_and_kl(*(part.reshape(part.shape[0], -1) for part in (x, seen)))
        return ratio.reshape(*x.shape), {}, by_sample
    target = xp.zeros_like(x)
    found = {mode: sweep.transport(mode, place, x, seen, target, axis=mode) for mode in modes}
    costs = (xp.sum(part.by_leading.reshape(x.shape[0], -1), axis=1) for part in found.values())
    return ratio_to_model(sweep.backend, target, seen), found, reduce(add, costs)


class Columns(Protocol):
    """X_(1), of which blocks of columns can be had."""

    def of(self, backend: Backend, columns: slice) -> tuple[Array, Array | None]:
        """Return a copy of a block of columns, zero where nothing was observed, and where something was."""
        ...

    def step(self, backend: Backend) -> int:
        """Return how many columns a block should have."""
        ...


class DenseColumns:
    """Columns of data that are on the backend."""

    def __init__(self, data: Array, observed: Array | None) -> None:
        self._rows = data.reshape(data.shape[0], -1)
        self._masks = None if observed is None else observed.reshape(*self._rows.shape)

    def of(self, backend: Backend, columns: slice) -> tuple[Array, Array | None]:
        """Cut them out."""
        x = backend.xp.asarray(self._rows[:, columns], copy=True)
        return x, None if self._masks is None else self._masks[:, columns]

    def step(self, backend: Backend) -> int:
        """Return what the backend likes."""
        return backend.tile_columns(self._rows.shape[0])


def by_columns(sweep: Sweep, data: Columns, first: Array, other: Array) -> Swept:
    """Sweep over blocks of columns for the mode of the samples."""
    backend, xp = sweep.backend, sweep.backend.xp

    def visit(columns: slice) -> Swept:
        x, mask = data.of(backend, columns)
        b = other[columns]
        with backend.quiet():
            model = first @ b.T
            seen = model if mask is None else model * mask
            target = xp.zeros_like(x)
            found = sweep.transport(0, columns.start, x, seen, target, axis=0)
            ratio = _where_seen(backend, ratio_to_model(backend, target, seen), mask, 1 / len(sweep.modes))
        products = Products(ratio @ b, ratio.T @ first)
        sweep.warm.keep(0, columns.start, found.log_u)
        return Swept({0: found.terms}, None, products)

    blocks = backend.map(visit, pieces(other.shape[0], data.step(backend)))
    return Swept(
        {0: reduce(add, (block.terms[0] for block in blocks))},
        None,
        Products(
            reduce(add, (block.products[0] for block in blocks)),
            xp.concat([block.products[1] for block in blocks]),
        ),
    )


def _where_seen(backend: Backend, ratio: Array, mask: Array | None, share: float) -> Array:
    """Where nothing was observed the ratio is one: here the part of it that this pass has."""
    return ratio if mask is None else backend.xp.where(mask, ratio, backend.xp.full_like(ratio, share))
