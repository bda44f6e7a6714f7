"""The nonzero fibers of one mode of a sparse tensor, and the products that need no others.

A fiber is named by its places on the other modes. Everything that is linear in the entries of a tensor that vanishes
off these fibers, such as X_(n) A(-n) for any n, is a sum over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from gwntf.core import FloatArray

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Fibers:
    """The nonzero fibers of a mode.

    Attributes
    ----------
    mode : int
        Axis of the fibers.
    matrix : csr_array of shape (F, I_n)
        One row per fiber.
    places : tuple of arrays of shape (F,)
        Where the fibers lie on every axis; on their own axis an array without entries.
    shape : tuple of int
        Of the tensor.
    """

    mode: int
    matrix: csr_array
    places: tuple[Places, ...]
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of fibers."""
        return int(self.matrix.shape[0])

    def weights(
        self, factors: Sequence[FloatArray], fibers: slice = slice(None), without: int | None = None
    ) -> FloatArray:
        """Entrywise product of the rows of all other factors at some fibers: their rows of A(-n).

        The factor `without` is left out of it.
        """
        product: FloatArray | None = None
        for other, factor in enumerate(factors):
            if other not in (self.mode, without):
                rows = factor[self.places[other][fibers]]
                product = rows if product is None else product * rows
        if product is None:
            size = len(range(*fibers.indices(self.count)))
            return np.ones((size, factors[0].shape[1]), factors[0].dtype)
        return product

    def spread(self, rows: FloatArray, mode: int) -> FloatArray:
        """Sum rows, one per fiber, over the fibers that share their place on another mode."""
        one_each = np.arange(self.count + 1)
        entries = (np.ones(self.count, rows.dtype), self.places[mode], one_each)
        joined: FloatArray = csc_array(entries, shape=(self.shape[mode], self.count)) @ rows
        return joined

    def products(
        self, factors: Sequence[FloatArray], own: FloatArray, across: FloatArray
    ) -> tuple[FloatArray, ...]:
        """R_(k) A(-k) for every k, of a tensor R that vanishes off these fibers.

        Parameters
        ----------
        factors : sequence of arrays
            A(1), ..., A(N).
        own : (I_n, R) array
            R_(n) A(-n), for the mode of the fibers.
        across : (F, R) array
            The fibers times A(n).
        """
        return tuple(
            own if mode == self.mode else self.spread(across * self.weights(factors, without=mode), mode)
            for mode in range(len(factors))
        )

    def product(self, factors: Sequence[FloatArray], mode: int) -> FloatArray:
        """X_(k) A(-k) of the tensor itself, for one k."""
        if mode == self.mode:
            own: FloatArray = self.matrix.T @ self.weights(factors)
            return own
        across = self.matrix @ factors[self.mode]
        return self.spread(across * self.weights(factors, without=mode), mode)


def find_fibers(places: Places, values: FloatArray, shape: tuple[int, ...], mode: int) -> Fibers:
    """Gather the nonzero fibers of a mode from entries sorted by their places, last axis fastest."""
    others = [axis for axis in range(len(shape)) if axis != mode]
    order = np.lexsort([places[axis] for axis in reversed(others)])
    first = changes(places[others][:, order])
    starts = np.flatnonzero(first)
    short = np.int32 if max(values.size, *shape) < np.iinfo(np.int32).max else np.int64
    bounds = np.append(starts, values.size).astype(short)
    matrix = csr_array(
        (values[order], places[mode][order].astype(short), bounds), shape=(starts.size, shape[mode])
    )
    at = order[starts]
    empty = np.empty(0, np.int64)
    return Fibers(
        mode, matrix, tuple(empty if axis == mode else places[axis][at] for axis in range(len(shape))), shape
    )


def changes(places: Places) -> NDArray[np.bool_]:
    """Which of some sorted places differ from the one before; the first one does."""
    first = np.ones(places.shape[1], np.bool_)
    first[1:] = (places[:, 1:] != places[:, :-1]).any(axis=0)
    return first
