"""Conversion of a Dask array to blocks on workers."""

import math
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from gwntf.backends import Backend, get_backend
from gwntf.core import InputError
from gwntf.data.blocks import Blocks
from gwntf.data.dask import work
from gwntf.data.dask.blocks import OnDask
from gwntf.data.dask.tasks import RETRIES, Future, Tasks, assign_workers
from gwntf.data.sources import has_sparse_chunks

_HOST = work.WorkerBackend(name="numpy")
"""Backend of the workers before a fit, for checks and statistics."""


class Cluster:
    """A Dask client and the backend of its workers; see `backends.get_backend`."""

    def __init__(self, client: Any, engine: str = "auto", device: str | None = None) -> None:
        self._client, self._worker = client, work.WorkerBackend(device, engine)

    @cached_property
    def tasks(self) -> Tasks:
        """The tasks of this fit."""
        return Tasks(self._client)

    @property
    def backend(self) -> Backend:
        """The backend of this process, for small computations."""
        return get_backend("auto")

    def close(self) -> None:
        """Release all tasks and their results."""
        if "tasks" in vars(self):
            self.tasks.release()

    def read(self, X: Any, dtype: np.dtype[Any]) -> OnDask:
        """Return the blocks of a Dask array, computed on the workers; entries are not checked."""
        self.check()
        slices, chunks = self._chunks(X)
        workers = assign_workers([None] * len(slices), self.tasks.slots())
        blocks = [
            self.tasks.submit(work.read_block, _HOST, chunk, dtype, worker=worker)
            for chunk, worker in zip(chunks, workers, strict=True)
        ]
        return OnDask(self.tasks, self.backend, math.prod(X.shape[1:]), slices, blocks, _HOST, has_sparse_chunks(X))

    def _chunks(self, X: Any) -> tuple[list[slice], list[Future]]:
        """Merge the chunks of a Dask array to at most one per thread of the cluster, computed on the workers."""
        ends = np.array(list(accumulate(X.chunks[0])))
        count = len(self.tasks.slots())
        wanted = (np.arange(1, count + 1) * X.shape[0]) / count
        stops = sorted({int(ends[np.abs(ends - end).argmin()]) for end in wanted} - {0})
        slices = [slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False)]
        sizes = tuple(part.stop - part.start for part in slices)
        merged = X.rechunk({0: sizes} | dict.fromkeys(range(1, X.ndim), -1))
        # These may be shared with other computations: Dask releases them when nothing refers to them
        return slices, self.tasks.client.compute(list(merged.to_delayed().ravel()), retries=RETRIES)

    def check(self) -> None:
        """Raise an error if the cluster has no workers."""
        if not self.tasks.slots():
            allowed = "a cluster with workers: call client.wait_for_workers(1)"
            raise InputError("X", "a Dask array on a cluster that has no workers", allowed)

    def to_workers(self, blocks: Blocks) -> OnDask:
        """Move blocks that are on workers to the backend of the workers."""
        if not isinstance(blocks, OnDask):
            raise TypeError(f"{type(blocks).__name__} is not on a cluster")
        return blocks.on(self._worker)
