"""The reference backend: plain NumPy, written to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from gwntf.backends.forms import KernelForm
from gwntf.backends.interchange import as_given, to_host
from gwntf.backends.protocol import Answer, RowStep, StackTransport
from gwntf.core import FloatArray

_TILE_ENTRIES = 2**17
_TILE_COLUMNS = 512
_BLOCK_ENTRIES = 2**18


class NumpyBackend:
    """NumPy arrays, SciPy sparse matrices."""

    name = "numpy"
    long_fibers = 1000
    recording = False
    fused_kl: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]] | None = None
    xp: Any = np
    default_dtype = None
    block_entries = _BLOCK_ENTRIES

    def asarray(self, values: Any, dtype: Any = None) -> NDArray[Any]:
        """Return a C-ordered array, without a copy where it is one already."""
        return np.ascontiguousarray(to_host(values), dtype=dtype)

    def to_numpy(self, values: FloatArray) -> FloatArray:
        """Return the array itself."""
        return np.asarray(values)

    def as_given(self, values: FloatArray, given: Any) -> Any:
        """Return the array itself, or as a tensor where a tensor was given."""
        return as_given(values, given)

    def dtype(self, values: FloatArray) -> np.dtype[Any]:
        """NumPy dtype of an array."""
        return values.dtype

    def sparse(self, matrix: Any, dtype: Any) -> Any:
        """Return the matrix in the dtype of the factors."""
        return matrix.astype(dtype, copy=False)

    def quiet(self) -> AbstractContextManager[Any]:
        """Silence NumPy's floating-point warnings."""
        return np.errstate(all="ignore")

    def session(self, given: Any) -> AbstractContextManager[Any]:  # noqa: ARG002
        """Do nothing."""
        return nullcontext()

    def stack_transport(
        self,
        form: Callable[[], KernelForm],  # noqa: ARG002
        length: int,  # noqa: ARG002
        columns: int,  # noqa: ARG002
    ) -> StackTransport | None:
        """Return None: the reference goes tile by tile."""
        return None

    def row_step(self, other: FloatArray) -> RowStep | None:  # noqa: ARG002
        """Return None: the reference multiplies matrices."""
        return None

    def zeros(self, shape: Sequence[int], like: FloatArray) -> FloatArray:
        """Return zeros."""
        return np.zeros(shape, like.dtype)

    def sum_by(
        self, rows: FloatArray, index: NDArray[Any], size: int, weights: FloatArray | None = None
    ) -> FloatArray:
        """Multiply by a sparse matrix with one entry per column."""
        count = len(rows)
        weights = np.ones(count, rows.dtype) if weights is None else weights
        sums: FloatArray = csc_array((weights, index, np.arange(count + 1)), shape=(size, count)) @ rows
        return sums

    def map(self, function: Callable[[slice], Answer], blocks: Iterable[slice]) -> list[Answer]:
        """Go through the blocks one after the other."""
        return [function(block) for block in blocks]

    def numbers(self, values: Sequence[Any]) -> FloatArray:
        """Return an array."""
        return np.array(values, dtype=np.float64)

    def recorded(
        self,
        function: Callable[..., tuple[Any, ...]],
        kernels: Sequence[tuple[Callable[[], KernelForm], int]],
        entries: int,
    ) -> None:
        """Return None: there is nothing to gain."""

    def tile_columns(self, length: int) -> int:
        """Return a tile of about a megabyte, wide enough to keep the matrix products busy."""
        return max(_TILE_COLUMNS, _TILE_ENTRIES // length)
