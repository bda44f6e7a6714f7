"""Tasks on a cluster: sent, added up where they are, brought here, and called off together."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4
from weakref import WeakSet

import dask
from distributed import Client, get_client

from gwntf.core import InputError

Future = Any
"""A value on the cluster, or on its way."""

_FAN = 4
_RETRIES = 2


class Tasks:
    """The tasks of one fit.

    Every task is pure and has a key of its own, so that the scheduler can run it again wherever its answer was lost;
    what a task is given from here is kept by the scheduler with it.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._open: WeakSet[Any] = WeakSet()

    def submit(self, function: Callable[..., Any], *arguments: Any, near: str | None = None) -> Future:
        """Send a task; futures among the arguments, or in a list among them, are its dependencies.

        It runs where the scheduler likes it best, or on the worker `near` as long as that one is there.
        """
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1000PB"}):
            future = self.client.submit(
                function,
                *arguments,
                key=f"gwntf-{_name(function)}-{uuid4().hex}",
                pure=False,
                retries=_RETRIES,
                workers=near,
                allow_other_workers=near is not None,
            )
        self._open.add(future)
        return future

    def compute(self, delayed: Sequence[Any]) -> list[Future]:
        """Send what others have put off, such as chunks of a Dask array; it may be theirs, and is not called off."""
        futures = self.client.compute(list(delayed), retries=_RETRIES)
        return list(futures)

    def put(self, value: Any, *, near: str | None = None) -> Future:
        """Bring a value to the cluster in such a way that it is not lost with a worker."""
        return self.submit(_itself, value, near=near)

    def part(self, name: str | int, future: Future, *, near: str | None = None) -> Future:
        """Take an attribute of a value, or an item of a tuple, where it is."""
        take = operator.attrgetter(name) if isinstance(name, str) else operator.itemgetter(name)
        return self.submit(take, future, near=near)

    def total(self, futures: Sequence[Future]) -> Future:
        """Add up, by a tree of tasks."""
        level = list(futures)
        while len(level) > 1:
            groups = [level[start : start + _FAN] for start in range(0, len(level), _FAN)]
            level = [group[0] if len(group) == 1 else self.submit(_added, group) for group in groups]
        return level[0]

    def gather(self, futures: Any) -> Any:
        """Bring the values of futures here."""
        return self.client.gather(futures)

    def seats(self) -> list[str]:
        """Return the workers, each as often as it has threads."""
        return [worker for worker, threads in self.client.nthreads().items() for _ in range(threads)]

    def check(self) -> None:
        """Refuse a cluster without workers."""
        if not self.seats():
            allowed = "a cluster with workers: client.wait_for_workers(1) waits for one"
            raise InputError("engine", "'dask' with a cluster that has no workers", allowed)

    def cancel(self) -> None:
        """Call off everything that somebody still holds."""
        left = list(self._open)
        if left and self.client.status == "running":
            self.client.cancel(left, force=True)


def current_client() -> Client:
    """Return the client in use, which is the last one made."""
    try:
        return get_client()
    except ValueError:
        allowed = (
            "a client: `from distributed import Client; client = Client()` starts workers on this machine"
        )
        raise InputError("engine", "'dask' without a cluster", allowed) from None


def _name(function: Any) -> str:
    return str(getattr(getattr(function, "func", function), "__name__", type(function).__name__)).strip("_")


def _itself(value: Any) -> Any:
    return value


def _added(values: Sequence[Any]) -> Any:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total
