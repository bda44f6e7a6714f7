"""From data to blocks on workers: sources are read there, arrays are sent."""

import math
import mmap
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import Backend, get_backend
from gwntf.core import InputError
from gwntf.data.blocks import Blocks, InMemory
from gwntf.data.dask import work
from gwntf.data.dask.blocks import OnDask
from gwntf.data.dask.tasks import RETRIES, Future, Tasks, assigned, current_client
from gwntf.data.partition import even_pieces
from gwntf.data.sources import has_sparse_chunks, is_dask, is_mapped

_HOST = work.WorkerBackend(name="numpy")
"""Before a fit, blocks are checked and measured with NumPy on the workers."""


class Cluster:
    """The client in use when it is first needed, and the backend of its workers; see `backends.get_backend`."""

    def __init__(self, device: str | None = None, precision: str = "highest") -> None:
        self._worker = work.WorkerBackend(device, precision)

    @cached_property
    def tasks(self) -> Tasks:
        """The tasks of this session, on the client in use when they are first needed."""
        return Tasks(current_client())

    @property
    def backend(self) -> Backend:
        """That of this process: what is small is computed here."""
        return get_backend("auto")

    def close(self) -> None:
        """Leave nothing on the cluster."""
        if "tasks" in vars(self):
            self.tasks.cancel()

    def read(self, X: Any, dtype: np.dtype[Any]) -> OnDask:
        """Have the workers read a memmap, a zarr array or a Dask array; entries are not checked."""
        slices, parts = self._dask_parts(X) if is_dask(X) else self._parts(X)
        blocks = [
            self.tasks.submit(work.read_block, _HOST, part, rows, dtype, near=worker)
            for (part, rows), worker in zip(parts, self._workers(slices), strict=True)
        ]
        return self._on_dask(X.shape, slices, blocks, has_sparse_chunks(X))

    def _workers(self, slices: Sequence[slice]) -> list[str | None]:
        return assigned([None] * len(slices), self.tasks.slots())

    def _on_dask(self, shape: Sequence[int], slices: list[slice], blocks: list[Future], sparse: bool) -> OnDask:
        return OnDask(self.tasks, self.backend, math.prod(shape[1:]), slices, blocks, _HOST, sparse)

    def _parts(self, X: Any) -> tuple[list[slice], list[tuple[Any, slice]]]:
        """Give every thread one block, to be read from the file; parts of a mapped file are sent."""
        slices = list(even_pieces(X.shape[0], len(self.tasks.slots())))
        if is_mapped(X) and not _is_file(X):
            return slices, [(self.tasks.put(np.asarray(X[part])), slice(None)) for part in slices]
        source = self.tasks.put(_MappedFile(X) if is_mapped(X) else X)
        return slices, [(source, part) for part in slices]

    def _dask_parts(self, X: Any) -> tuple[list[slice], list[tuple[Any, slice]]]:
        """Join the chunks of a Dask array to at most one block for each thread, split where it is split."""
        ends = np.array(list(accumulate(X.chunks[0])))
        count = len(self.tasks.slots())
        wanted = (np.arange(1, count + 1) * X.shape[0]) / count
        stops = sorted({int(ends[np.abs(ends - place).argmin()]) for place in wanted} - {0})
        slices = [slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False)]
        sizes = tuple(part.stop - part.start for part in slices)
        whole = X.rechunk({0: sizes} | dict.fromkeys(range(1, X.ndim), -1))
        # These may be shared with other computations, and are not cancelled
        chunks = self.tasks.client.compute(list(whole.to_delayed().ravel()), retries=RETRIES)
        return slices, [(chunk, slice(None)) for chunk in chunks]

    def check(self) -> None:
        """Refuse a cluster without workers, or no cluster at all."""
        if not self.tasks.slots():
            allowed = "a cluster with workers: client.wait_for_workers(1) waits for one"
            raise InputError("engine", "'dask' with a cluster that has no workers", allowed)

    def place(self, blocks: Blocks) -> OnDask:
        """Bring blocks to the backend of the workers; a block that is here is split and sent.

        The scheduler keeps a copy of what is sent, for when a worker is lost.
        """
        if isinstance(blocks, OnDask):
            return blocks.on(self._worker)
        if not isinstance(blocks, InMemory):
            raise TypeError(f"{type(blocks).__name__} cannot be sent to a cluster")
        block = blocks.block
        slices = list(even_pieces(block.shape[0], len(self.tasks.slots())))
        host, near = block.on(get_backend("numpy")), self._workers(slices)
        sent = [self.tasks.put(host.select(part), near=worker) for part, worker in zip(slices, near, strict=True)]
        return self._on_dask(block.shape, slices, sent, block.sparse).on(self._worker)


class _MappedFile:
    """A `numpy.memmap` that is sent as its path."""

    def __init__(self, X: Any) -> None:
        self._path, self._dtype, self._offset, self._shape = X.filename, X.dtype, X.offset, X.shape

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """Read some samples."""
        found: NDArray[Any] = np.memmap(self._path, self._dtype, "r", self._offset, self._shape)[rows]
        return found


def _is_file(X: Any) -> bool:
    """Whether this is what was mapped, in rows, and not a part of it."""
    return isinstance(X.base, mmap.mmap) and bool(X.flags.c_contiguous)
