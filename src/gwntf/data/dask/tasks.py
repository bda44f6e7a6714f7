"""Tasks on a cluster: assigned to workers, submitted, reduced on workers, gathered, and released together."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4
from weakref import WeakSet

import dask
from distributed import Client, futures_of, get_client, wait

Future = Any
"""A value on the cluster, or a task that computes it."""

_FAN_IN = 4
RETRIES = 2

_POLL_SECONDS = 5.0
"""Seconds between searches for tasks that wait for a lost worker."""


class Tasks:
    """The tasks of one fit.

    Every task is pure and has a unique key, so that the scheduler can run it again if its result is lost; the scheduler
    stores the arguments with the task.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._open: WeakSet[Any] = WeakSet()

    def submit(
        self, function: Callable[..., Any], *arguments: Any, worker: str | None = None, name: str | None = None
    ) -> Future:
        """Submit a task; futures among the arguments, or in a list among them, are its dependencies.

        It runs on the given worker as long as that worker exists, otherwise where the scheduler decides.
        """
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1000PB"}):
            future = self.client.submit(
                function,
                *arguments,
                key=f"gwntf-{name or function.__name__.strip('_')}-{uuid4().hex}",
                pure=False,
                retries=RETRIES,
                workers=worker,
                allow_other_workers=worker is not None,
            )
        self._open.add(future)
        return future

    def put(self, value: Any, *, worker: str | None = None) -> Future:
        """Send a value to the cluster; the scheduler keeps a copy, so that it survives the loss of a worker."""
        return self.submit(_identity, value, worker=worker, name="put")

    def reduce(self, function: Callable[[Sequence[Any]], Any], futures: Sequence[Future]) -> Future:
        """Combine values by a tree of tasks."""
        level = list(futures)
        while len(level) > 1:
            groups = [level[start : start + _FAN_IN] for start in range(0, len(level), _FAN_IN)]
            level = [group[0] if len(group) == 1 else self.submit(function, group) for group in groups]
        return level[0]

    def gather(self, futures: Any) -> Any:
        """Return the values of futures; while waiting, release tasks that wait for a lost worker."""
        while True:
            try:
                wait(futures_of(futures), timeout=_POLL_SECONDS)
                return self.client.gather(futures)
            except TimeoutError:
                self.client.run_on_scheduler(_release_waiting)

    def slots(self) -> list[str]:
        """Return the addresses of the workers, each repeated for each of its threads."""
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
    """Return the current client, which is the last one created, or None."""
    try:
        return get_client()
    except ValueError:
        return None


def assign_workers(workers: Sequence[str | None], slots: Sequence[str]) -> list[str | None]:
    """Assign every block to a worker; blocks with a free slot stay, extra blocks go to the least loaded worker.

    Without an assignment the scheduler would leave blocks where they were computed, because moving one takes longer
    than a task: two blocks could stay on one worker for the whole fit while another worker is idle. `workers` are those
    of the blocks so far; `slots` contains every worker once per thread.
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


def _release_waiting(dask_scheduler: Any) -> None:
    """Let tasks run anywhere if their preferred worker has left.

    A task that is lost while there is no other worker waits; when a worker joins, the scheduler only considers tasks
    that prefer this worker or none.
    """
    for task in dask_scheduler.unrunnable:
        if task.loose_restrictions and str(task.key).startswith("gwntf-"):
            task.worker_restrictions = set()
    for worker in list(dask_scheduler.running):
        found = dask_scheduler.bulk_schedule_unrunnable_after_adding_worker(worker)
        dask_scheduler.transitions(found, "gwntf-free-waiting")


def _identity(value: Any) -> Any:
    return value
