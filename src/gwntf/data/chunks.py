"""Data that are not in memory as a whole, and how they go by in blocks of samples.

A `numpy.memmap`, a zarr array or a Dask array is a source: it has a shape, a number type, and blocks of samples that
can be read. `Blocks` is all that the rest of the library knows of it. What is wanted of the data is a function of one
block; here the blocks come to the function, one after the other, elsewhere the function may go to the blocks.
"""

from __future__ import annotations

import math
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gwntf.core import DataError, InputError
from gwntf.backends import Backend
from gwntf.data.blocks import pieces
from gwntf.data.tensor import NonnegativeTensor, check_shape

BLOCK_BYTES = 2**24
"""Bytes of a block of samples in the number type of the fit; about three of them are held at a time.

Larger ones are slower on a CPU: memory of more than 32 MB is given back and asked for anew from block to block.
"""

WHOLE_BYTES = 2**26
"""Data of no more than this are read and taken as an array."""

_LARGE, _LARGE_ENTRIES = 4, 2**22
"""How much larger blocks are for backends that like more entries than this at a time, as those of GPUs do."""

_MOST = 32
"""Blocks that one chunk of the source may fill: it is read whole, whatever is wanted of it."""


class Gathered(NamedTuple):
    """What was found in all blocks.

    Attributes
    ----------
    own : list
        What belongs to each block, in order.
    total : object
        Sum over the blocks of what they have in common.
    state : object
        What the blocks keep for the next time, to be handed back as it is.
    """

    own: list[Any]
    total: Any
    state: Any


