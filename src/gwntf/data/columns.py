"""Columns of X_(1), for transport along the samples: each column has one entry of every sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar, Protocol

import numpy as np

from gwntf.backends import Backend
from gwntf.core import Array
from gwntf.data.algebra import khatri_rao
from gwntf.data.block import CompareTile, Sums, SweepResult, Tile
from gwntf.data.partition import pieces


class ColumnBlock(Protocol):
    """Some or all columns of X_(1); `sparse` is True if only nonzero entries are stored."""

    sparse: ClassVar[bool]

    @property
    def backend(self) -> Backend:
        """Backend of the computations."""

    def sweep_samples_axis(self, compare: CompareTile, a: Array, rest: Sequence[Array]) -> SweepResult:
        """Compare whole columns with the model, given all of A(1) and the other factors.

        Costs and mass are summed over the columns; products are those of `Block.sweep`.
        """

    def fiber_count(self, mode: int) -> int:
        """Return the number of columns, of sparse data that of nonzero columns."""


@dataclass(frozen=True, eq=False)
class DenseColumns:
    """Columns of dense data, compared tile by tile."""

    sparse: ClassVar[bool] = False

    values: Array  # (N, M) array: the columns
    observed: Array | None  # Mask of observed entries; None if all were observed
    backend: Backend  # Backend of both arrays
    first: int = 0  # Index of the first column in X_(1)

    def fiber_count(self, mode: int) -> int:  # noqa: ARG002
        return int(self.values.shape[1])

    def step(self) -> int:
        """Return the number of columns in a tile."""
        return self.backend.tile_columns(self.values.shape[0])

    def read(self, columns: slice) -> tuple[Array, Array | None]:
        """Return a copy of some columns, zero at missing entries, and their mask of observed entries or None."""
        x = self.backend.xp.asarray(self.values[:, columns], copy=True)
        return x, None if self.observed is None else self.observed[:, columns]

    def sweep_samples_axis(self, compare: CompareTile, a: Array, rest: Sequence[Array]) -> SweepResult:
        backend, count = self.backend, self.fiber_count(0)
        other = khatri_rao(rest)[self.first : self.first + count]

        def visit(columns: slice) -> tuple[Array, Array, Array]:
            x, mask = self.read(columns)
            b = other[columns]
            with backend.quiet():
                (ratio,), costs, done = compare(Tile(columns.start, x, a @ b.T, mask, {0: 0}, backend))
            found = costs, ratio @ b, ratio.T @ a
            if done is not None:
                done()
            return found

        costs, rows, sums = zip(*backend.map(visit, pieces(count, self.step())), strict=True)
        return SweepResult(reduce(add, costs), [reduce(add, rows)], [Sums({0: backend.xp.concat(sums)})])


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredColumns(DenseColumns):
    """Columns in a file: `values` is the transpose of a memory-mapped array, NaN at missing entries."""

    complete: bool  # Whether every entry was observed
    block_bytes: int  # Maximum number of bytes to read at a time

    def step(self) -> int:
        most = self.block_bytes // int(self.values.shape[0] * self.values.dtype.itemsize)
        return max(1, min(super().step(), most))

    def read(self, columns: slice) -> tuple[Array, Array | None]:
        x = self.backend.asarray(np.ascontiguousarray(self.values[:, columns]))
        if self.complete:
            return x, None
        xp = self.backend.xp
        missing = xp.isnan(x)
        return xp.where(missing, xp.zeros_like(x), x), ~missing
