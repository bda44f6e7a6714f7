"""Collections of blocks of samples, which run functions on every block: in this process, out of core, or on workers.

The rest of the library uses only the interface `Blocks`. Functions passed to it must be picklable (module-level
functions, methods of picklable objects, or a `functools.partial` of them) and take the backend from the block.
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

PerBlock: TypeAlias = Sequence[Any]
"""One value per block, stored where the block is."""

HaloIndices: TypeAlias = Sequence[dict[int, NDArray[np.intp]]]
"""For every block, the indices of the rows that it needs from other blocks, by block."""


class BlockState(NamedTuple):
    """State of a block between two passes."""

    rows: Array  # (n, R) array: rows of A(1) of its samples
    own: Any = None  # (n, R) array: input of the next update of these rows, or None
    # State of the loss, such as warm starts, with a method `on(backend)` that returns a copy on a backend. A pass in
    # this process may update it in place.
    state: Any = None
    # What the acceleration keeps of earlier rows: an array whose last but one axis is that of the rows, or None
    past: Any = None
    step: Any = None  # (n, R) array: part of the next step of the acceleration, or None

    def on(self, backend: Backend) -> BlockState:
        """Return the same state on a backend; the state of the loss is copied."""
        own, past, step = (None if part is None else backend.asarray(part) for part in (self.own, self.past, self.step))
        state = None if self.state is None else self.state.on(backend)
        return BlockState(backend.asarray(self.rows), own, state, past, step)


class Blocks(ABC):
    """A collection of blocks of samples."""

    slices: Sequence[slice]  # Samples of each block, in order
    backend: Backend  # Backend of shared factors and sums
    recordable: bool = False  # Whether a pass may be recorded and replayed, because all data are on the device
    sparse: bool = False  # Whether blocks store only nonzero entries
    dense_block: DenseBlock | None = None  # The block, if all samples are one dense block in memory
    in_place: bool = False  # Whether functions may update arrays of states in place, because they run in this process
    in_memory: bool = False  # Whether all samples are one block, dense or sparse, in the memory of this process
    remote: bool = False  # Whether functions run in other processes, so that waiting for sums takes much longer

    # --- before a fit ---

    @abstractmethod
    def stream(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> Iterator[Any]:
        """Yield ``function(block, *(argument[k] for argument in arguments))`` for every block k, in order.

        Few results are in memory at a time, so that they may be large.
        """

    @abstractmethod
    def prepared(self, function: Callable[..., Block], *arguments: Sequence[Any]) -> Blocks:
        """Return blocks transformed by a function, called as in `stream`: now, or each time they are read."""

    def map(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Return all results of `stream`."""
        return list(self.stream(function, *arguments))

    def converted(self, dtype: np.dtype[Any]) -> Blocks:
        """Return the blocks in another dtype."""
        return self.prepared(methodcaller("astype", dtype))

    # --- in a fit ---

    @abstractmethod
    def run(
        self, function: Callable[..., Any], rest: Sequence[Array], *parts: PerBlock, **options: Any
    ) -> tuple[PerBlock, Any]:
        """Call ``function(block, rest, *(part[k] for part in parts), **options)`` for every block k.

        The function returns the new state of the block and `Sums`. States are stored with the blocks; `collect` returns
        the total of the sums.
        """

    @abstractmethod
    def apply(self, function: Callable[..., Any], *parts: PerBlock, **options: Any) -> tuple[PerBlock, Any]:
        """Do the same without the data: call ``function(backend, *(part[k] for part in parts), **options)``."""

    @abstractmethod
    def collect(self, *sums: Any) -> list[Sums]:
        """Wait for sums and return them."""

    @abstractmethod
    def put(self, values: Sequence[Any]) -> PerBlock:
        """Send one value from the host to each block."""

    @abstractmethod
    def take(self, parts: PerBlock) -> list[Any]:
        """Return the values of all blocks on the host."""

    @abstractmethod
    def rows(self, kept: PerBlock) -> Array:
        """Return A(1) of all samples, on the backend."""

    @abstractmethod
    def halo_rows(self, wanted: HaloIndices, kept: PerBlock) -> PerBlock:
        """Return for every block the rows of A(1) that it needs from other blocks, as a list of arrays."""

    @abstractmethod
    def run_columns(
        self, function: Callable[..., Any], rest: Sequence[Array], state: Any, kept: PerBlock, **options: Any
    ) -> tuple[Any, Any, PerBlock]:
        """Call ``function(columns, rest, state, A(1), **options)`` for all samples, a block of columns at a time.

        The function returns the next state, `Sums` and an array with one row per sample. The result is the states of
        all blocks of columns, the total of the `Sums` for `collect`, and the sum of the arrays, split like the samples.
        """

    @abstractmethod
    def column_counts(self) -> list[int]:
        """Return `ColumnBlock.fiber_count` of every block of columns."""

    def detached(self, parts: PerBlock) -> PerBlock:
        """Return the same values without the tasks that computed them, where tasks are recorded."""
        return parts


class LocalBlocks(Blocks):
    """Blocks that are processed in this process."""

    in_place = True

    def run(
        self, function: Callable[..., Any], rest: Sequence[Array], *parts: PerBlock, **options: Any
    ) -> tuple[PerBlock, Any]:
        found = self.stream(lambda block, *own: function(block, rest, *own, **options), *parts)
        return _states_and_sums(found)

    def apply(self, function: Callable[..., Any], *parts: PerBlock, **options: Any) -> tuple[PerBlock, Any]:
        return _states_and_sums(function(self.backend, *own, **options) for own in zip(*parts, strict=True))

    def collect(self, *sums: Any) -> list[Sums]:
        return list(sums)

    def put(self, values: Sequence[Any]) -> PerBlock:
        return [value.on(self.backend) for value in values]

    def take(self, parts: PerBlock) -> list[Any]:
        return list(parts)

    def rows(self, kept: PerBlock) -> Array:
        return kept[0].rows if len(kept) == 1 else self.backend.xp.concat([part.rows for part in kept])

    def halo_rows(self, wanted: HaloIndices, kept: PerBlock) -> PerBlock:
        return [[kept[block].rows[self.backend.asarray(rows)] for block, rows in needed.items()] for needed in wanted]

    def run_columns(
        self, function: Callable[..., Any], rest: Sequence[Array], state: Any, kept: PerBlock, **options: Any
    ) -> tuple[Any, Any, PerBlock]:
        before = None if state is None else state[0]
        after, sums, product = function(self.column_block, rest, before, self.rows(kept), **options)
        return [after], sums, [product[part] for part in self.slices]

    def column_counts(self) -> list[int]:
        return [self.column_block.fiber_count(0)]

    @property
    @abstractmethod
    def column_block(self) -> ColumnBlock:
        """All columns of X_(1)."""


def _states_and_sums(found: Iterator[tuple[Any, Any]]) -> tuple[list[Any], Any]:
    states, total = [], None
    for state, sums in found:
        states.append(state)
        total = sums if total is None else total + sums
    return states, total


class InMemory(LocalBlocks):
    """A single block with all samples, in memory."""

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
