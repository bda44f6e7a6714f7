"""Products of dense data with the factors, for the least-squares loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple

from gwntf.core import Array
from gwntf.backends import Backend
from gwntf.geometry import SampleGraph
from gwntf.data import NonnegativeTensor, khatri_rao, other_mode_product
from gwntf.data.blocks import even_blocks
from gwntf.updates import Pull, gram_of, ratio_parts, ratio_step


class Sums(NamedTuple):
    """Sums over the samples that the value and the next step need.

    Attributes
    ----------
    begun : array
        X_(1)' A(1), or what else `Unfoldings.begin` returns.
    gram : (R, R) array
        A(1)' A(1), in float64.
    cross : array
        <A(1), X_(1) A(-1)>, in float64.
    """

    begun: Array
    gram: Array
    cross: Array

    def plus(self, more: Sums) -> Sums:
        """Add the sums over other samples."""
        return Sums(self.begun + more.begun, self.gram + more.gram, self.cross + more.cross)


def sums_of(backend: Backend, first: Array, product: Array, begun: Array) -> Sums:
    """Return the sums over some samples from their rows of A(1) and of X_(1) A(-1)."""
    return Sums(begun, gram_of(backend, first), _inner(backend, first, product))


def _inner(backend: Backend, a: Array, b: Array) -> Array:
    """Return <a, b>, in float64."""
    return backend.xp.sum(a * b, dtype=backend.xp.float64)


def _plain_step(
    backend: Backend, other: Array, x: Array, a: Array, attraction: Array | None, denominator: Array
) -> tuple[Array, Array, Array]:
    """`RowStep` in products of matrices."""
    product = x @ other
    moved = ratio_step(a, product, attraction, denominator)
    return moved, x.T @ moved, _inner(backend, moved, product)


class DenseUnfoldings:
    """Products of dense data with the factors; where entries are missing, also of the data filled with the model."""

    def __init__(self, backend: Backend, tensor: NonnegativeTensor) -> None:
        self._engine, self._rows = backend, backend.asarray(tensor.rows)
        observed: Any = None if tensor.observed is None else backend.asarray(tensor.observed)
        self._observed = None if observed is None else observed.reshape(*self._rows.shape)

    @property
    def holed(self) -> bool:
        """Whether entries are missing."""
        return self._observed is not None

    def begin(self, first: Array) -> Array:
        """X_(1)' A(1)."""
        return reduce(add, self._engine.map(lambda rows: self._rows[rows].T @ first[rows], self._blocks()))

    def product(self, begun: Array, factors: Sequence[Array], mode: int) -> Array:
        """X_(n) A(-n) for one n but the first, from X_(1)' A(1)."""
        return other_mode_product(begun, factors, mode)

    def sample_product(self, factors: Sequence[Array]) -> Array:
        """X_(1) A(-1)."""
        other = khatri_rao(factors[1:])
        parts = self._engine.map(lambda rows: self._rows[rows] @ other, self._blocks())
        return self._engine.xp.concat(parts)

    def step(
        self, factors: Sequence[Array], grams: Array, graph: SampleGraph | Pull | None
    ) -> tuple[Array, Sums]:
        """Move the samples; return the new A(1), and the sums with it, from one reading of every block."""
        backend, first, other = self._engine, factors[0], khatri_rao(factors[1:])
        attraction, denominator = ratio_parts(backend, first, grams, graph)
        step = backend.row_step(other) or partial(_plain_step, backend, other)

        def visit(rows: slice) -> tuple[Array, Array, Any]:
            pulled = None if attraction is None else attraction[rows]
            with backend.quiet():
                return step(self._rows[rows], first[rows], pulled, denominator[rows])

        moved, begun, cross = zip(*backend.map(visit, self._blocks()), strict=True)
        first = backend.xp.concat(moved)
        return first, Sums(reduce(add, begun), gram_of(backend, first), reduce(add, cross))

    def half_squares(self) -> Array:
        """1/2 |x|^2 of every sample."""
        xp = self._engine.xp

        def visit(rows: slice) -> Array:
            block = xp.astype(self._rows[rows], xp.float64, copy=False)
            return 0.5 * xp.sum(block * block, axis=1)

        return xp.concat(self._engine.map(visit, self._blocks()))

    def _blocks(self) -> Iterator[slice]:
        return even_blocks(self._rows.shape, self._engine.block_entries)

    def filled(self, factors: Sequence[Array]) -> tuple[Array, Array, Array]:
        """1/2 |x - x^|^2 over observed entries, and X_(1) A(-1) and X_(1)' A(1) of the data filled with the model."""
        xp, first, other = self._engine.xp, factors[0], khatri_rao(factors[1:])
        observed: Any = self._observed

        def visit(rows: slice) -> tuple[Array, Array, Array]:
            model = first[rows] @ other.T
            filled = (
                self._rows[rows] if observed is None else xp.where(observed[rows], self._rows[rows], model)
            )
            residual = filled - model
            value = 0.5 * xp.sum(residual * residual, axis=1, dtype=xp.float64)
            return value, filled @ other, filled.T @ first[rows]

        values, samples, others = zip(*self._engine.map(visit, self._blocks()), strict=True)
        return xp.concat(values), xp.concat(samples), reduce(add, others)