class Blocks(ABC):
    """Blocks of samples, each a `NonnegativeTensor` in the number type of the fit, on its backend.

    Functions handed to them are functions of modules, or `functools.partial` of such, and take the backend from the
    block, so that they can be sent to where a block is.
    """

    @property
    @abstractmethod
    def slices(self) -> Sequence[slice]:
        """Which samples each block has: one after the other, all of them."""

    @abstractmethod
    def stream(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> Iterator[Any]:
        """Give ``function(block, *(argument[k] for argument in arguments))`` for every block k, in order.

        Answers that nobody has taken yet are few, so that they may be large.
        """

    @abstractmethod
    def prepared(self, function: Callable[..., NonnegativeTensor], *arguments: Sequence[Any]) -> Blocks:
        """Return the blocks as a function makes them, called as in `stream`: whenever they are read, or once."""

    def map(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """All that `stream` gives."""
        return list(self.stream(function, *arguments))

    def gather(self, function: Callable[..., Any], state: Any, *arguments: Sequence[Any]) -> Gathered:
        """Call ``function(block, state of the block, *arguments)``, which returns (own, shared, new state).

        `state` is that of the last time, or None. What is shared is added up from block to block.
        """
        states = [None] * len(self.slices) if state is None else state
        own, kept, total = [], [], None
        for mine, shared, new in self.stream(function, states, *arguments):
            own.append(mine)
            kept.append(new)
            total = shared if total is None else total + shared
        return Gathered(own, total, kept)


@dataclass(frozen=True)
class StreamedBlocks(Blocks):
    """Blocks of a source on this machine: a thread reads and prepares the next one while one is worked on.

    Attributes
    ----------
    source : numpy.memmap, zarr array or Dask array
        Checked by `check_source`.
    backend : Backend
        To which the blocks are brought.
    dtype : dtype
        In which they are brought there.
    cut : dtype
        In which a block has about `BLOCK_BYTES`: that of the fit.
    preparations : tuple of (function, arguments)
        What is done to a block first.
    written : tuple or None
        Size of the file of a memmap and when it was last written, which must stay so; None is not looked at.
    """

    source: Any
    backend: Backend
    dtype: np.dtype[Any]
    cut: np.dtype[Any]
    preparations: tuple[tuple[Callable[..., NonnegativeTensor], tuple[Sequence[Any], ...]], ...] = field(
        default=()
    )
    written: tuple[int, int] | None = None

    @cached_property
    def slices(self) -> Sequence[slice]:
        """Blocks of about `BLOCK_BYTES`; of whole chunks, where the source has chunks."""
        large = self.backend.block_entries > _LARGE_ENTRIES
        return source_slices(self.source, self.cut, BLOCK_BYTES * (_LARGE if large else 1))

    def stream(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> Iterator[Any]:
        """Apply a function to one block after the other, on the thread that asks."""
        with ThreadPoolExecutor(1, thread_name_prefix="gwntf-read") as reader:
            coming = reader.submit(self._ready, 0)
            for k in range(len(self.slices)):
                block = coming.result()
                if k + 1 < len(self.slices):
                    coming = reader.submit(self._ready, k + 1)
                answer = function(block, *(argument[k] for argument in arguments))
                del block  # or it would be there beside the next one
                yield answer

    def _ready(self, k: int) -> NonnegativeTensor:
        """Read a block, bring it to the backend and prepare it."""
        self._check_unchanged()  # a map of a file that has become shorter ends the process where it is read
        values = self.backend.asarray(read(self.source, self.slices[k]), self.dtype)
        block = NonnegativeTensor(values, None, self.backend)
        for change, given in self.preparations:
            block = change(block, *(argument[k] for argument in given))
        return block

    def prepared(
        self, function: Callable[..., NonnegativeTensor], *arguments: Sequence[Any]
    ) -> StreamedBlocks:
        """Return the same blocks with one more thing done to each whenever it is read."""
        return replace(self, preparations=(*self.preparations, (function, arguments)))

    def _check_unchanged(self) -> None:
        now = None if self.written is None else file_state(self.source)
        if now is not None and now != self.written:
            raise DataError(
                f"{self.source.filename} has changed since it was first read: fit again when it is complete"
            )


def file_state(X: Any) -> tuple[int, int] | None:
    """Return the size of the file of a memmap and when it was last written; None for other sources."""
    if not isinstance(X, np.memmap) or X.filename is None:
        return None
    try:
        found = os.stat(X.filename)
    except OSError:  # a file that has lost its name is still there for those who have mapped it
        return None
    return found.st_size, found.st_mtime_ns


def is_chunked(X: Any) -> bool:
    """Whether this is a source: a `numpy.memmap`, a zarr array or a Dask array."""
    return isinstance(X, np.memmap) or is_zarr(X) or is_dask(X)


def is_zarr(X: Any) -> bool:
    """Whether this is a zarr array."""
    kind = getattr(sys.modules.get("zarr"), "Array", None)
    return kind is not None and isinstance(X, kind)


def is_dask(X: Any) -> bool:
    """Whether this is a Dask array."""
    kind = getattr(sys.modules.get("dask.array"), "Array", None)
    return kind is not None and isinstance(X, kind)


def fit_dtype(X: Any, dtype: Any) -> np.dtype[Any]:
    """Return the number type of a fit: the one asked for, else that of X if it is a floating one, else float64."""
    own = X.dtype.newbyteorder("=")
    keep = own in (np.float32, np.float64)
    return np.dtype(dtype if dtype is not None else (own if keep else np.float64))


def seen_dtype(X: Any, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the number type in which entries are looked at before a fit in another: their own, if they are floats."""
    return dtype if X.dtype.kind in "iub" else fit_dtype(X, None)


def whole_or_streamed(X: Any, dtype: Any = None) -> tuple[Any, bool]:
    """Return an array to be taken as it is, and False; or a source that goes by in blocks, and True.

    A source of at most `WHOLE_BYTES`, or of a single block, is read.
    """
    if not is_chunked(X):
        return X, False
    check_source(X)
    kind = fit_dtype(X, dtype)
    if len(source_slices(X, kind, BLOCK_BYTES)) > 1 and kind.itemsize * math.prod(X.shape) > WHOLE_BYTES:
        return X, True
    return read(X, slice(None)), False


def check_source(X: Any) -> None:
    """Check shape and number type, without looking at any entry."""
    if any(not isinstance(size, int | np.integer) for size in X.shape):
        raise InputError("X", f"a Dask array of unknown shape {X.shape}", "X.compute_chunk_sizes() of it")
    check_shape(X.shape)
    if X.dtype.kind not in "fiub":
        raise InputError("X", f"entries of type {X.dtype}", "an array of real numbers")


def source_slices(X: Any, dtype: np.dtype[Any], size: int) -> list[slice]:
    """Cut the samples into blocks of about so many bytes; of whole chunks, where the source has chunks."""
    sample = dtype.itemsize * math.prod(X.shape[1:])
    step = max(1, size // sample)
    if isinstance(X, np.memmap):
        return list(pieces(X.shape[0], step))
    lengths = (
        X.chunks[0] if is_dask(X) else [part.stop - part.start for part in pieces(X.shape[0], X.chunks[0])]
    )
    if max(lengths) > max(1, _MOST * step):
        given = f"chunks of {max(lengths)} samples, {max(lengths) * sample / 2**20:.0f} MiB"
        allowed = f"chunks of at most {max(1, _MOST * step)} samples: write or rechunk X along its first axis"
        raise InputError("X", given, allowed)
    slices: list[slice] = []
    start = stop = 0
    for length in (int(length) for length in lengths if length):
        if stop > start and stop + length - start > step:
            slices.append(slice(start, stop))
            start = stop
        stop += length
    return [*slices, slice(start, stop)]


def read(X: Any, rows: slice) -> NDArray[Any]:
    """Read some samples of a source into memory, in a copy of their own, sample by sample."""
    part = X[rows]
    if is_dask(part):
        part = part.compute(scheduler="synchronous")
    if not isinstance(part, np.ndarray):
        raise InputError("X", f"chunks of type {type(part).__name__}", "NumPy arrays")
    return np.array(part, order="C")
