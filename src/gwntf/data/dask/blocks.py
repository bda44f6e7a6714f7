"""Blocks of samples on workers, to which functions are sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gwntf.backends import Backend
from gwntf.core import Array
from gwntf.data.block import Block, Sums
from gwntf.data.blocks import Blocks, Parts, Wanted
from gwntf.data.dask import work
from gwntf.data.dask.assignment import Assignment
from gwntf.data.dask.tasks import Future, Tasks
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
    def _assignment(self) -> Assignment:
        return Assignment(self.tasks, len(self.slices))

    @cached_property
    def _functions(self) -> dict[Callable[..., Any], Future]:
        return {}

    def _sent(self, function: Callable[..., Any]) -> Future:
        """Send a function once: what it builds on a worker, such as kernels, is built once there."""
        if function not in self._functions:
            self._functions[function] = self.tasks.put(function)
        return self._functions[function]

    def stream(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> Iterator[Any]:
        calls = zip(self.futures, self._assignment.now(), *arguments, strict=True)
        waiting = deque(
            self.tasks.submit(work.call, function, block, *own, near=near, name=_name(function))
            for block, near, *own in calls
        )
        while waiting:
            yield self.tasks.gather(waiting.popleft())

    def prepared(self, function: Callable[..., Block], *arguments: Sequence[Any]) -> OnDask:
        calls = zip(self.futures, self._assignment.now(), *arguments, strict=True)
        made = [
            self.tasks.submit(work.call, function, block, *own, near=near, name=_name(function))
            for block, near, *own in calls
        ]
        return replace(self, futures=made)

    def on(self, worker: work.WorkerBackend) -> OnDask:
        placed = [
            self.tasks.submit(work.place_block, worker, block, near=near)
            for block, near in zip(self.futures, self._assignment.now(), strict=True)
        ]
        return replace(self, futures=placed, worker=worker)

    def run(
        self, function: Callable[..., Any], rest: Sequence[Array], *parts: Parts, **options: Any
    ) -> tuple[Parts, Any]:
        sent, shared = self._sent(function), self.tasks.put([self.backend.to_numpy(part) for part in rest])
        calls = zip(self.futures, self._assignment.now(), *parts, strict=True)
        done = [
            self.tasks.submit(work.run_block, sent, block, shared, options, *own, near=near, name=_name(function))
            for block, near, *own in calls
        ]
        return done, done

    def apply(self, function: Callable[..., Any], *parts: Parts, **options: Any) -> tuple[Parts, Any]:
        sent = self._sent(function)
        calls = zip(self._assignment.known, *parts, strict=True)
        done = [
            self.tasks.submit(work.run_rows, sent, self.worker, options, *own, near=near, name=_name(function))
            for near, *own in calls
        ]
        return done, done

    def collect(self, *sums: Any) -> list[Sums]:
        waiting = [
            self.tasks.reduce(work.add_up, self._each(work.sums_of, part)) if isinstance(part, list) else part
            for part in sums
        ]
        found: list[Sums] = self.tasks.gather(waiting)
        return found

    def _each(self, function: Callable[[Any], Any], parts: Parts) -> list[Future]:
        """Apply a small function to what every block has, where it is."""
        near = self._assignment.known
        return [self.tasks.submit(function, part, near=worker) for part, worker in zip(parts, near, strict=False)]

    def put(self, values: Sequence[Any]) -> Parts:
        return [self.tasks.put(value, near=near) for value, near in zip(values, self._assignment.known, strict=False)]

    def take(self, parts: Parts) -> list[Any]:
        found: list[Any] = self.tasks.gather(self._each(work.on_host, parts))
        return found

    def rows(self, kept: Parts) -> Array:
        return np.concatenate(self.tasks.gather(self._each(work.host_rows, kept)))

    def neighbour_rows(self, wanted: Wanted, kept: Parts) -> Parts:
        near = self._assignment.known
        return [
            [self.tasks.submit(work.take_rows, kept[block], rows, near=near[block]) for block, rows in needed.items()]
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
                [self.tasks.submit(work.cut_columns, block, part) for block in self.futures],
                near=near,
            )
            for part, near in zip(parts, self._assignment.now(), strict=False)
        ]

    def run_columns(
        self, function: Callable[..., Any], rest: Sequence[Array], state: Any, kept: Parts, **options: Any
    ) -> tuple[Any, Any, Parts]:
        sent, shared = self._sent(function), self.tasks.put([self.backend.to_numpy(part) for part in rest])
        rows = self.tasks.submit(work.join_rows, self._each(work.host_rows, kept))
        before = [None] * len(self._columns) if state is None else state
        done = [
            self.tasks.submit(
                work.run_columns, sent, block, shared, options, own, rows, near=near, name=_name(function)
            )
            for block, own, near in zip(self._columns, before, self._assignment.known, strict=False)
        ]
        whole = self.tasks.reduce(work.add_up, self._each(work.product_of, done))
        split = [self.tasks.submit(work.slice_rows, whole, part) for part in self.slices]
        return done, self.tasks.submit(work.join_sums, self._each(work.sums_of, done)), split

    def column_counts(self) -> list[int]:
        counts: list[int] = self.tasks.gather(self._each(work.count_columns, self._columns))
        return counts

    def detached(self, parts: Parts) -> Parts:
        return self.put(self.take(parts))


def _name(function: Any) -> str:
    """Name of a function for the dashboard."""
    inner = getattr(function, "func", function)
    return str(getattr(inner, "__name__", type(inner).__name__)).strip("_")
