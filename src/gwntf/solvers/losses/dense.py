"""Products of dense data with the factors, for the least-squares loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any

from gwntf.core import Array
from gwntf.engines import Engine
from gwntf.problem import NonnegativeTensor, khatri_rao, other_mode_product
from gwntf.problem.blocks import even_blocks


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
        return reduce(add, self._engine.map(lambda rows: self._rows[rows].T @ first[rows], self._blocks()))

    def product(self, begun: Array, factors: Sequence[Array], mode: int) -> Array:
        """X_(n) A(-n) for one n but the first, from X_(1)' A(1)."""
        return other_mode_product(begun, factors, mode)

    def sample_product(self, factors: Sequence[Array]) -> Array:
        """X_(1) A(-1)."""
        other = khatri_rao(factors[1:])
        parts = self._engine.map(lambda rows: self._rows[rows] @ other, self._blocks())
        return self._engine.xp.concat(parts)

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
