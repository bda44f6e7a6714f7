"""Losses that are sums over entries, from three functions of an entry: where to begin with a loss of one's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, ClassVar, Self

from gwntf.core import Array, InputError
from gwntf.backends import Backend
from gwntf.geometry import SampleGraph, SampleTies
from gwntf.data import (
    DataTensor,
    NonnegativeTensor,
    SparseTensor,
    khatri_rao,
    other_mode_product,
    sample_blocks,
)
from gwntf.losses.protocol import Evaluation, Loss
from gwntf.updates import unit_columns

EntryFunction = Callable[[Any, Array, Array], Array]


class Entrywise(ABC):
    """sum of d(x, x^) over the observed entries, by multiplicative updates.

    With d' = repulsion - attraction, both nonnegative, the factors are updated in turn, samples last:

        A(n) <- A(n) * ((attraction_(n) A(-n) [+ mu V A]) / (repulsion_(n) A(-n) [+ mu D A])) ** power

    A `power` at which this is an MM step makes the data term fall; beside a graph there is no guarantee. Data may
    have missing entries and any order, on any backend of this machine, but may be neither sparse nor chunked.
    """

    power: ClassVar[float] = 1.0

    @abstractmethod
    def value(self, xp: Any, x: Array, model: Array) -> Array:
        """d(x, x^) of every entry; x^ is positive."""

    @abstractmethod
    def attraction(self, xp: Any, x: Array, model: Array) -> Array:
        """Return the part of -d d/d x^ that is not negative."""

    @abstractmethod
    def repulsion(self, xp: Any, x: Array, model: Array) -> Array:
        """Return the part of d d/d x^ that is not negative."""

    def place(self, backend: Backend, tensor: DataTensor) -> Loss:
        """Bring the data to the backend."""
        if not isinstance(tensor, NonnegativeTensor):
            kind = "sparse" if isinstance(tensor, SparseTensor) else "chunked"
            raise InputError("X", f"a {kind} array under {type(self).__name__}", "a dense array in memory")
        return EntrywiseLoss(self, backend, tensor)

    def for_new_samples(self) -> Self:
        """Return itself: its samples are not tied to each other."""
        return self


class EntrywiseLoss:
    """An `Entrywise` loss placed; the model is formed a block of samples at a time."""

    exactness = 0
    resident = True
    kept: Sequence[Array] = ()

    def __init__(self, spec: Entrywise, backend: Backend, tensor: Any) -> None:
        self.backend, self.shape, self._spec = backend, tensor.shape, spec
        self.kernels = (None,) * len(self.shape)
        self._rows = backend.asarray(tensor.rows)
        observed = None if tensor.observed is None else backend.asarray(tensor.observed)
        self._observed = None if observed is None else observed.reshape(*self._rows.shape)
        self.sample_scales = self._sizes()

    def forget(self) -> None:
        """Nothing is kept."""

    def refine(self) -> bool:
        """Return False: it is exact."""
        return False

    def state(self) -> dict[str, Any]:
        """Nothing is kept."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Do nothing."""

    def evaluate(self, factors: Sequence[Array]) -> Evaluation:
        """Return the sum over all entries."""
        return Evaluation(self.kernels, self.backend.xp.sum(self._values(factors)), ())

    def advance(
        self,
        factors: Sequence[Array],
        carried: tuple[Array, ...],  # noqa: ARG002
        graph: SampleGraph | None,
    ) -> list[Array]:
        """Update the factors in turn, samples last."""
        moved = list(factors)
        for mode in [*range(1, len(factors)), 0]:
            up, down = self._products(moved, mode)
            if mode == 0 and graph is not None:
                up = up + graph.weight * (graph.matrix @ moved[0])
                down = down + graph.weight * graph.degree * moved[0]
            moved[mode] = self._moved(moved[mode], up, down)
        return moved

    def finish(self, factors: Sequence[Array]) -> list[Array]:
        """Scale the columns of all but the sample factor to length one."""
        return unit_columns(self.backend, factors)

    def sample_step(self, factors: Sequence[Array], ties: SampleTies | None) -> tuple[Array, Array]:
        """Update the samples by themselves."""
        up, down = self._products(factors, 0)
        if ties is not None:
            up, down = up + ties.weight * ties.pull, down + ties.weight * ties.degree * factors[0]
        return self._moved(factors[0], up, down), self._values(factors)

    def _moved(self, a: Array, up: Array, down: Array) -> Array:
        return a * (up / self._positive(down)) ** self._spec.power

    def _positive(self, values: Array) -> Array:
        return self.backend.xp.clip(values, float(self.backend.xp.finfo(values.dtype).smallest_normal), None)

    def _products(self, factors: Sequence[Array], mode: int) -> tuple[Array, Array]:
        """(attraction_(n) A(-n), repulsion_(n) A(-n))."""
        xp, first, other = self.backend.xp, factors[0], khatri_rao(factors[1:])

        def visit(rows: slice) -> list[Array]:
            model = first[rows] @ other.T
            parts = [self._of_entries(f, rows, model) for f in (self._spec.attraction, self._spec.repulsion)]
            return [part @ other if mode == 0 else part.T @ first[rows] for part in parts]

        found = list(zip(*self.backend.map(visit, self._blocks()), strict=True))
        if mode == 0:
            up, down = (xp.concat(list(part)) for part in found)
        else:
            up, down = (other_mode_product(reduce(add, part), factors, mode) for part in found)
        return up, down

    def _values(self, factors: Sequence[Array]) -> Array:
        """Return the sum over the entries of every sample, in float64."""
        other = khatri_rao(factors[1:])
        return self._summed(lambda rows: factors[0][rows] @ other.T)

    def _sizes(self) -> Array:
        """Return the loss of every sample against its own mean: the unit of small changes."""
        xp = self.backend.xp

        def mean(rows: slice) -> Array:
            return xp.mean(self._rows[rows], axis=1, keepdims=True) + xp.zeros_like(self._rows[rows])

        return self._summed(mean)

    def _summed(self, model_of: Callable[[slice], Array]) -> Array:
        xp = self.backend.xp

        def visit(rows: slice) -> Array:
            return xp.sum(self._of_entries(self._spec.value, rows, model_of(rows)), axis=1, dtype=xp.float64)

        return xp.concat(self.backend.map(visit, self._blocks()))

    def _of_entries(self, function: EntryFunction, rows: slice, model: Array) -> Array:
        """Apply a function to entries, zero where nothing was observed."""
        xp = self.backend.xp
        found = function(xp, self._rows[rows], self._positive(model))
        return (
            found if self._observed is None else xp.where(self._observed[rows], found, xp.zeros_like(found))
        )

    def _blocks(self) -> Any:
        return sample_blocks(self._rows.shape, self.backend.block_entries)
