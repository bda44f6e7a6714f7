"""Blocks of samples on workers, and passes over them as tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from operator import attrgetter, getitem, methodcaller
from typing import Any

import numpy as np

from gwntf.backends import Backend
from gwntf.core import Array
from gwntf.data.block import Block, Sums
from gwntf.data.blocks import Blocks, HaloIndices, PerBlock
from gwntf.data.dask import work
from gwntf.data.dask.tasks import Future, Tasks, assign_workers
from gwntf.data.partition import even_pieces


@dataclass(frozen=True, eq=False)
class OnDask(Blocks):
    """Blocks of samples on the workers of a cluster.

    Shared factors are updated in this process and sent with the tasks. Thus recomputing a lost block needs only that
    block and its neighbours in the graph, and not the sums over all blocks.
    """

    tasks: Tasks  # Tasks of the fit
    backend: Backend  # Backend of this process, with NumPy arrays
    width: int  # Number of entries of a sample
    slices: Sequence[slice]  # Samples of each block
    futures: Sequence[Future]  # The blocks
    worker: work.WorkerBackend  # Backend of the workers
    sparse: bool = False  # Whether blocks store only nonzero entries
    remote: bool = True

    @cached_property
    def _assignment(self) -> list[str | None]:
        """Worker of every block, as last assign_workers."""
        return assign_workers([None] * len(self.slices), self.tasks.slots())

    def _update_assignment(self) -> list[str | None]:
        """Update the assignment, because workers may have joined or left, and return it.

        Tasks of a block run on its worker, or anywhere if that worker has left.
        """
        self._assignment[:] = assign_workers(self._assignment, self.tasks.slots())
        return self._assignment

    @cached_property
    def _functions(self) -> dict[Callable[..., Any], Future]:
        return {}

    def _send_once(self, function: Callable[..., Any]) -> Future:
        """Send a function once, so that its caches on a worker, such as kernels, are built once."""
        if function not in self._functions:
            self._functions[function] = self.tasks.put(function)
        return self._functions[function]

    def _submit_each(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Future]:
        return [
            self.tasks.submit(work.call, function, block, *own, worker=worker, name=_name(function))
            for block, worker, *own in zip(self.futures, self._update_assignment(), *arguments, strict=True)
        ]

    def stream(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> Iterator[Any]:
        waiting = deque(self._submit_each(function, *arguments))
        while waiting:
            yield self.tasks.gather(waiting.popleft())

    def prepared(self, function: Callable[..., Block], *arguments: Sequence[Any]) -> OnDask:
        return replace(self, futures=self._submit_each(function, *arguments))

    def on(self, worker: work.WorkerBackend) -> OnDask:
        """Move the blocks to a backend of the workers."""
        return replace(self.prepared(worker.to_device), worker=worker)

    def run(
        self, function: Callable[..., Any], rest: Sequence[Array], *parts: PerBlock, **options: Any
    ) -> tuple[PerBlock, Any]:
        done = self._run(function, rest, options, zip(self.futures, self._update_assignment(), *parts, strict=True))
        return done, done

    def _run(
        self, function: Callable[..., Any], rest: Sequence[Array], options: Any, calls: Iterable[Any]
    ) -> list[Future]:
        """Submit a pass over blocks of samples or columns; `calls` are tuples of a block, its worker and its parts."""
        sent, shared = self._send_once(function), self.tasks.put([self.backend.to_numpy(part) for part in rest])
        return [
            self.tasks.submit(work.run_block, sent, block, shared, options, *own, worker=worker, name=_name(function))
            for block, worker, *own in calls
        ]

    def apply(self, function: Callable[..., Any], *parts: PerBlock, **options: Any) -> tuple[PerBlock, Any]:
        sent = self._send_once(function)
        done = [
            self.tasks.submit(work.run_rows, sent, self.worker, options, *own, worker=worker, name=_name(function))
            for worker, *own in zip(self._assignment, *parts, strict=True)
        ]
        return done, done

    def collect(self, *sums: Any) -> list[Sums]:
        waiting = [
            self.tasks.reduce(work.add_up, self._each(attrgetter("sums"), part)) if isinstance(part, list) else part
            for part in sums
        ]
        found: list[Sums] = self.tasks.gather(waiting)
        return found

    def _each(self, function: Callable[[Any], Any], parts: PerBlock) -> list[Future]:
        """Apply a small function to one value of every block, on its worker."""
        pairs = zip(parts, self._assignment, strict=False)
        return [self.tasks.submit(function, part, worker=worker, name=_name(function)) for part, worker in pairs]

    def put(self, values: Sequence[Any]) -> PerBlock:
        return [self.tasks.put(value, worker=worker) for value, worker in zip(values, self._assignment, strict=False)]

    def take(self, parts: PerBlock) -> list[Any]:
        found: list[Any] = self.tasks.gather(self._each(work.on_host, parts))
        return found

    def rows(self, kept: PerBlock) -> Array:
        return np.concatenate(self.tasks.gather(self._each(work.host_rows, kept)))

    def halo_rows(self, wanted: HaloIndices, kept: PerBlock) -> PerBlock:
        return [
            [self.tasks.submit(work.take_rows, kept[k], rows, worker=self._assignment[k]) for k, rows in needed.items()]
            for needed in wanted
        ]

    @cached_property
    def _columns(self) -> list[Future]:
        """Blocks of columns, at most as many as blocks of samples."""
        parts = even_pieces(self.width, len(self.slices))
        return [
            self.tasks.submit(
                work.make_columns,
                self.worker,
                part.start,
                list(self.slices),
                [self.tasks.submit(methodcaller("column_part", part), block, name="split") for block in self.futures],
                worker=worker,
            )
            for part, worker in zip(parts, self._update_assignment(), strict=False)
        ]

    def run_columns(
        self, function: Callable[..., Any], rest: Sequence[Array], state: Any, kept: PerBlock, **options: Any
    ) -> tuple[Any, Any, PerBlock]:
        rows = self.tasks.submit(np.concatenate, self._each(work.host_rows, kept))
        before = [None] * len(self._columns) if state is None else state
        calls = zip(self._columns, self._assignment, before, repeat(rows), strict=False)
        done = self._run(function, rest, options, calls)
        total = self.tasks.reduce(work.add_up, self._each(attrgetter("product"), done))
        split = [self.tasks.submit(getitem, total, part) for part in self.slices]
        return done, self.tasks.submit(work.join_sums, self._each(attrgetter("sums"), done)), split

    def column_counts(self) -> list[int]:
        counts: list[int] = self.tasks.gather(self._each(methodcaller("fiber_count", 0), self._columns))
        return counts

    def detached(self, parts: PerBlock) -> PerBlock:
        return self.put(self.take(parts))


def _name(function: Any) -> str:
    """Return the name of a function for the dashboard."""
    inner = getattr(function, "func", function)  # the function of a `functools.partial`
    return str(getattr(inner, "__name__", type(inner).__name__)).strip("_")
