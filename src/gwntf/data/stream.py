"""Out-of-core blocks of samples: they are read one at a time."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from operator import methodcaller
from typing import Any

import numpy as np

from gwntf.backends import Backend
from gwntf.core import DataError
from gwntf.data import sources
from gwntf.data.block import Block
from gwntf.data.blocks import LocalBlocks
from gwntf.data.columns import ColumnBlock, StoredColumns
from gwntf.data.sources import as_block, file_state, source_slices
from gwntf.data.sparse import SparseBlock

_LARGE, _LARGE_ENTRIES = 4, 2**22
"""Factor by which blocks are larger for backends with more than that many `block_entries`, such as GPUs."""


@dataclass(frozen=True, eq=False)
class Streamed(LocalBlocks):
    """Blocks of a source; a thread reads and prepares the next block while the current one is processed."""

    source: Any  # Checked by `sources.check_source`
    backend: Backend  # Backend of the blocks
    dtype: np.dtype[Any]  # Dtype of the blocks as read
    fit_dtype: np.dtype[Any]  # Dtype of the fit, in which a block has about `BLOCK_BYTES`
    # Functions, with their arguments, that are applied to every block after reading
    preparations: tuple[tuple[Callable[..., Block], tuple[Sequence[Any], ...]], ...] = ()
    # Size and modification time of the file of a memmap, which must not change; None is not checked
    written: tuple[int, int] | None = None

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Whether the chunks of the source are sparse."""
        return sources.has_sparse_chunks(self.source)

    @cached_property
    def slices(self) -> Sequence[slice]:  # type: ignore[override]
        """Samples of each block; see `source_slices`."""
        large = self.backend.block_entries > _LARGE_ENTRIES
        return source_slices(self.source, self.fit_dtype, sources.BLOCK_BYTES * (_LARGE if large else 1))

    def stream(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> Iterator[Any]:
        with ThreadPoolExecutor(1, thread_name_prefix="gwntf-read") as reader:
            upcoming = reader.submit(self._read, 0)
            for k in range(len(self.slices)):
                block = upcoming.result()
                if k + 1 < len(self.slices):
                    upcoming = reader.submit(self._read, k + 1)
                found = function(block, *(argument[k] for argument in arguments))
                del block  # otherwise it would stay in memory with the next one
                yield found

    def _read(self, k: int) -> Block:
        """Read a block, move it to the backend and prepare it."""
        now = None if self.written is None else file_state(self.source)
        if now is not None and now != self.written:  # reading a truncated memory map kills the process
            raise DataError(
                f"{self.source.filename} has changed since it was first read: fit again when it is complete"
            )
        block = as_block(sources.read(self.source, self.slices[k]), self.backend, self.dtype)
        for change, given in self.preparations:
            block = change(block, *(argument[k] for argument in given))
        return block

    def prepared(self, function: Callable[..., Block], *arguments: Sequence[Any]) -> Streamed:
        return replace(self, preparations=(*self.preparations, (function, arguments)))

    def converted(self, dtype: np.dtype[Any]) -> Streamed:
        return replace(self, dtype=dtype)

    @cached_property
    def column_block(self) -> ColumnBlock:
        """All columns: dense ones in a temporary file that is written once, sparse ones in memory."""
        size = math.prod(self.source.shape[1:])
        parts = self.stream(methodcaller("column_part", slice(0, size)))
        if self.sparse:
            return SparseBlock.join_columns(list(parts), self.slices, 0, self.backend)
        file = temporary_array((size, self.slices[-1].stop), self.fit_dtype)
        complete = True
        for samples, part in zip(self.slices, parts, strict=True):
            filled = part.values if part.complete else np.where(part.observed, part.values, np.nan)
            file[:, samples] = filled.T
            complete = complete and part.complete
        return StoredColumns(file.T, None, self.backend, complete=complete, block_bytes=sources.BLOCK_BYTES)


def temporary_array(shape: tuple[int, int], dtype: Any) -> np.memmap[Any, Any]:
    """Return an array in a temporary file (in the folder that `tempfile` chooses), deleted with the array."""
    with tempfile.TemporaryFile(prefix="gwntf-") as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)
