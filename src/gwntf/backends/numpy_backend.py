"""The reference backend: plain NumPy, written for clarity."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from gwntf.backends.interchange import is_tensor, to_host
from gwntf.backends.protocol import Backend
from gwntf.core import FloatArray

_TILE_ENTRIES = 2**17
_TILE_COLUMNS = 512


class NumpyBackend(Backend):
    """NumPy arrays and SciPy sparse matrices."""

    name = "numpy"
    long_fibers = 1000
    xp: Any = np
    block_entries = 2**18

    def asarray(self, values: Any, dtype: Any = None) -> NDArray[Any]:
        return np.ascontiguousarray(to_host(values), dtype=dtype)

    def to_numpy(self, values: FloatArray) -> FloatArray:
        return np.asarray(values)

    def as_given(self, values: FloatArray, given: Any) -> Any:
        if not is_tensor(given):
            return values
        from gwntf.backends.torch.arrays import as_tensor

        return as_tensor(values).to(given.device)

    def dtype(self, values: FloatArray) -> np.dtype[Any]:
        return values.dtype

    def sparse(self, matrix: Any, dtype: Any) -> Any:
        return matrix.astype(dtype, copy=False)

    def quiet(self) -> AbstractContextManager[Any]:
        return np.errstate(all="ignore")

    def zeros(self, shape: Sequence[int], like: FloatArray) -> FloatArray:
        return np.zeros(shape, like.dtype)

    def sum_by(self, rows: FloatArray, index: NDArray[Any], size: int, weights: FloatArray | None = None) -> FloatArray:
        count = len(rows)
        weights = np.ones(count, rows.dtype) if weights is None else weights
        sums: FloatArray = csc_array((weights, index, np.arange(count + 1)), shape=(size, count)) @ rows
        return sums

    def numbers(self, values: Sequence[Any]) -> FloatArray:
        return np.array(values, dtype=np.float64)

    def tile_columns(self, length: int) -> int:
        return max(_TILE_COLUMNS, _TILE_ENTRIES // length)
