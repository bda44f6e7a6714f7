"""The Wasserstein loss: transport on some modes, or KL where no mode is transported."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from gwntf.core import Array, InputError, Relaxation
from gwntf.backends import Backend
from gwntf.geometry import Cost, Kernel, SampleGraph, SampleTies, build_kernel
from gwntf.data import ChunkedTensor, DataTensor, SparseTensor
from gwntf.losses.chunked import ChunkedPass
from gwntf.losses.protocol import Evaluation
from gwntf.losses.sparse import SparsePass
from gwntf.losses.sweep import DensePass, Sweep, Swept, WarmStarts
from gwntf.transport import TransportLimits
from gwntf.updates import RULES, other_masses, printed_factor, simplex_step, tied_root

UPDATES = (*RULES, "paper")

_FEW = 2


@dataclass(frozen=True)
class Wasserstein:
    """sum_n sum_fibers W(x, x^) over the transported modes, or KL(X | X^) if there is none.

    Attributes
    ----------
    costs : tuple of cost or None
        One per axis; None leaves that mode out.
    relaxation : Relaxation
        lam, alpha, beta.
    limits : TransportLimits
        Accuracy of the transports.
    adaptive : bool
        Whether a fit begins with two scalings a transport and doubles them, up to the limit, as F settles.
    update : {"mm", "multiplicative", "paper"}
        Factor rule; "mm" never raises F.
    inner_iter : int
        Steps of the sample factor per transport step.
    warm_limit : float
        Bytes that the scalings kept from one transport to the next may take; above it every transport starts cold.
    """

    costs: tuple[Cost | None, ...]
    relaxation: Relaxation
    limits: TransportLimits
    update: str = "mm"
    inner_iter: int = 1
    warm_limit: float = math.inf
    adaptive: bool = False

    def __post_init__(self) -> None:
        if self.relaxation.psi == 1.0 and any(cost is not None for cost in self.costs):
            allowed = "a finite positive number: an exact model marginal would freeze the factors"
            raise InputError("reg_m_model", repr(self.relaxation.reg_m_model), allowed)

    def place(self, backend: Backend, tensor: DataTensor) -> TransportLoss:
        """Build the kernels on the backend."""
        return TransportLoss(self, backend, tensor, self.kernels(backend, tensor.dtype))

    def kernels(self, backend: Backend, dtype: Any) -> tuple[Kernel | None, ...]:
        """Build one kernel for each cost."""
        reg = self.relaxation.reg
        return tuple(None if cost is None else build_kernel(cost, reg, backend, dtype) for cost in self.costs)

    @property
    def transported(self) -> tuple[int, ...]:
        """Modes with a transport term."""
        return tuple(mode for mode, cost in enumerate(self.costs) if cost is not None)

    @property
    def weight(self) -> float:
        """b: beta times the number of transported modes; 1 for the KL loss."""
        return self.relaxation.reg_m_model * len(self.transported) if self.transported else 1.0

    def scalings(self, before: int | None) -> int:
        """Scalings of a transport at the start of a fit, or where so many before were too few."""
        most = self.limits.max_iter
        if not self.adaptive:
            return most
        return min(_FEW if before is None else 2 * before, most)

    def for_new_samples(self) -> Wasserstein:
        """Leave the sample mode out."""
        return replace(self, costs=(None, *self.costs[1:]))


class Pass(Protocol):
    """How the data go by: dense, sparse or chunked."""

    def scaling_bytes(self, modes: Sequence[int]) -> int:
        """Bytes of the scalings along some modes."""
        ...

    def __call__(self, sweep: Sweep, factors: Sequence[Array]) -> Swept:
        """Compare the data with the model of these factors."""
        ...

    def product(self, products: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        """Return (Psi_bar / X^)_(n) A(-n) for one n, from what a pass found."""
        ...


def _pass(backend: Backend, tensor: DataTensor) -> Pass:
    """Return the pass for these data."""
    if isinstance(tensor, SparseTensor):
        return SparsePass(backend, tensor)
    return ChunkedPass(backend, tensor) if isinstance(tensor, ChunkedTensor) else DensePass(backend, tensor)


class TransportLoss:
    """`Wasserstein` placed; holds V of the last sweep of each mode, from which the next one starts."""

    def __init__(
        self,
        spec: Wasserstein,
        backend: Backend,
        tensor: DataTensor,
        kernels: Sequence[Kernel | None],
    ) -> None:
        self.spec, self.backend, self.kernels = spec, backend, tuple(kernels)
        self.shape = tensor.shape
        self.resident = not isinstance(tensor, ChunkedTensor)
        self._pass = _pass(backend, tensor)
        self.sample_scales = backend.asarray(tensor.sample_sums)
        self._scalings = spec.limits.max_iter
        self._warm = WarmStarts(backend, self._pass.scaling_bytes(self.transported) <= spec.warm_limit)

    @property
    def transported(self) -> tuple[int, ...]:
        """Modes with a transport term."""
        return self.spec.transported

    def forget(self) -> None:
        """Drop the warm starts, and begin with few scalings where they adapt."""
        self._warm.clear()
        self._scalings = self.spec.scalings(None)

    def evaluate(self, factors: Sequence[Array]) -> Evaluation:
        """Solve the transports at these factors; return their value, and the sweep for the factor step."""
        swept = self._sweep(factors, self.transported)
        misfit = 0.0 if self.transported else self.backend.xp.sum(swept.by_sample)
        modes = tuple(swept.terms.get(mode) for mode in range(len(self.kernels)))
        return Evaluation(modes, misfit, swept.products)

    def advance(
        self, factors: Sequence[Array], carried: tuple[Array, ...], graph: SampleGraph | None
    ) -> list[Array]:
        """One factor step by the rule of the specification."""
        if self.spec.update == "paper":
            return self._printed_step(factors, graph)
        products = [self._pass.product(carried, factors, mode) for mode in range(len(factors))]
        rule = RULES[self.spec.update]
        return simplex_step(
            self.backend, factors, products, self.spec.weight, graph, rule, self.spec.inner_iter
        )

    def finish(self, factors: Sequence[Array]) -> list[Array]:
        """Leave them: the rules keep the scale (the printed one has none to keep)."""
        return list(factors)

    def refine(self) -> bool:
        """Double the scalings of a transport, up to the limit."""
        more = self.spec.scalings(self._scalings)
        grown, self._scalings = more > self._scalings, more
        return grown

    @property
    def kept(self) -> Sequence[Array]:
        """Warm starts."""
        return self._warm.arrays

    def state(self) -> dict[str, Any]:
        """Scalings of a transport, and warm starts."""
        return {"scalings": self._scalings, "warm": self._warm.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Have so many scalings and these warm starts."""
        self._scalings = int(state["scalings"])
        self._warm.restore(state["warm"])

    @property
    def exactness(self) -> int:
        """Scalings of a transport."""
        return self._scalings

    def sample_step(self, factors: Sequence[Array], ties: SampleTies | None) -> tuple[Array, Array]:
        """Take the numerator w_N of the samples, divided by the mass of the components; with ties, the root."""
        swept = self._sweep(factors, self.transported)
        w = factors[0] * self._pass.product(swept.products, factors, 0)
        masses = other_masses(self.backend, factors, 0)
        moved = w / masses if ties is None else tied_root(self.backend, w, self.spec.weight, masses, ties)
        return moved, swept.by_sample

    def _printed_step(self, factors: Sequence[Array], graph: SampleGraph | None) -> list[Array]:
        """Algorithm 1 as printed: factors in turn, each from the transport of its own mode, samples last."""
        moved = list(factors)
        beta = self.spec.relaxation.reg_m_model if self.transported else 1.0
        for mode in [*range(1, len(factors)), 0]:
            products = self._sweep(moved, (mode,) if mode in self.transported else ()).products
            product = self._pass.product(products, moved, mode)
            moved[mode] = printed_factor(self.backend, moved, product, mode, beta, graph)
        return moved

    def _sweep(self, factors: Sequence[Array], modes: tuple[int, ...]) -> Swept:
        spec = self.spec
        limits = replace(spec.limits, max_iter=self._scalings)
        sweep = Sweep(self.backend, self.kernels, spec.relaxation, limits, self._warm, modes)
        return self._pass(sweep, factors)
