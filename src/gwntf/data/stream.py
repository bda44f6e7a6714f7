"""Blocks of samples that are read one after the other, and never all in memory."""

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
"""How much larger blocks are for backends that take more entries than this at a time, as those of GPUs do."""


@dataclass(frozen=True, eq=False)
class Streamed(LocalBlocks):
    """Blocks of a source: a thread reads and prepares the next one while one is worked on."""

    source: Any  # Checked by `sources.check_source`
    backend: Backend  # To which the blocks are brought
    dtype: np.dtype[Any]  # In which they are brought there
    fit_dtype: np.dtype[Any]  # In which a block has about `BLOCK_BYTES`: that of the fit
    # Tuple of (function, arguments): What is done to a block first
    preparations: tuple[tuple[Callable[..., Block], tuple[Sequence[Any], ...]], ...] = ()
    # Size of the file of a memmap and when it was last written, which must stay so; None is not checked
    written: tuple[int, int] | None = None

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Whether the chunks of the source are sparse."""
        return sources.has_sparse_chunks(self.source)

    @cached_property
    def slices(self) -> Sequence[slice]:  # type: ignore[override]
        """Blocks of about `BLOCK_BYTES`; of whole chunks, where the source has chunks."""
        large = self.backend.block_entries > _LARGE_ENTRIES
        return source_slices(self.source, self.fit_dtype, sources.BLOCK_BYTES * (_LARGE if large else 1))

    def stream(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> Iterator[Any]:
        with ThreadPoolExecutor(1, thread_name_prefix="gwntf-read") as reader:
            coming = reader.submit(self._ready, 0)
            for k in range(len(self.slices)):
                block = coming.result()
                if k + 1 < len(self.slices):
                    coming = reader.submit(self._ready, k + 1)
                found = function(block, *(argument[k] for argument in arguments))
                del block  # or it would stay in memory beside the next one
                yield found

    def _ready(self, k: int) -> Block:
        """Read a block, bring it to the backend and prepare it."""
        now = None if self.written is None else file_state(self.source)
        if now is not None and now != self.written:  # reading a mapped file that has become shorter ends the process
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
        """X_(1)' in a temporary file, written once; nonzero entries alone are joined in memory."""
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
