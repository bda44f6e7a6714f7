"""Python threads for code that releases the interpreter lock."""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from typing import TypeVar

import numba
from threadpoolctl import ThreadpoolController

from gwntf.backends.protocol import Result

Item = TypeVar("Item")


class Threads:
    """A thread pool for independent items of work.

    The number of threads is the smallest of what numba, the BLAS and OpenMP libraries and the processor allow, so that
    ``NUMBA_NUM_THREADS``, ``numba.set_num_threads``, ``OMP_NUM_THREADS``, ``threadpoolctl.threadpool_limits`` and
    joblib's limit on nested threads all apply. While the pool is running, even with one thread, each BLAS call uses one
    thread: idle BLAS threads spin and occupy cores, and rounding depends on their number.
    """

    def __init__(self) -> None:
        self._libraries = _libraries(len(sys.modules))
        self._lock, self._own = threading.Lock(), threading.local()
        self._users, self._resources, self._workers = 0, ExitStack(), 1
        self._pool: ThreadPoolExecutor | None = None

    def count(self) -> int:
        """Return the number of threads that may run now."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        allowed = [library.num_threads for library in self._libraries.lib_controllers]
        return int(max(1, min([numba.get_num_threads(), cores, *allowed])))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the threads alive between calls of `map`, because starting them takes longer than small products."""
        with self._lock:
            if self._users == 0:
                self._start()
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._pool = None
                    self._resources.close()

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Apply a function to every item; results are in the order of the items."""
        if getattr(self._own, "busy", False):  # a nested call
            return [function(item) for item in items]
        with self.running():
            if self._pool is None or len(items) == 1:
                return [function(item) for item in items]
            return self._map_in_pool(self._pool, function, items)

    def _map_in_pool(
        self, pool: ThreadPoolExecutor, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Process the items one by one on the calling thread and on those of the pool."""
        results: dict[int, Result] = {}
        failures: dict[int, BaseException] = {}
        queue = deque(range(len(items)))

        def work() -> None:
            for index in _popped(queue):
                try:
                    results[index] = function(items[index])
                except BaseException as error:
                    failures[index] = error
                    queue.clear()

        helpers = [pool.submit(work) for _ in range(min(self._workers, len(items)) - 1)]
        self._own.busy = True
        try:
            work()
        finally:
            self._own.busy = False
            queue.clear()
            for helper in helpers:
                if not helper.cancel():  # it has not started: the pool is busy with another caller
                    helper.result()
        _raise_first(failures)
        return [results[index] for index in range(len(items))]

    def _start(self) -> None:
        self._workers = self.count()
        self._resources.enter_context(self._libraries.limit(limits=1))
        if self._workers > 1:
            pool = ThreadPoolExecutor(self._workers - 1, initializer=self._mark_busy)
            self._pool = self._resources.enter_context(pool)

    def _mark_busy(self) -> None:
        self._own.busy = True


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:  # noqa: ARG001
    """Return the BLAS and OpenMP libraries that are loaded; they are searched for again after an import."""
    return ThreadpoolController().select(user_api=["blas", "openmp"])


def _popped(queue: deque[int]) -> Iterator[int]:
    """Remove and yield items until the queue is empty; several threads may do so at once."""
    with suppress(IndexError):
        while True:
            yield queue.popleft()


def _raise_first(failures: dict[int, BaseException]) -> None:
    """Raise the error of the first item that failed, and keep no reference to any of them."""
    if failures:
        error = failures[min(failures)]
        failures.clear()
        try:
            raise error
        finally:
            del error
