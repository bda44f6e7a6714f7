"""Reproducible products of sparse and dense matrices: additions are always in the same order."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gwntf.backends.torch.arrays import as_tensor
from gwntf.core import Array

_ENTRIES_AT_ONCE = 2**26
_RUN = 32
"""Entries that are added in sequence; longer rows are summed in runs of this length, then over the runs."""


class SparseRows:
    """A matrix in compressed rows (CSR).

    The order of additions in cuSPARSE varies, so that two runs of a program differ in the last digits; this class sums
    every entry of a product in the order of the row.
    """

    def __init__(self, matrix: csr_array, dtype: torch.dtype, device: torch.device) -> None:
        self._rows: NDArray[np.int64] = matrix.indptr.astype(np.int64)
        counts = -(-np.diff(self._rows) // _RUN)
        self._runs_of_rows = np.concatenate([[0], np.cumsum(counts)])
        index = np.arange(counts.sum()) - np.repeat(self._runs_of_rows[:-1], counts)
        self._runs = np.concatenate([np.repeat(self._rows[:-1], counts) + _RUN * index, self._rows[-1:]])
        self._columns = as_tensor(matrix.indices.astype(np.int64)).to(device)
        self._weights = as_tensor(matrix.data).to(device, dtype)[:, None]
        self._cached_bounds: dict[tuple[int, int], tuple[Array, ...]] = {}
        self._fused: Callable[[Array], Array] | None = None
        if self._columns.is_cuda and find_spec("triton") is not None:
            from gwntf.backends.torch.fused.rows import RowProduct

            self._fused = RowProduct(self._to_device(self._rows), self._columns, self._weights)

    def __matmul__(self, dense: Array) -> Array:
        """Multiply a dense matrix, a group of rows at a time if the intermediate arrays would be large."""
        if len(self._rows) == 1:
            return dense.new_zeros((0, dense.shape[1]))
        if self._fused is not None:
            return self._fused(dense)
        parts = [self._product(first, last, dense) for first, last in self._groups(dense.shape[1])]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _groups(self, width: int) -> Iterator[tuple[int, int]]:
        """Yield the bounds of groups of rows whose intermediate arrays have a limited number of entries."""
        limit, size, first = max(1, _ENTRIES_AT_ONCE // max(1, width)), len(self._rows) - 1, 0
        while first < size:
            last = int(np.searchsorted(self._rows, self._rows[first] + limit, side="right")) - 1
            last = min(max(last, first + 1), size)
            yield first, last
            first = last

    def _product(self, first: int, last: int, dense: Array) -> Array:
        """Return rows `first` to `last` of the product."""
        part = slice(int(self._rows[first]), int(self._rows[last]))
        sums = dense[self._columns[part]] * self._weights[part]
        if (first, last) not in self._cached_bounds:
            self._cached_bounds[first, last] = self._bounds(first, last)
        for bounds in self._cached_bounds[first, last]:
            sums = torch.segment_reduce(sums, "sum", offsets=bounds, axis=0, unsafe=True, initial=0.0)
        return sums

    def _bounds(self, first: int, last: int) -> tuple[Array, ...]:
        """Return the offsets of some rows; if one has several runs, those of the runs, and of the rows among them."""
        rows, of_rows = self._rows[first : last + 1], self._runs_of_rows[first : last + 1]
        if np.diff(of_rows).max() <= 1:
            return (self._to_device(rows - rows[0]),)
        runs = self._runs[of_rows[0] : of_rows[-1] + 1]
        return self._to_device(runs - runs[0]), self._to_device(of_rows - of_rows[0])

    def _to_device(self, bounds: NDArray[np.int64]) -> Array:
        return as_tensor(bounds).to(self._columns.device)
