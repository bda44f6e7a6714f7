"""The least-squares loss 1/2 |X - X^|^2 of NMF, GNMF, NCP and GNCP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Protocol, Self

from gwntf.core import Array
from gwntf.engines import Engine
from gwntf.geometry import SampleGraph, SampleTies
from gwntf.problem import DataTensor, NonnegativeTensor, SparseTensor, khatri_rao, other_mode_product
from gwntf.problem.blocks import sample_blocks
from gwntf.solvers.losses.protocol import Evaluation
from gwntf.solvers.losses.sparse import SparseUnfoldings
from gwntf.updates import least_squares_factor, other_grams, unit_columns


@dataclass(frozen=True)
class Frobenius:
    """1/2 |X - X^|^2, over the observed entries."""

    def place(self, engine: Engine, tensor: DataTensor) -> FrobeniusLoss:
        """Bring the data to the engine."""
        return FrobeniusLoss(engine, tensor)

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


class DenseUnfoldings:
    """Products of dense data with the factors; where entries are missing, also of the data filled with the model."""

    def __init__(self, engine: Engine, tensor: NonnegativeTensor) -> None:
        self._engine, self._rows = engine, engine.asarray(tensor.rows)
        observed: Any = None if tensor.observed is None else engine.asarray(tensor.observed)
        self._observed = None if observed is None else observed.reshape(*self._rows.shape)

    @property
    def holed(self) -> bool:
        """Whether entries are missing."""
        return self._observed is not None

    def begin(self, first: Array) -> Array:
        """X_(1)' A(1)."""
        return self._rows.T @ first

    def product(self, begun: Array, factors: Sequence[Array], mode: int) -> Array:
        """X_(n) A(-n) for one n but the first, from X_(1)' A(1)."""
        return other_mode_product(begun, factors, mode)

    def sample_product(self, factors: Sequence[Array]) -> Array:
        """X_(1) A(-1)."""
        return self._rows @ khatri_rao(factors[1:])

    def half_squares(self) -> Array:
        """1/2 |x|^2 of every sample."""
        xp = self._engine.xp

        def visit(rows: slice) -> Array:
            block = xp.astype(self._rows[rows], xp.float64, copy=False)
            return 0.5 * xp.sum(block * block, axis=1)

        return xp.concat(self._engine.map(visit, self._blocks()))

    def _blocks(self) -> Iterator[slice]:
        return sample_blocks(self._rows.shape, self._engine.block_entries)

    def filled(self, factors: Sequence[Array]) -> tuple[Array, Array, Array]:
        """1/2 |x - x^|^2 over observed entries, and X_(1) A(-1) and X_(1)' A(1) of the data filled with the model."""
        xp, first, other = self._engine.xp, factors[0], khatri_rao(factors[1:])
        observed: Any = self._observed

        def visit(rows: slice) -> tuple[Array, Array, Array]:
            model = first[rows] @ other.T
            filled = xp.where(observed[rows], self._rows[rows], model)
            residual = filled - model
            value = 0.5 * xp.sum(residual * residual, axis=1, dtype=xp.float64)
            return value, filled @ other, filled.T @ first[rows]

        values, samples, others = zip(*self._engine.map(visit, self._blocks()), strict=True)
        return xp.concat(values), xp.concat(samples), reduce(add, others)


