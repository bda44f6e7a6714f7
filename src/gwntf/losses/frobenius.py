"""The least-squares loss 1/2 |X - X^|^2 of NMF, GNMF, NCP and GNCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from gwntf.core import Array
from gwntf.backends import Backend
from gwntf.geometry import SampleGraph, SampleTies
from gwntf.data import ChunkedTensor, DataTensor, NonnegativeTensor, SparseTensor
from gwntf.losses.chunked import ChunkedUnfoldings
from gwntf.losses.dense import DenseUnfoldings, Sums, sums_of
from gwntf.losses.protocol import Evaluation
from gwntf.losses.sparse import SparseUnfoldings
from gwntf.updates import gram_of, least_squares_factor, other_grams, unit_columns


@dataclass(frozen=True)
class Frobenius:
    """1/2 |X - X^|^2, over the observed entries."""

    def place(self, backend: Backend, tensor: DataTensor) -> FrobeniusLoss:
        """Bring the data to the backend."""
        return FrobeniusLoss(backend, tensor)

    def for_new_samples(self) -> Self:
        """Return itself: its samples are not tied to each other."""
        return self


class Unfoldings(Protocol):
    """Products of the data with the factors."""

    def half_squares(self) -> Array:
        """1/2 |x|^2 of every sample."""
        ...

    def begin(self, first: Array) -> Array:
        """Return what the products of all modes but the samples have in common."""
        ...

    def product(self, begun: Array, factors: Sequence[Array], mode: int) -> Array:
        """X_(n) A(-n) for one n but the first."""
        ...

    def sample_product(self, factors: Sequence[Array]) -> Array:
        """X_(1) A(-1)."""
        ...

    def step(self, factors: Sequence[Array], grams: Array, graph: SampleGraph | None) -> tuple[Array, Sums]:
        """Move the samples, given G; return the new A(1), and the sums with it; nothing is missing."""
        ...


class FrobeniusLoss:
    """`Frobenius` placed.

    Without missing entries the model is never formed: |x - x^|^2 = |x|^2 - 2 <a, X_(1) A(-1)> + a G a', and the
    product is the one that the sample update uses, so both come from one reading. Where entries are missing, the
    target of a step is the data with the present model filled in there (the E step of an EM), block by block, and the
    value counts observed entries only.
    """

    def __init__(self, backend: Backend, tensor: DataTensor) -> None:
        self.backend, self.shape = backend, tensor.shape
        self.resident = not isinstance(tensor, ChunkedTensor)
        self._holed: DenseUnfoldings | ChunkedUnfoldings | None = None
        if isinstance(tensor, SparseTensor):
            self._data: Unfoldings = SparseUnfoldings(backend, tensor)
        else:
            dense = _unfoldings(backend, tensor)
            self._data, self._holed = dense, dense if dense.holed else None
        self.sample_scales = self._data.half_squares()
        self._size = float(self.sample_scales.sum())
        self.kept: Sequence[Array] = ()
        self.kernels = (None,) * len(self.shape)
        self._held: tuple[list[Array], Array] | None = None
        self._ahead: tuple[list[Array], Sums, list[Array]] | None = None

    def forget(self) -> None:
        """Drop the products of the last step."""
        self._held = self._ahead = None

    def evaluate(self, factors: Sequence[Array]) -> Evaluation:
        """Return 1/2 |X - X^|^2, with X_(1)' A(1) and A(n)' A(n) for every n.

        Where entries are missing, X_(1)' A(1) is that of the filled data.
        """
        xp = self.backend.xp
        if self._holed is not None:
            by_sample, _, others = self._holed.filled(factors)
            return Evaluation(self.kernels, xp.sum(by_sample), (others, *self._grams(factors)))
        sums, rest = self._found(factors)
        value = self._size + 0.5 * xp.sum(sums.gram * other_grams([sums.gram, *rest], 0)) - sums.cross
        at_least = xp.maximum(value, xp.zeros_like(value))
        return Evaluation(self.kernels, at_least, (sums.begun, sums.gram, *rest))

    def advance(
        self, factors: Sequence[Array], carried: tuple[Array, ...], graph: SampleGraph | None
    ) -> list[Array]:
        """Update the factors in turn, samples last, by the classic ratio: an MM step for this loss."""
        moved, (begun, *grams) = list(factors), carried
        for mode in range(1, len(factors)):
            product = self._data.product(begun, moved, mode)
            others = other_grams(grams, mode)
            moved[mode] = least_squares_factor(self.backend, moved[mode], product, others, None)
            grams[mode] = gram_of(self.backend, moved[mode])
        if self._holed is None:
            moved[0], sums = self._data.step(moved, other_grams(grams, 0), graph)
            self._held, self._ahead = None, (moved, sums, grams[1:])
        else:
            moved[0] = self.moved_samples(moved, graph)
        return moved

    def moved_samples(self, factors: Sequence[Array], graph: SampleGraph | None) -> Array:
        """Return the next sample factor, the others having been updated."""
        product, grams = self._sample_product(factors), other_grams(self._grams(factors), 0)
        return least_squares_factor(self.backend, factors[0], product, grams, graph)

    def finish(self, factors: Sequence[Array]) -> list[Array]:
        """Scale the columns of all but the sample factor to length one, once, as the authors of GNMF do."""
        return unit_columns(self.backend, factors)

    def refine(self) -> bool:
        """Return False: it is exact."""
        return False

    def state(self) -> dict[str, Any]:
        """Nothing: what the next step needs is carried."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Do nothing."""

    @property
    def exactness(self) -> int:
        """Always the same."""
        return 0

    def sample_step(self, factors: Sequence[Array], ties: SampleTies | None) -> tuple[Array, Array]:
        """Update the samples by themselves."""
        if self._holed is None:
            by_sample, product = self._values(factors), self._sample_product(factors)
        else:
            by_sample, product, _ = self._holed.filled(factors)
        grams = other_grams(self._grams(factors), 0)
        return least_squares_factor(self.backend, factors[0], product, grams, ties), by_sample

    def _found(self, factors: Sequence[Array]) -> tuple[Sums, list[Array]]:
        """Return sums over the samples, and the Gram matrices of all other factors.

        They are what the last step has found on its way, if these are the factors it led to.
        """
        if self._ahead is not None and _same(self._ahead[0], factors):
            return self._ahead[1:]
        first, *rest = factors
        product, begun = self._sample_product(factors), self._data.begin(first)
        return sums_of(self.backend, first, product, begun), self._grams(rest)

    def _grams(self, factors: Sequence[Array]) -> list[Array]:
        return [gram_of(self.backend, factor) for factor in factors]

    def _values(self, factors: Sequence[Array]) -> Array:
        """1/2 |x - x^|^2 of every sample from Gram matrices, in float64; nothing is missing."""
        xp = self.backend.xp
        a = xp.astype(factors[0], xp.float64, copy=False)
        cross = xp.astype(self._sample_product(factors), xp.float64, copy=False)
        grams = other_grams(self._grams(factors), 0)
        values = self.sample_scales + xp.sum(a * (0.5 * (a @ grams) - cross), axis=1)
        return xp.maximum(values, xp.zeros_like(values))

    def _sample_product(self, factors: Sequence[Array]) -> Array:
        """X_(1) A(-1); while nothing is missing it is kept from the last step until the other factors change."""
        if self._holed is not None:
            return self._holed.filled(factors)[1]
        rest = list(factors[1:])
        if self._held is None or not _same(self._held[0], rest):
            self._held = (rest, self._data.sample_product(factors))
        return self._held[1]


def _same(some: Sequence[Array], others: Sequence[Array]) -> bool:
    """Whether these are the very same arrays."""
    return all(a is b for a, b in zip(some, others, strict=True))


def _unfoldings(
    backend: Backend, tensor: NonnegativeTensor | ChunkedTensor
) -> DenseUnfoldings | ChunkedUnfoldings:
    """Return products with data of which every entry is held somewhere."""
    if isinstance(tensor, ChunkedTensor):
        return ChunkedUnfoldings(backend, tensor)
    return DenseUnfoldings(backend, tensor)
