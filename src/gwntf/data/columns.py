"""X_(1) by its columns, for transport along the samples: each column has one entry of every sample."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import Backend
from gwntf.core import Array
from gwntf.data.algebra import khatri_rao
from gwntf.data.block import Look, Sums, Swept, Tile
from gwntf.data.partition import pieces


class ColumnBlock(Protocol):
    """Some columns of X_(1), or all of them; `sparse` says whether only nonzero entries are stored."""

    sparse: ClassVar[bool]

    @property
    def backend(self) -> Backend:
        """Who computes with them."""

    def sweep_samples_axis(self, look: Look, a: Array, rest: Sequence[Array]) -> Swept:
        """Compare whole columns with the model of all of A(1) and the other factors.

        Costs and mass are sums over the columns; products are those of `Block.sweep`.
        """

    def fiber_count(self, mode: int) -> int:
        """Count the columns, or the nonzero ones."""


class _Columns(ABC):
    """Columns that are read some at a time."""

    sparse: ClassVar[bool] = False
    backend: Backend
    first: int = 0

    @abstractmethod
    def fiber_count(self, mode: int) -> int:
        """Count the columns."""

    @abstractmethod
    def step(self) -> int:
        """Return how many columns to take at a time."""

    @abstractmethod
    def read(self, columns: slice) -> tuple[Array, Array | None]:
        """Return a copy of some columns, zero where nothing was observed, and which entries were, if not all."""

    def sweep_samples_axis(self, look: Look, a: Array, rest: Sequence[Array]) -> Swept:
        """Compare the columns with the model."""
        backend, count = self.backend, self.fiber_count(0)
        other = khatri_rao(rest)[self.first : self.first + count]

        def visit(columns: slice) -> tuple[Array, Array, Array]:
            x, mask = self.read(columns)
            b = other[columns]
            with backend.quiet():
                (ratio,), costs, done = look(Tile(columns.start, x, a @ b.T, mask, {0: 0}, backend))
            found = costs, ratio @ b, ratio.T @ a
            if done is not None:
                done()
            return found

        costs, rows, sums = zip(*backend.map(visit, pieces(count, self.step())), strict=True)
        return Swept(reduce(add, costs), [reduce(add, rows)], [Sums({0: backend.xp.concat(sums)})])


@dataclass(frozen=True, eq=False)
class DenseColumns(_Columns):
    """Columns that the backend has."""

    values: Array  # (N, M) array: The columns
    observed: Array | None  # Which entries were observed, if not all were
    backend: Backend  # Owner of both
    first: int = 0  # Number of the first of these columns in X_(1)

    def fiber_count(self, mode: int) -> int:  # noqa: ARG002
        return int(self.values.shape[1])

    def step(self) -> int:
        return self.backend.tile_columns(self.values.shape[0])

    def read(self, columns: slice) -> tuple[Array, Array | None]:
        x = self.backend.xp.asarray(self.values[:, columns], copy=True)
        return x, None if self.observed is None else self.observed[:, columns]


@dataclass(frozen=True, eq=False)
class StoredColumns(_Columns):
    """Columns of data whose transpose lies in a file."""

    file: np.memmap[Any, Any]  # (M, N) memory-mapped array: X_(1)', NaN where nothing was observed
    complete: bool  # Whether every entry was observed
    backend: Backend  # Who computes with them
    block_bytes: int  # Most bytes to read at a time

    def fiber_count(self, mode: int) -> int:  # noqa: ARG002
        return int(self.file.shape[0])

    def step(self) -> int:
        length = int(self.file.shape[1])
        most = self.block_bytes // (length * int(self.file.dtype.itemsize))
        return max(1, min(self.backend.tile_columns(length), most))

    def read(self, columns: slice) -> tuple[Array, Array | None]:
        x = self.backend.asarray(np.ascontiguousarray(self.file[columns].T))
        if self.complete:
            return x, None
        xp = self.backend.xp
        holes = xp.isnan(x)
        return xp.where(holes, xp.zeros_like(x), x), ~holes


class DensePart(NamedTuple):
    """What one block of samples has in some columns: entries on the host, and which were observed, if not all."""

    values: NDArray[Any]
    observed: NDArray[np.bool_] | None

    @staticmethod
    def join(
        parts: Sequence[DensePart],
        slices: Sequence[slice],  # noqa: ARG004
        first: int,
        backend: Backend,
    ) -> DenseColumns:
        """Return columns from the parts of all blocks of samples; see `join_columns`."""
        observed = None
        if any(part.observed is not None for part in parts):
            masks = [np.ones(p.values.shape, np.bool_) if p.observed is None else p.observed for p in parts]
            observed = backend.asarray(np.concatenate(masks))
        values = backend.asarray(np.concatenate([part.values for part in parts]))
        return DenseColumns(values, observed, backend, first)


def join_columns(parts: Sequence[Any], slices: Sequence[slice], first: int, backend: Backend) -> ColumnBlock:
    """Join what `Block.split_columns` returned for some columns.

    Parameters
    ----------
    parts : list
        One for each block of samples.
    slices : list of slice
        Which samples each block has.
    first : int
        Number of the first of these columns in X_(1).
    backend : Backend
        To which the columns are brought.
    """
    joined: ColumnBlock = parts[0].join(parts, slices, first, backend)
    return joined
