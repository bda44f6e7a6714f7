"""Kernels of squared distances along an axis, for many places, without a stored matrix.

Narrow kernels are stored as a band; wide ones are sums of products of functions of either place.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gwntf.backends import Backend
from gwntf.core import Array, FloatArray
from gwntf.geometry.axis_cost import AxisCost
from gwntf.geometry.kernels import Kernel, lifting_shift, log_sum_exp

_BLOCK_ENTRIES = 2**22

_FEW = 1 / 4
"""Fraction of entries below which a sparse matrix is faster than a dense one."""


class SquaredKernel(Kernel):
    """K = exp(-C/reg - 1) for an `AxisCost`; logarithms are multiplied over all pairs of places."""

    def __init__(self, backend: Backend, cost: AxisCost, reg: float, dtype: Any) -> None:
        self._backend, self._cost, self._reg = backend, cost, reg
        super().__init__(cost.size, *_shift(cost, reg, dtype), dtype)

    def _at(self, dtype: Any) -> Any:
        return type(self)(self._backend, self._cost, self._reg, dtype)

    def log_matmul(self, log_v: Array, *, transposed: bool = False) -> Array:  # noqa: ARG002
        """Return log(K exp(log V)), computed for a block of rows of K at a time."""
        xp, everywhere = self._backend.xp, np.arange(self.size)
        step = max(1, _BLOCK_ENTRIES // (self.size * log_v.shape[1]))
        blocks = []
        for start in range(0, self.size, step):
            log_kernel = -self._cost.between(everywhere[start : start + step, None], everywhere) / self._reg - 1
            terms = self._backend.asarray(log_kernel, self._dtype)[:, :, None] + log_v[None]
            blocks.append(log_sum_exp(xp, terms, 1))
        return xp.concat(blocks)


class BandKernel(SquaredKernel):
    """A sparse matrix without the entries that underflow.

    In the number type of the kernel these entries are zero in a stored matrix too. Columns in which they matter are
    recognised as inaccurate, and solved in float64, with more entries, or on logarithms, with all of them.
    """

    @cached_property
    def _matrix(self) -> Array:
        first, counts = _band(self._cost, self._reg, self._dtype)
        starts = np.concatenate([[0], np.cumsum(counts)])
        rows = np.repeat(np.arange(self.size), counts)
        columns = (np.arange(starts[-1]) - np.repeat(starts[:-1] - first, counts)) % self.size
        values = np.exp(self.shift - 1 - self._cost.between(rows, columns) / self._reg)
        matrix = csr_array((values, columns, starts), shape=(self.size, self.size))
        matrix.sort_indices()
        return self._backend.sparse(matrix, self._dtype)

    def matmul(self, v: Array, *, transposed: bool = False) -> Array:  # noqa: ARG002
        return self._matrix @ v


class CellKernel(SquaredKernel):
    """Products over the cells of a line: what a place sends to the places of another cell is a sum of few powers.

    In units in which K_ij = exp(-(x - y)^2 - 1) the cells have length one. With x = a + s and y = b + t, where a and b
    are the centres of their cells and D = a - b,

        exp(-(x - y)^2) = f_D(s) f_-D(t) exp(-D^2 + 2|D|) sum_k (2^k / k!) s^k t^k,    f_D(s) = exp(-2 D s - |D| - s^2).

    Since |2 s t| <= 1/2, few terms are exact to rounding, relative to every entry. No factor is much larger than one,
    so that no intermediate number is much smaller than the result. Cells between which all entries underflow are left
    out.
    """

    @cached_property
    def _cells(self) -> _Cells:
        return _cells(self._cost, self._reg, self._dtype)

    @cached_property
    def _powers(self) -> Array:
        """f_D(s) s^k of every slot, (bins, slots, D and k); zero where a slot is empty."""
        cells = self._cells
        offsets, k = cells.offsets[:, None, None], np.arange(cells.terms)[:, None]
        decay = np.exp(-2 * offsets * cells.inside - np.abs(offsets) - cells.inside**2)
        powers = np.zeros((len(cells.element), len(offsets) * cells.terms))
        powers[cells.slot] = (decay * cells.inside**k).reshape(-1, self.size).T
        return self._backend.asarray(powers.reshape(len(cells.cell_of_bin), -1, powers.shape[1]), self._dtype)

    @cached_property
    def _between_cells(self) -> tuple[Array, Array]:
        """Return the square root of exp(-D^2 + 2|D|), (D, 1, 1), and 2^k / k!, (k, 1)."""
        offsets = np.abs(self._cells.offsets)
        roots = np.exp(offsets - offsets**2 / 2)[:, None, None]
        series = np.array([2.0**k / math.factorial(k) for k in range(self._cells.terms)])[:, None]
        return self._backend.asarray(roots, self._dtype), self._backend.asarray(series, self._dtype)

    @cached_property
    def _indices(self) -> tuple[Array, Array, Array]:
        """Return the element of each slot, the slot of each element, and the cell of each bin."""
        cells = self._cells
        element, slot, cell = (self._backend.asarray(index) for index in (cells.element, cells.slot, cells.cell_of_bin))
        return element, slot, cell

    def matmul(self, v: Array, *, transposed: bool = False) -> Array:  # noqa: ARG002
        """Return exp(s) K V, computed for a group of columns at a time."""
        step = max(1, _BLOCK_ENTRIES // (self._cells.n_cells * self._powers.shape[2]))
        groups = [self._product(v[:, start : start + step]) for start in range(0, v.shape[1], step)]
        return self._backend.xp.concat(groups, axis=1)

    def _product(self, v: Array) -> Array:
        powers, (roots, series), (element, slot, cell) = self._powers, self._between_cells, self._indices
        cells, columns = self._cells, v.shape[1]
        given = (math.exp(self.shift - 1) * v)[element].reshape(powers.shape[0], -1, columns)
        sent = (powers.swapaxes(1, 2) @ given).reshape(powers.shape[0], -1)
        by_cell = self._backend.sum_by(sent, cell, cells.n_cells).reshape(cells.n_cells, -1, cells.terms, columns)
        moved = [self._moved(by_cell[:, -1 - k], int(offset)) for k, offset in enumerate(cells.offsets)]
        arrived = roots * (roots * (series * self._backend.xp.stack(moved, axis=1)))
        spread = powers @ arrived.reshape(cells.n_cells, -1, columns)[cell]
        return spread.reshape(-1, columns)[slot]

    def _moved(self, values: Array, offset: int) -> Array:
        """Return the values of the cells that are `offset` cells before every cell, zero where there is none."""
        xp = self._backend.xp
        if offset == 0:
            return values
        zeros = xp.zeros_like(values[: abs(offset)])
        if offset > 0:
            return xp.concat([zeros, values[:-offset]])
        return xp.concat([values[-offset:], zeros])


class _Cells(NamedTuple):
    """The cells of a line. All bins have the same number of slots; a cell with many places has several bins."""

    n_cells: int  # number of cells, empty ones included
    terms: int  # number of terms of the power series
    offsets: NDArray[np.int64]  # all D for which entries do not underflow, increasing and symmetric
    inside: FloatArray  # (I,) distance of every place from the centre of its cell, between -1/2 and 1/2
    slot: NDArray[np.int64]  # (I,) slot of every place
    element: NDArray[np.int64]  # place of every slot, any one for an empty slot
    cell_of_bin: NDArray[np.int64]


def _cells(cost: AxisCost, reg: float, dtype: Any) -> _Cells:
    """Divide the places of a line into cells."""
    positions = np.asarray(cost.positions)
    places = (positions - positions[0]) / (cost.scale * math.sqrt(reg))
    cell = np.floor(places).astype(np.int64)
    count = int(cell[-1]) + 1
    reach = min(count - 1, int(math.sqrt(_limit(cost, reg, dtype))) + 1)
    names, sizes = np.unique(cell, return_counts=True)
    width = min(int(sizes.max()), -(-2 * len(cell) // len(names)))
    bins = -(-sizes // width)
    first = np.concatenate([[0], np.cumsum(bins)])
    index = np.repeat(np.arange(len(names)), sizes)
    slot = first[index] * width + np.arange(len(cell)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    element = np.zeros(first[-1] * width, np.int64)
    element[slot] = np.arange(len(cell))
    offsets = np.arange(-reach, reach + 1)
    return _Cells(count, _terms(dtype), offsets, places - cell - 0.5, slot, element, np.repeat(names, bins))


def _terms(dtype: Any) -> int:
    """Return the number of terms of exp(z), |z| <= 1/2, up to rounding."""
    k = 1
    while 0.5**k / math.factorial(k) > float(np.finfo(dtype).eps) / 8:
        k += 1
    return k


def squared_kernel(backend: Backend, cost: AxisCost, reg: float, dtype: Any) -> SquaredKernel | None:
    """Return the kernel of a squared distance that needs fewer numbers; None where most pairs must be stored."""
    entries, size = int(_band(cost, reg, np.float64)[1].sum()), cost.size
    if not cost.straight:
        return BandKernel(backend, cost, reg, dtype) if entries <= _FEW * size**2 else None
    cells = _cells(cost, reg, np.float64)
    if cells.n_cells > size or entries <= size * len(cells.offsets) * cells.terms:
        return BandKernel(backend, cost, reg, dtype)
    return CellKernel(backend, cost, reg, dtype)


def _shift(cost: AxisCost, reg: float, dtype: Any) -> tuple[float, bool]:
    """Return `lifting_shift` for the kernel of a cost on an axis."""
    positions = np.asarray(cost.positions)
    reach = float(positions[-1] - positions[0])
    longest = reach if cost.period is None else min(reach, cost.period / 2)
    return lifting_shift(-((longest / cost.scale) ** 2) / reg - 1, -1.0, dtype)


def _limit(cost: AxisCost, reg: float, dtype: Any) -> float:
    """Return the largest C/reg of an entry that does not underflow."""
    info = np.finfo(dtype)
    return _shift(cost, reg, dtype)[0] - 1 - math.log(float(info.smallest_normal) * float(info.eps))


def _band(cost: AxisCost, reg: float, dtype: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the entries of every row that do not underflow: the first one, modulo I on a circle, and their number."""
    positions, size = np.asarray(cost.positions), cost.size
    reach = cost.scale * math.sqrt(_limit(cost, reg, dtype) * reg)
    if cost.period is None:
        first = np.searchsorted(positions, positions - reach)
        return first, np.searchsorted(positions, positions + reach, "right") - first
    around = np.concatenate([positions - cost.period, positions, positions + cost.period])
    first = np.searchsorted(around, positions - reach)
    counts = np.minimum(np.searchsorted(around, positions + reach, "right") - first, size)
    return first - size, counts
