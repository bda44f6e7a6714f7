"""Sources, data that are read in blocks: their detection, dtypes, and splits into blocks.

A source is a `numpy.memmap`, a zarr array or a Dask array. No library is imported to detect its arrays.
"""

import math
import os
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from gwntf.backends import Backend
from gwntf.core import InputError
from gwntf.data.block import Block
from gwntf.data.checks import check_kind, check_shape
from gwntf.data.dense import DenseBlock
from gwntf.data.partition import pieces
from gwntf.data.sparse import sparse_block

BLOCK_BYTES = 2**24
"""Bytes of a block of samples in the dtype of the fit; about three blocks are in memory at a time.

Larger blocks are slower on a CPU, because memory of more than 32 MB is released and allocated again for every block.
"""

MAX_IN_MEMORY_BYTES = 2**26
"""Sources of at most this many bytes are read into memory."""

_MAX_BLOCKS_PER_CHUNK = 32
"""Maximum number of blocks in one chunk of a source, because chunks are always read as a whole."""


def is_sparse(X: Any) -> bool:
    """Whether this is a SciPy sparse matrix or a sparse array of the `sparse` library."""
    return bool(issparse(X)) or _is_of("sparse", "SparseArray", X)


def is_source(X: Any) -> bool:
    """Whether this is a `numpy.memmap`, a zarr array or a Dask array."""
    return is_mapped(X) or _is_of("zarr", "Array", X) or is_dask(X)


def is_mapped(X: Any) -> bool:
    """Whether this is a `numpy.memmap`."""
    return isinstance(X, np.memmap)


def is_dask(X: Any) -> bool:
    """Whether this is a Dask array."""
    return _is_of("dask.array", "Array", X)


def has_sparse_chunks(X: Any) -> bool:
    """Whether this is a Dask array of sparse arrays."""
    return is_dask(X) and is_sparse(X._meta)


def _is_of(module: str, name: str, X: Any) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(X, kind)


def fit_dtype(own: np.dtype[Any], dtype: Any) -> np.dtype[Any]:
    """Return the dtype of a fit: the given one, else that of X if it is float32 or float64, else float64."""
    own = own.newbyteorder("=")
    keep = own in (np.float32, np.float64)
    return np.dtype(dtype if dtype is not None else (own if keep else np.float64))


def check_dtype(own: np.dtype[Any], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which entries are checked: their own if they are floats, else that of the fit."""
    return dtype if own.kind in "iub" else fit_dtype(own, None)


def check_source(X: Any) -> None:
    """Check shape and dtype, without reading entries."""
    if any(not isinstance(size, int | np.integer) for size in X.shape):
        raise InputError(
            "X", f"a Dask array of unknown shape {X.shape}", "known chunk sizes: call X.compute_chunk_sizes()"
        )
    check_shape(X.shape)
    check_kind(X.dtype)


def is_small(X: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a source is read into memory: it has a single block, or at most `MAX_IN_MEMORY_BYTES`."""
    return len(source_slices(X, dtype, BLOCK_BYTES)) <= 1 or dtype.itemsize * math.prod(X.shape) <= MAX_IN_MEMORY_BYTES


def source_slices(X: Any, dtype: np.dtype[Any], size: int) -> list[slice]:
    """Split the samples into blocks of about `size` bytes; blocks are whole chunks if the source has chunks."""
    sample = dtype.itemsize * math.prod(X.shape[1:])
    step = max(1, size // sample)
    if is_mapped(X):
        return list(pieces(X.shape[0], step))
    lengths = X.chunks[0] if is_dask(X) else [part.stop - part.start for part in pieces(X.shape[0], X.chunks[0])]
    most = max(1, _MAX_BLOCKS_PER_CHUNK * step)
    if max(lengths) > most and not has_sparse_chunks(X):
        given = f"chunks of {max(lengths)} samples, {max(lengths) * sample / 2**20:.0f} MiB"
        allowed = f"chunks of at most {most} samples: rechunk X along its first axis"
        raise InputError("X", given, allowed)
    slices: list[slice] = []
    start = stop = 0
    for length in (int(length) for length in lengths if length):
        if stop > start and stop + length - start > step:
            slices.append(slice(start, stop))
            start = stop
        stop += length
    return [*slices, slice(start, stop)]


def read(X: Any, rows: slice) -> Any:
    """Read some samples of a source into a new array in C order and native byte order."""
    part = X[rows]
    if is_dask(part):
        part = part.compute(scheduler="synchronous")
    if is_sparse(part):
        return part
    if not isinstance(part, np.ndarray):
        raise InputError("X", f"chunks of type {type(part).__name__}", "chunks that are NumPy or sparse arrays")
    return np.array(part, part.dtype.newbyteorder("="), order="C")


def as_block(part: NDArray[Any] | Any, backend: Backend, dtype: Any) -> Block:
    """Return samples, dense or sparse, as a block of a dtype; entries are not checked."""
    if is_sparse(part):
        return sparse_block(part, backend).astype(dtype)
    return DenseBlock(backend.asarray(part, dtype), None, backend)


def file_state(X: Any) -> tuple[int, int] | None:
    """Return size and modification time of the file of a memmap; None for other sources."""
    if not is_mapped(X) or X.filename is None:
        return None
    try:
        found = os.stat(X.filename)
    except OSError:  # a mapped file that was deleted can still be read
        return None
    return found.st_size, found.st_mtime_ns
