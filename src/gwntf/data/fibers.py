"""The nonzero fibers of one mode of sparse samples, and products with them.

A fiber is identified by its coordinates on the other axes. Every linear function of an array that is zero outside these
fibers, such as X_(n) A(-n) for any n, is a sum over them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gwntf.backends import Backend
from gwntf.core import Array, FloatArray
from gwntf.data.block import Products, Sums

Coords = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Fibers:
    """The nonzero fibers of a mode."""

    mode: int  # Axis of the fibers
    matrix: csr_array  # (F, I_n): one row per fiber, on the host
    # (F,) arrays of the backend: coordinates of the fibers on every axis; None for their own axis
    coords: tuple[Array | None, ...]
    shape: tuple[int, ...]  # Shape of the samples
    backend: Backend  # Backend of the computations

    @property
    def count(self) -> int:
        """Number of fibers."""
        return int(self.matrix.shape[0])

    @cached_property
    def _values(self) -> Array:
        return self.backend.asarray(self.matrix.data)

    @cached_property
    def _columns(self) -> Array:
        return self.backend.asarray(self.matrix.indices.astype(np.int64, copy=False))

    @cached_property
    def _multiply(self) -> Any:
        return self.backend.sparse(self.matrix, self.matrix.dtype)

    @cached_property
    def _multiply_transposed(self) -> Any:
        return self.backend.sparse(self.matrix.T, self.matrix.dtype)

    def entries(self, tile: slice) -> tuple[Array, Array, Array]:
        """Return values, rows and columns of the nonzero entries of a tile of fibers."""
        bounds = self.matrix.indptr[tile.start : tile.stop + 1]
        part = slice(int(bounds[0]), int(bounds[-1]))
        row = np.repeat(np.arange(tile.stop - tile.start), np.diff(bounds))
        return self._values[part], self.backend.asarray(row), self._columns[part]

    def dense(self, tile: slice) -> Array:
        """Return some fibers as a dense array."""
        values, row, column = self.entries(tile)
        filled = self.backend.zeros((tile.stop - tile.start, self.shape[self.mode]), values)
        filled[row, column] = values
        return filled

    def weights(self, factors: Sequence[Array], fibers: slice = slice(None), without: int | None = None) -> Array:
        """Return the rows of A(-n) of some fibers: the entrywise product of the rows of all other factors.

        The factor `without` is omitted.
        """
        product: Array | None = None
        for other, (factor, coords) in enumerate(zip(factors, self.coords, strict=True)):
            if coords is not None and other != without:
                rows = factor[coords[fibers]]
                product = rows if product is None else product * rows
        return 1.0 if product is None else product

    def spread(self, rows: Array, mode: int) -> Array:
        """Sum rows, one per fiber, over the fibers with the same coordinate on another axis."""
        return self.backend.sum_by(rows, self.coords[mode], self.shape[mode])

    def products(self, factors: Sequence[Array], own: Array, across: Array) -> Products:
        """Return R_(k) A(-k) for every k, for an array R that is zero outside these fibers.

        `own` is R_(n) A(-n) for the mode of the fibers, and `across`, (F, R), the fibers times A(n).
        """
        found = Sums({self.mode: own})
        for mode in range(len(factors)):
            if mode != self.mode:
                found[mode] = self.spread(across * self.weights(factors, without=mode), mode)
        return found

    def product(self, factors: Sequence[Array], mode: int) -> Array:
        """Return X_(k) A(-k) of the samples themselves, for one k."""
        if mode == self.mode:
            return self._multiply_transposed @ self.weights(factors)
        across = self._multiply @ factors[self.mode]
        return self.spread(across * self.weights(factors, without=mode), mode)


def find_fibers(coords: Coords, values: FloatArray, shape: tuple[int, ...], mode: int, backend: Backend) -> Fibers:
    """Return the nonzero fibers of a mode, given entries sorted by coordinates, last axis fastest."""
    others = [axis for axis in range(len(shape)) if axis != mode]
    order = np.lexsort([coords[axis] for axis in reversed(others)])
    starts = np.flatnonzero(changes(coords[others][:, order]))
    short = np.int32 if max(values.size, *shape) < np.iinfo(np.int32).max else np.int64
    bounds = np.append(starts, values.size).astype(short)
    matrix = csr_array((values[order], coords[mode][order].astype(short), bounds), shape=(starts.size, shape[mode]))
    at = order[starts]
    found = tuple(None if axis == mode else backend.asarray(coords[axis][at]) for axis in range(len(shape)))
    return Fibers(mode, matrix, found, shape, backend)


def changes(coords: Coords) -> NDArray[np.bool_]:
    """Return which of some sorted coordinates differ from the previous ones; the first one does."""
    first = np.ones(coords.shape[1], np.bool_)
    first[1:] = (coords[:, 1:] != coords[:, :-1]).any(axis=0)
    return first