class FrobeniusLoss:
    """`Frobenius` placed.

    Without missing entries the model is never formed: |x - x^|^2 = |x|^2 - 2 <a, X_(1) A(-1)> + a G a', and the
    product is the one that the sample update has just used. Where entries are missing, the target of a step is the
    data with the present model filled in there (the E step of an EM), block by block, and the value counts observed
    entries only.
    """

    def __init__(self, engine: Engine, tensor: DataTensor) -> None:
        self.engine, self.shape = engine, tensor.shape
        self._data: Unfoldings = (
            SparseUnfoldings(tensor) if isinstance(tensor, SparseTensor) else DenseUnfoldings(engine, tensor)
        )
        self._holed = self._data if isinstance(self._data, DenseUnfoldings) and self._data.holed else None
        self.sample_scales = self._data.half_squares()
        self._size = float(self.sample_scales.sum())
        self.kept: Sequence[Array] = ()
        self.kernels = (None,) * len(self.shape)
        self._held: tuple[list[Array], Array] | None = None

    def forget(self) -> None:
        """Drop the product of the last step."""
        self._held = None

    def evaluate(self, factors: Sequence[Array]) -> Evaluation:
        """Return 1/2 |X - X^|^2; where entries are missing, also X_(1)' A(1) of the filled data."""
        if self._holed is None:
            return Evaluation(self.kernels, self._value(factors), ())
        by_sample, _, others = self._holed.filled(factors)
        return Evaluation(self.kernels, self.engine.xp.sum(by_sample), (others,))

    def advance(
        self, factors: Sequence[Array], carried: tuple[Array, ...], graph: SampleGraph | None
    ) -> list[Array]:
        """Update the factors in turn, samples last, by the classic ratio: an MM step for this loss."""
        moved = list(factors)
        begun = self.begun(moved, carried)
        for mode in range(1, len(factors)):
            product = self._data.product(begun, moved, mode)
            grams = other_grams(moved, mode)
            moved[mode] = least_squares_factor(self.engine, moved[mode], product, grams, None)
        moved[0] = self.moved_samples(moved, graph)
        return moved

    def begun(self, factors: Sequence[Array], carried: tuple[Array, ...]) -> Array:
        """X_(1)' A(1), of the data or of the filled data."""
        return carried[0] if carried else self._data.begin(factors[0])

    def moved_samples(self, factors: Sequence[Array], graph: SampleGraph | None) -> Array:
        """Return the next sample factor, the others having been updated."""
        product, grams = self._sample_product(factors), other_grams(factors, 0)
        return least_squares_factor(self.engine, factors[0], product, grams, graph)

    def finish(self, factors: Sequence[Array]) -> list[Array]:
        """Scale the columns of all but the sample factor to length one, once, as the authors of GNMF do."""
        return unit_columns(self.engine, factors)

    def refine(self) -> bool:
        """Return False: it is exact."""
        return False

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
        grams = other_grams(factors, 0)
        return least_squares_factor(self.engine, factors[0], product, grams, ties), by_sample

    def _value(self, factors: Sequence[Array]) -> Array:
        """1/2 |X - X^|^2 from Gram matrices; nothing is missing."""
        xp = self.engine.xp
        a = xp.astype(factors[0], xp.float64, copy=False)
        cross = xp.sum(factors[0] * self._sample_product(factors), dtype=xp.float64)
        rest = other_grams([xp.astype(factor, xp.float64, copy=False) for factor in factors], 0)
        value = self._size + 0.5 * xp.sum((a.T @ a) * rest) - cross
        return xp.maximum(value, xp.zeros_like(value))

    def _values(self, factors: Sequence[Array]) -> Array:
        """1/2 |x - x^|^2 of every sample from Gram matrices, in float64; nothing is missing."""
        xp = self.engine.xp
        a, *rest = (xp.astype(factor, xp.float64, copy=False) for factor in factors)
        cross = xp.astype(self._sample_product(factors), xp.float64, copy=False)
        values = self.sample_scales + xp.sum(a * (0.5 * (a @ other_grams([a, *rest], 0)) - cross), axis=1)
        return xp.maximum(values, xp.zeros_like(values))

    def _sample_product(self, factors: Sequence[Array]) -> Array:
        """X_(1) A(-1); while nothing is missing it is kept from the last step until the other factors change."""
        if self._holed is not None:
            return self._holed.filled(factors)[1]
        rest = list(factors[1:])
        if self._held is None or not all(a is b for a, b in zip(self._held[0], rest, strict=True)):
            self._held = (rest, self._data.sample_product(factors))
        return self._held[1]
