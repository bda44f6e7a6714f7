"""A sparse matrix that multiplies columns by gathering rows and adding them up, in the same order every time."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array

from gwntf.core import Array
from gwntf.engines.torch.arrays import as_tensor

_ENTRIES_AT_ONCE = 2**26


class SparseRows:
    """A matrix in compressed rows.

    cuSPARSE may add in any order, so that two runs would differ in their last digits; here every entry of a product is
    one sum in the order of the row.
    """

    def __init__(self, matrix: csr_array, dtype: torch.dtype, device: torch.device) -> None:
        self._ends = matrix.indptr.astype(np.int64)
        self._starts = as_tensor(self._ends).to(device)
        self._columns = as_tensor(matrix.indices.astype(np.int64)).to(device)
        self._weights = as_tensor(matrix.data).to(device, dtype)[:, None]

    def __matmul__(self, dense: Array) -> Array:
        """Multiply a matrix of columns, some rows at a time where all together would be large."""
        room = max(1, _ENTRIES_AT_ONCE // max(1, dense.shape[1]))
        size, first, parts = len(self._ends) - 1, 0, []
        while first < size:
            last = int(np.searchsorted(self._ends, self._ends[first] + room, side="right")) - 1
            last = min(max(last, first + 1), size)
            parts.append(self._rows(first, last, dense))
            first = last
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _rows(self, first: int, last: int, dense: Array) -> Array:
        """Rows `first` to `last` of the product."""
        part = slice(int(self._ends[first]), int(self._ends[last]))
        terms = dense[self._columns[part]] * self._weights[part]
        starts = self._starts[first : last + 1] - part.start
        return torch.segment_reduce(terms, "sum", offsets=starts, axis=0, unsafe=True, initial=0.0)
