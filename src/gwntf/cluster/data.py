"""The way of the data to the workers: blocks of samples, and for transport along the samples blocks of columns."""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.cluster.homes import Homes
from gwntf.cluster.work import Place, called, cut_columns, in_type, join_columns, place_block, read_block
from gwntf.backends import Backend
from gwntf.backends.dask.backend import tasks_of
from gwntf.backends.dask.tasks import Future, Tasks
from gwntf.data import ChunkedTensor, NonnegativeTensor, even_pieces
from gwntf.data.chunked_tensor import check_entries, chunked_tensor
from gwntf.data.chunks import Blocks, Gathered, check_source, fit_dtype, is_dask, seen_dtype

HOST = Place(None, "highest")
"""What is asked of the data before a fit is found on the processors of the workers."""


class ClusterBlocks(Blocks):
    """Blocks of samples on the workers, to which functions are sent.

    Parameters
    ----------
    tasks : Tasks
        Those of the session.
    slices : list of slice
        Which samples each block has.
    futures : list of futures
        A `NonnegativeTensor` in NumPy for each block.
    """

    def __init__(self, tasks: Tasks, slices: Sequence[slice], futures: Sequence[Future]) -> None:
        self.tasks, self._slices, self.futures = tasks, slices, futures

    @property
    def slices(self) -> Sequence[slice]:
        """Which samples each block has."""
        return self._slices

    def stream(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> Iterator[Any]:
        """Send the function to the blocks, and bring the answers here one after the other."""
        answers = deque(self.tasks.submit(called, function, *call) for call in self._calls(arguments))
        while answers:
            yield self.tasks.gather(answers.popleft())

    def prepared(
        self, function: Callable[..., NonnegativeTensor], *arguments: Sequence[Any]
    ) -> ClusterBlocks:
        """Return the blocks as a function makes them, on the same workers."""
        made = [self.tasks.submit(called, function, *call) for call in self._calls(arguments)]
        return ClusterBlocks(self.tasks, self.slices, made)

    def gather(self, function: Callable[..., Any], state: Any, *arguments: Sequence[Any]) -> Gathered:
        """Add up what blocks have in common on the workers; states stay there."""
        states = [None] * len(self.slices) if state is None else state
        found = [self.tasks.submit(called, function, *call) for call in self._calls((states, *arguments))]
        own, shared, kept = ([self.tasks.part(place, answer) for answer in found] for place in range(3))
        mine, total = self.tasks.gather((own, self.tasks.total(shared)))
        return Gathered(list(mine), total, kept)

    def _calls(self, arguments: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
        return zip(self.futures, *arguments, strict=True)


class MappedFile:
    """A `numpy.memmap` that travels as its path."""

    def __init__(self, X: Any) -> None:
        self._path, self._dtype, self._offset, self._shape = X.filename, X.dtype, X.offset, X.shape

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """Read some samples."""
        found: NDArray[Any] = np.memmap(self._path, self._dtype, "r", self._offset, self._shape)[rows]
        return found


def as_cluster_tensor(
    X: Any, backend: Backend, *, missing: str = "error", dtype: Any = None, scaled: bool = False
) -> ChunkedTensor:
    """Have the workers read a memmap, a zarr array or a Dask array, and check all entries there."""
    check_source(X)
    kind, tasks = fit_dtype(X, dtype), tasks_of(backend)
    seen = seen_dtype(X, kind)
    tasks.check()
    slices, parts = _dask_parts(tasks, X) if is_dask(X) else _parts(tasks, X)
    homes = Homes(tasks, len(slices)).now()
    blocks = [
        tasks.submit(read_block, HOST, part, rows, seen, near=home)
        for (part, rows), home in zip(parts, homes, strict=True)
    ]
    read: Blocks = ClusterBlocks(tasks, slices, blocks)
    complete = check_entries(read, kind, backend, missing, scaled)
    if seen != kind:
        read = read.prepared(partial(in_type, dtype=kind))
    return chunked_tensor(read, X.shape, kind, backend, complete)


def _parts(tasks: Tasks, X: Any) -> tuple[list[slice], list[tuple[Any, slice]]]:
    """Give every thread one block, to be read from the file; parts of a mapped file are sent."""
    slices = list(even_pieces(X.shape[0], len(tasks.seats())))
    if isinstance(X, np.memmap) and not _is_file(X):
        return slices, [(tasks.put(np.asarray(X[part])), slice(None)) for part in slices]
    source = tasks.put(MappedFile(X) if isinstance(X, np.memmap) else X)
    return slices, [(source, part) for part in slices]


def _is_file(X: Any) -> bool:
    """Whether this is what was mapped, in rows, and not a part of it."""
    return isinstance(X.base, mmap.mmap) and bool(X.flags.c_contiguous)


def _dask_parts(tasks: Tasks, X: Any) -> tuple[list[slice], list[tuple[Any, slice]]]:
    """Join the chunks of a Dask array to at most one block for each thread, cut where it is cut."""
    ends = np.array(list(accumulate(X.chunks[0])))
    count = len(tasks.seats())
    wanted = (np.arange(1, count + 1) * X.shape[0]) / count
    stops = sorted({int(ends[np.abs(ends - place).argmin()]) for place in wanted} - {0})
    slices = [slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False)]
    sizes = tuple(part.stop - part.start for part in slices)
    whole = X.rechunk({0: sizes} | dict.fromkeys(range(1, X.ndim), -1))
    chunks = tasks.compute(whole.to_delayed().ravel())
    return slices, [(chunk, slice(None)) for chunk in chunks]


@dataclass(frozen=True)
class BlockData:
    """Blocks of samples on the backends of the workers, which samples each has, and where each belongs."""

    tasks: Tasks
    place: Place
    slices: Sequence[slice]
    blocks: Sequence[Future]
    homes: Homes

    def columns(self, size: int) -> tuple[list[slice], list[Future]]:
        """Cut X_(1), which has so many columns, into blocks of columns."""
        parts = list(even_pieces(size, len(self.slices)))
        joined = [
            self.tasks.submit(
                join_columns,
                self.place,
                [self.tasks.submit(cut_columns, block, part) for block in self.blocks],
                near=home,
            )
            for part, home in zip(parts, self.homes.now(), strict=False)
        ]
        return parts, joined


def send_blocks(tasks: Tasks, tensor: NonnegativeTensor) -> ClusterBlocks:
    """Cut data that are here and bring a block to every thread.

    The scheduler keeps a copy, for when a worker is lost.
    """
    slices = list(even_pieces(tensor.shape[0], len(tasks.seats())))
    homes = Homes(tasks, len(slices)).now()
    sent = [tasks.put(tensor.of(part), near=home) for part, home in zip(slices, homes, strict=True)]
    return ClusterBlocks(tasks, slices, sent)


def place_blocks(blocks: ClusterBlocks, place: Place) -> BlockData:
    """Bring blocks to the backends of their workers."""
    homes = Homes(blocks.tasks, len(blocks.slices))
    placed = [
        blocks.tasks.submit(place_block, place, block, near=home)
        for block, home in zip(blocks.futures, homes.now(), strict=True)
    ]
    return BlockData(blocks.tasks, place, blocks.slices, placed, homes)
