"""From a Dask array to blocks on workers."""

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from gwntf.backends import Backend, get_backend
from gwntf.core import InputError
from gwntf.data.blocks import Blocks
from gwntf.data.dask import work
from gwntf.data.dask.blocks import OnDask
from gwntf.data.dask.tasks import RETRIES, Future, Tasks, assigned
from gwntf.data.sources import has_sparse_chunks

_HOST = work.WorkerBackend(name="numpy")
"""Before a fit, blocks are checked and measured with NumPy on the workers."""


class Cluster:
    """A client of Dask, and the backend of its workers; see `backends.get_backend`."""

    def __init__(self, client: Any, engine: str = "auto", device: str | None = None) -> None:
        self._client, self._worker = client, work.WorkerBackend(device, engine)

    @cached_property
    def tasks(self) -> Tasks:
        """The tasks of this fit."""
        return Tasks(self._client)

    @property
    def backend(self) -> Backend:
        """That of this process: what is small is computed here."""
        return get_backend("auto")

    def close(self) -> None:
        """Leave nothing on the cluster."""
        if "tasks" in vars(self):
            self.tasks.cancel()

    def read(self, X: Any, dtype: np.dtype[Any]) -> OnDask:
        """Have the workers compute a Dask array; entries are not checked."""
        slices, parts = self._dask_parts(X)
        blocks = [
            self.tasks.submit(work.read_block, _HOST, part, rows, dtype, near=worker)
            for (part, rows), worker in zip(parts, self._workers(slices), strict=True)
        ]
        return self._on_dask(X.shape, slices, blocks, has_sparse_chunks(X))

    def _workers(self, slices: Sequence[slice]) -> list[str | None]:
        return assigned([None] * len(slices), self.tasks.slots())

    def _on_dask(self, shape: Sequence[int], slices: list[slice], blocks: list[Future], sparse: bool) -> OnDask:
        return OnDask(self.tasks, self.backend, math.prod(shape[1:]), slices, blocks, _HOST, sparse)

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
        """Refuse a cluster without workers."""
        if not self.tasks.slots():
            allowed = "a cluster with workers: client.wait_for_workers(1) waits for one"
            raise InputError("X", "a Dask array on a cluster that has no workers", allowed)

    def place(self, blocks: Blocks) -> OnDask:
        """Bring blocks that are on workers to the backend of these workers."""
        if not isinstance(blocks, OnDask):
            raise TypeError(f"{type(blocks).__name__} is not on a cluster")
        return blocks.on(self._worker)
