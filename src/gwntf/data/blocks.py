"""Where blocks of samples are, and where functions of one block run: in this process, in a stream, or on workers.

The rest of the library uses `Blocks` alone. Functions passed to it are functions of modules, methods of picklable
objects or `functools.partial` of such, and take the backend from the block, so that they can run anywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from operator import methodcaller
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import Backend
from gwntf.core import Array
from gwntf.data.block import Block, Sums
from gwntf.data.columns import ColumnBlock
from gwntf.data.dense import DenseBlock

Parts: TypeAlias = Sequence[Any]
"""One value per block, which stays where the block is."""

Wanted: TypeAlias = Sequence[dict[int, NDArray[np.intp]]]
"""For every block, which rows it needs of which other blocks."""


class Kept(NamedTuple):
    """What belongs to a block between two passes."""

    rows: Array  # (n, R) array: A(1) of its samples
    own: Any = None  # (n, R) array: What the next step of these rows needs, or None
    # What the next pass over the block starts from, with a method `on(backend)` that returns a copy on a backend. A
    # pass in this process may write into it.
    state: Any = None

    def on(self, backend: Backend) -> Kept:
        """Return the same on a backend; the state is copied, so that this one stays as it is."""
        own = None if self.own is None else backend.asarray(self.own)
        return Kept(backend.asarray(self.rows), own, None if self.state is None else self.state.on(backend))


class Blocks(ABC):
    """Blocks of samples."""

    slices: Sequence[slice]  # Which samples each block has, in order
    backend: Backend  # That of arrays which are not in blocks: shared factors and sums
    recordable: bool = False  # Whether a pass may be recorded and replayed on a device: all data are there
    sparse: bool = False  # Whether blocks store nonzero entries alone
    dense_block: DenseBlock | None = None  # All samples, where they are one dense block in memory
    in_memory: bool = False  # Whether all samples are one block, dense or sparse, in the memory of this process

    # --- before a fit ---

    @abstractmethod
    def stream(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> Iterator[Any]:
        """Give ``function(block, *(argument[k] for argument in arguments))`` for every block k, in order.

        Few results are in memory at a time, so that they may be large.
        """

    @abstractmethod
    def prepared(self, function: Callable[..., Block], *arguments: Sequence[Any]) -> Blocks:
        """Return blocks made by a function, called as in `stream`: now, or whenever they are read."""

    def map(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Return all that `stream` gives."""
        return list(self.stream(function, *arguments))

    def converted(self, dtype: np.dtype[Any]) -> Blocks:
        """Return the blocks in another number type."""
        return self.prepared(methodcaller("astype", dtype))

    # --- in a fit ---

    @abstractmethod
    def run(
        self, function: Callable[..., Any], rest: Sequence[Array], *parts: Parts, **options: Any
    ) -> tuple[Parts, Any]:
        """Call ``function(block, rest, *(part[k] for part in parts), **options)`` for every block k.

        It returns what the block keeps and `Sums`. The former stay with the blocks; the latter are added up, and
        `collect` has their sum.
        """

    @abstractmethod
    def apply(self, function: Callable[..., Any], *parts: Parts, **options: Any) -> tuple[Parts, Any]:
        """Do the same without the data: ``function(backend, *(part[k] for part in parts), **options)``."""

    @abstractmethod
    def collect(self, *sums: Any) -> list[Sums]:
        """Wait for sums."""

    @abstractmethod
    def put(self, values: Sequence[Any]) -> Parts:
        """Bring one value, on the host, to each block."""

    @abstractmethod
    def take(self, parts: Parts) -> list[Any]:
        """Bring what blocks keep to the host."""

    @abstractmethod
    def rows(self, kept: Parts) -> Array:
        """A(1) of all samples, on the backend."""

    @abstractmethod
    def neighbour_rows(self, wanted: Wanted, kept: Parts) -> Parts:
        """For every block the rows of A(1) that it needs of other blocks (halo rows), as a list of arrays."""

    @abstractmethod
    def run_columns(
        self, function: Callable[..., Any], rest: Sequence[Array], state: Any, kept: Parts, **options: Any
    ) -> tuple[Any, Any, Parts]:
        """Call ``function(columns, rest, state, A(1), **options)`` for all samples, a block of columns at a time.

        It returns the next state, `Sums` and an array with a row per sample. Returns the states of all blocks of
        columns, the sum of the `Sums` for `collect`, and the sum of the arrays, split as the samples are.
        """

    @abstractmethod
    def column_counts(self) -> list[int]:
        """`ColumnBlock.fiber_count` of every block of columns."""

    def detached(self, parts: Parts) -> Parts:
        """Return the same values without the history of how they were computed, where there is one."""
        return parts


class LocalBlocks(Blocks):
    """Blocks that come to the function, in this process."""

    def run(
        self, function: Callable[..., Any], rest: Sequence[Array], *parts: Parts, **options: Any
    ) -> tuple[Parts, Any]:
        found = self.stream(lambda block, *own: function(block, rest, *own, **options), *parts)
        return _kept_and_sums(found)

    def apply(self, function: Callable[..., Any], *parts: Parts, **options: Any) -> tuple[Parts, Any]:
        return _kept_and_sums(function(self.backend, *own, **options) for own in zip(*parts, strict=True))

    def collect(self, *sums: Any) -> list[Sums]:
        return list(sums)

    def put(self, values: Sequence[Any]) -> Parts:
        return [value.on(self.backend) for value in values]

    def take(self, parts: Parts) -> list[Any]:
        return list(parts)

    def rows(self, kept: Parts) -> Array:
        return kept[0].rows if len(kept) == 1 else self.backend.xp.concat([part.rows for part in kept])

    def neighbour_rows(self, wanted: Wanted, kept: Parts) -> Parts:
        return [[kept[block].rows[self.backend.asarray(rows)] for block, rows in needed.items()] for needed in wanted]

    def run_columns(
        self, function: Callable[..., Any], rest: Sequence[Array], state: Any, kept: Parts, **options: Any
    ) -> tuple[Any, Any, Parts]:
        before = None if state is None else state[0]
        after, sums, product = function(self.column_block, rest, before, self.rows(kept), **options)
        return [after], sums, [product[part] for part in self.slices]

    def column_counts(self) -> list[int]:
        return [self.column_block.fiber_count(0)]

    @property
    @abstractmethod
    def column_block(self) -> ColumnBlock:
        """All columns of X_(1)."""


def _kept_and_sums(found: Iterator[tuple[Any, Any]]) -> tuple[list[Any], Any]:
    kept, total = [], None
    for mine, sums in found:
        kept.append(mine)
        total = sums if total is None else total + sums
    return kept, total


class InMemory(LocalBlocks):
    """One block with all samples."""

    in_memory = True

    def __init__(self, block: Block) -> None:
        self.block, self.backend, self.sparse = block, block.backend, block.sparse
        self.slices = [slice(0, block.shape[0])]
        self.recordable = not block.sparse  # dense data are all on the device
        self.dense_block = None if block.sparse else cast(DenseBlock, block)

    def stream(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> Iterator[Any]:
        yield function(self.block, *(argument[0] for argument in arguments))

    def prepared(self, function: Callable[..., Block], *arguments: Sequence[Any]) -> InMemory:
        return InMemory(function(self.block, *(argument[0] for argument in arguments)))

    @cached_property
    def column_block(self) -> ColumnBlock:
        columns: ColumnBlock = self.block.columns()
        return columns
