"""The nonzero fibers of one mode of sparse samples, and the products that need no others.

A fiber is named by its places on the other modes. Everything that is linear in the entries of an array that vanishes
off these fibers, such as X_(n) A(-n) for any n, is a sum over them.
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

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Fibers:
    """The nonzero fibers of a mode."""

    mode: int  # Axis of the fibers
    matrix: csr_array  # csr_array of shape (F, I_n): One row per fiber, on the host
    # Tuple of array of shape (F,): Where the fibers lie on every axis, arrays of the backend; None on their own axis
    places: tuple[Array | None, ...]
    shape: tuple[int, ...]  # Of the samples
    backend: Backend  # Of the computations

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
        """Values of the nonzero entries of some fibers, number of the fiber in the tile, and place on it."""
        bounds = self.matrix.indptr[tile.start : tile.stop + 1]
        part = slice(int(bounds[0]), int(bounds[-1]))
        row = np.repeat(np.arange(tile.stop - tile.start), np.diff(bounds))
        return self._values[part], self.backend.asarray(row), self._columns[part]

    def dense(self, tile: slice) -> Array:
        """Return some fibers with their zeros."""
        values, row, column = self.entries(tile)
        filled = self.backend.zeros((tile.stop - tile.start, self.shape[self.mode]), values)
        filled[row, column] = values
        return filled

    def weights(self, factors: Sequence[Array], fibers: slice = slice(None), without: int | None = None) -> Array:
        """Entrywise product of the rows of all other factors at some fibers: their rows of A(-n).

        The factor `without` is left out of it.
        """
        product: Array | None = None
        for other, (factor, places) in enumerate(zip(factors, self.places, strict=True)):
            if places is not None and other != without:
                rows = factor[places[fibers]]
                product = rows if product is None else product * rows
        return 1.0 if product is None else product

    def spread(self, rows: Array, mode: int) -> Array:
        """Sum rows, one per fiber, over the fibers that share their place on another mode."""
        return self.backend.sum_by(rows, self.places[mode], self.shape[mode])

    def products(self, factors: Sequence[Array], own: Array, across: Array) -> Products:
        """R_(k) A(-k) for every k, of an array R that vanishes off these fibers.

        `own` is R_(n) A(-n) for the mode of the fibers, and `across`, (F, R), the fibers times A(n).
        """
        found = Sums({self.mode: own})
        for mode in range(len(factors)):
            if mode != self.mode:
                found[mode] = self.spread(across * self.weights(factors, without=mode), mode)
        return found

    def product(self, factors: Sequence[Array], mode: int) -> Array:
        """X_(k) A(-k) of the samples themselves, for one k."""
        if mode == self.mode:
            return self._multiply_transposed @ self.weights(factors)
        across = self._multiply @ factors[self.mode]
        return self.spread(across * self.weights(factors, without=mode), mode)


def find_fibers(places: Places, values: FloatArray, shape: tuple[int, ...], mode: int, backend: Backend) -> Fibers:
    """Gather the nonzero fibers of a mode from entries sorted by their places, last axis fastest."""
    others = [axis for axis in range(len(shape)) if axis != mode]
    order = np.lexsort([places[axis] for axis in reversed(others)])
    starts = np.flatnonzero(changes(places[others][:, order]))
    short = np.int32 if max(values.size, *shape) < np.iinfo(np.int32).max else np.int64
    bounds = np.append(starts, values.size).astype(short)
    matrix = csr_array((values[order], places[mode][order].astype(short), bounds), shape=(starts.size, shape[mode]))
    at = order[starts]
    found = tuple(None if axis == mode else backend.asarray(places[axis][at]) for axis in range(len(shape)))
    return Fibers(mode, matrix, found, shape, backend)


def changes(places: Places) -> NDArray[np.bool_]:
    """Which of some sorted places differ from the one before; the first one does."""
    first = np.ones(places.shape[1], np.bool_)
    first[1:] = (places[:, 1:] != places[:, :-1]).any(axis=0)
    return first
