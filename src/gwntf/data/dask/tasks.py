"""Tasks on a cluster: assigned to workers, submitted, reduced on workers, gathered, and released together."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4
from weakref import WeakSet

import dask
from distributed import Client, futures_of, get_client, wait

Future = Any
"""A value on the cluster, or a task that will make it."""

_FAN = 4
RETRIES = 2

_PATIENCE = 5.0
"""Seconds after which tasks that wait for a lost worker are looked for."""


class Tasks:
    """The tasks of one fit.

    Every task is pure and has a key of its own, so that the scheduler can run it again wherever its result was lost;
    what a task is given from here is kept by the scheduler with it.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._open: WeakSet[Any] = WeakSet()

    def submit(
        self, function: Callable[..., Any], *arguments: Any, near: str | None = None, name: str | None = None
    ) -> Future:
        """Submit a task; futures among the arguments, or in a list among them, are its dependencies.

        It runs where the scheduler puts it, or on the worker `near` as long as that one is there.
        """
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1000PB"}):
            future = self.client.submit(
                function,
                *arguments,
                key=f"gwntf-{name or function.__name__.strip('_')}-{uuid4().hex}",
                pure=False,
                retries=RETRIES,
                workers=near,
                allow_other_workers=near is not None,
            )
        self._open.add(future)
        return future

    def put(self, value: Any, *, near: str | None = None) -> Future:
        """Bring a value to the cluster in such a way that it is not lost with a worker."""
        return self.submit(_identity, value, near=near, name="put")

    def reduce(self, function: Callable[[Sequence[Any]], Any], futures: Sequence[Future]) -> Future:
        """Combine values, a few at a time, by a tree of tasks."""
        level = list(futures)
        while len(level) > 1:
            groups = [level[start : start + _FAN] for start in range(0, len(level), _FAN)]
            level = [group[0] if len(group) == 1 else self.submit(function, group) for group in groups]
        return level[0]

    def gather(self, futures: Any) -> Any:
        """Bring the values of futures here, and meanwhile free tasks that wait for a lost worker."""
        while True:
            try:
                wait(futures_of(futures), timeout=_PATIENCE)
                return self.client.gather(futures)
            except TimeoutError:
                self.client.run_on_scheduler(_free_waiting)

    def slots(self) -> list[str]:
        """Return the workers, each as often as it has threads."""
        return [worker for worker, threads in self.client.nthreads().items() for _ in range(threads)]

    def release(self) -> None:
        """Release all futures, so that the scheduler drops the tasks and their results.

        `Client.cancel` is not used: it fails on the scheduler, which then disconnects the client, if a task has
        dependents that were released before.
        """
        if self.client.status == "running":
            for future in list(self._open):
                future.release()


def current_client() -> Client | None:
    """Return the client in use, which is the last one made, or None."""
    try:
        return get_client()
    except ValueError:
        return None


def assigned(workers: Sequence[str | None], slots: Sequence[str]) -> list[str | None]:
    """Assign every block to a worker; blocks with a free slot stay, extra blocks go to the least loaded worker.

    The scheduler alone would leave blocks where they were made, since moving one takes longer than a step of it: two
    blocks that were made on one worker would stay there for the whole fit, beside an idle one. `workers` are those of
    the blocks so far, and `slots` names every worker as often as it has threads.
    """
    free, threads = Counter(slots), Counter(slots)
    found: list[str | None] = []
    for worker in workers:
        stays = worker is not None and free[worker] > 0
        found.append(worker if stays else None)
        if stays:
            free[worker] -= 1  # type: ignore[index]
    for block, worker in enumerate(found):
        if worker is None and threads:
            best = max(threads, key=lambda name: (free[name] / threads[name], -slots.index(name)))
            found[block] = best
            free[best] -= 1
    return found


def _free_waiting(dask_scheduler: Any) -> None:
    """Let tasks run anywhere that prefer a worker which is gone.

    A task that is lost while there is no other worker waits; when a worker joins, the scheduler only considers tasks
    that prefer this one, or none.
    """
    for task in dask_scheduler.unrunnable:
        if task.loose_restrictions and str(task.key).startswith("gwntf-"):
            task.worker_restrictions = set()
    for worker in list(dask_scheduler.running):
        found = dask_scheduler.bulk_schedule_unrunnable_after_adding_worker(worker)
        dask_scheduler.transitions(found, "gwntf-free-waiting")


def _identity(value: Any) -> Any:
    return value
