"""Blocks of samples on workers, to which functions are sent."""

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
from gwntf.data.blocks import Blocks, Parts, Wanted
from gwntf.data.dask import work
from gwntf.data.dask.tasks import Future, Tasks, assigned
from gwntf.data.partition import even_pieces


@dataclass(frozen=True, eq=False)
class OnDask(Blocks):
    """Blocks of samples on the workers of a cluster.

    Shared factors are updated here and kept by the scheduler, so that the way back from a lost block leads through that
    block and its neighbours in the graph, and not through the sums over all blocks.
    """

    tasks: Tasks  # Those of the fit
    backend: Backend  # That of this process, a NumPy one
    width: int  # Entries of a sample
    slices: Sequence[slice]  # Which samples each block has
    futures: Sequence[Future]  # The blocks
    worker: work.WorkerBackend  # Where the workers compute
    sparse: bool = False  # Whether blocks store nonzero entries alone

    @cached_property
    def _known(self) -> list[str | None]:
        """Workers of the blocks when they were last assigned."""
        return assigned([None] * len(self.slices), self.tasks.slots())

    def _workers(self) -> list[str | None]:
        """Return the worker of every block, now that workers may have come or gone.

        Tasks of a block run there as long as that worker is there, and anywhere when it is not.
        """
        self._known[:] = assigned(self._known, self.tasks.slots())
        return self._known

    @cached_property
    def _functions(self) -> dict[Callable[..., Any], Future]:
        return {}

    def _sent(self, function: Callable[..., Any]) -> Future:
        """Send a function once: what it builds on a worker, such as kernels, is built once there."""
        if function not in self._functions:
            self._functions[function] = self.tasks.put(function)
        return self._functions[function]

    def _called(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Future]:
        return [
            self.tasks.submit(work.call, function, block, *own, near=near, name=_name(function))
            for block, near, *own in zip(self.futures, self._workers(), *arguments, strict=True)
        ]

    def stream(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> Iterator[Any]:
        waiting = deque(self._called(function, *arguments))
        while waiting:
            yield self.tasks.gather(waiting.popleft())

    def prepared(self, function: Callable[..., Block], *arguments: Sequence[Any]) -> OnDask:
        return replace(self, futures=self._called(function, *arguments))

    def on(self, worker: work.WorkerBackend) -> OnDask:
        """Bring the blocks to a backend of the workers."""
        return replace(self.prepared(worker.place), worker=worker)

    def run(
        self, function: Callable[..., Any], rest: Sequence[Array], *parts: Parts, **options: Any
    ) -> tuple[Parts, Any]:
        done = self._run(function, rest, options, zip(self.futures, self._workers(), *parts, strict=True))
        return done, done

    def _run(
        self, function: Callable[..., Any], rest: Sequence[Array], options: Any, calls: Iterable[Any]
    ) -> list[Future]:
        """Submit a pass over blocks of samples or columns: every call has a block, its worker and its parts."""
        sent, shared = self._sent(function), self.tasks.put([self.backend.to_numpy(part) for part in rest])
        return [
            self.tasks.submit(work.run_block, sent, block, shared, options, *own, near=near, name=_name(function))
            for block, near, *own in calls
        ]

    def apply(self, function: Callable[..., Any], *parts: Parts, **options: Any) -> tuple[Parts, Any]:
        sent = self._sent(function)
        done = [
            self.tasks.submit(work.run_rows, sent, self.worker, options, *own, near=near, name=_name(function))
            for near, *own in zip(self._known, *parts, strict=True)
        ]
        return done, done

    def collect(self, *sums: Any) -> list[Sums]:
        waiting = [
            self.tasks.reduce(work.add_up, self._each(attrgetter("sums"), part)) if isinstance(part, list) else part
            for part in sums
        ]
        found: list[Sums] = self.tasks.gather(waiting)
        return found

    def _each(self, function: Callable[[Any], Any], parts: Parts) -> list[Future]:
        """Apply a small function to what every block has, where it is."""
        pairs = zip(parts, self._known, strict=False)
        return [self.tasks.submit(function, part, near=near, name=_name(function)) for part, near in pairs]

    def put(self, values: Sequence[Any]) -> Parts:
        return [self.tasks.put(value, near=near) for value, near in zip(values, self._known, strict=False)]

    def take(self, parts: Parts) -> list[Any]:
        found: list[Any] = self.tasks.gather(self._each(work.on_host, parts))
        return found

    def rows(self, kept: Parts) -> Array:
        return np.concatenate(self.tasks.gather(self._each(work.host_rows, kept)))

    def neighbour_rows(self, wanted: Wanted, kept: Parts) -> Parts:
        return [
            [self.tasks.submit(work.take_rows, kept[k], rows, near=self._known[k]) for k, rows in needed.items()]
            for needed in wanted
        ]

    @cached_property
    def _columns(self) -> list[Future]:
        """Blocks of columns, as many as there are blocks of samples or fewer."""
        parts = even_pieces(self.width, len(self.slices))
        return [
            self.tasks.submit(
                work.make_columns,
                self.worker,
                part.start,
                list(self.slices),
                [self.tasks.submit(methodcaller("column_part", part), block, name="split") for block in self.futures],
                near=near,
            )
            for part, near in zip(parts, self._workers(), strict=False)
        ]

    def run_columns(
        self, function: Callable[..., Any], rest: Sequence[Array], state: Any, kept: Parts, **options: Any
    ) -> tuple[Any, Any, Parts]:
        rows = self.tasks.submit(np.concatenate, self._each(work.host_rows, kept))
        before = [None] * len(self._columns) if state is None else state
        calls = zip(self._columns, self._known, before, repeat(rows), strict=False)
        done = self._run(function, rest, options, calls)
        whole = self.tasks.reduce(work.add_up, self._each(attrgetter("product"), done))
        split = [self.tasks.submit(getitem, whole, part) for part in self.slices]
        return done, self.tasks.submit(work.join_sums, self._each(attrgetter("sums"), done)), split

    def column_counts(self) -> list[int]:
        counts: list[int] = self.tasks.gather(self._each(methodcaller("fiber_count", 0), self._columns))
        return counts

    def detached(self, parts: Parts) -> Parts:
        return self.put(self.take(parts))


def _name(function: Any) -> str:
    """Name of a function for the dashboard."""
    inner = getattr(function, "func", function)  # that of a `functools.partial`
    return str(getattr(inner, "__name__", type(inner).__name__)).strip("_")
