"""Plain Python threads over code that releases the interpreter lock."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeVar

import numba
from threadpoolctl import ThreadpoolController

from gwntf.backends.protocol import Answer

Item = TypeVar("Item")


class Threads:
    """Threads for independent pieces of work.

    Their number is the smallest of what numba, the BLAS and OpenMP libraries and the processor allow, so that
    ``NUMBA_NUM_THREADS``, ``numba.set_num_threads``, ``OMP_NUM_THREADS``, ``threadpoolctl.threadpool_limits`` and
    joblib's limit on nested threads all hold. While they are held, and also where there is only one, each BLAS call
    has one thread: idle threads of BLAS spin, and would take the cores away, and products on several threads
    round otherwise than on one.
    """

    def __init__(self) -> None:
        self._libraries = ThreadpoolController().select(user_api=["blas", "openmp"])
        self._lock, self._own = threading.Lock(), threading.local()
        self._holders, self._held, self._workers = 0, ExitStack(), 1
        self._pool: ThreadPoolExecutor | None = None

    def count(self) -> int:
        """How many threads may run now."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        allowed = [library.num_threads for library in self._libraries.lib_controllers]
        return int(max(1, min([numba.get_num_threads(), cores, *allowed])))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the threads from one `map` to the next, which takes longer to start them than many a product does."""
        with self._lock:
            if self._holders == 0:
                self._start()
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if self._holders == 0:
                    self._pool = None
                    self._held.close()

    def map(self, function: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
        """Apply a function to every item; answers in the order of the items."""
        if getattr(self._own, "busy", False):  # a piece of a piece
            return [function(item) for item in items]
        with self.held():
            if self._pool is None or len(items) == 1:
                return [function(item) for item in items]
            return self._shared(self._pool, function, items)

    def _shared(
        self, pool: ThreadPoolExecutor, function: Callable[[Item], Answer], items: Sequence[Item]
    ) -> list[Answer]:
        """Let the thread that asks and those of the pool take the items one by one, until there are none left."""
        answers: dict[int, Answer] = {}
        failures: dict[int, BaseException] = {}
        left = deque(range(len(items)))

        def work() -> None:
            for place in _taken(left):
                try:
                    answers[place] = function(items[place])
                except BaseException as error:
                    failures[place] = error
                    left.clear()

        helpers = [pool.submit(work) for _ in range(min(self._workers, len(items)) - 1)]
        self._own.busy = True
        try:
            work()
        finally:
            self._own.busy = False
            left.clear()
            for helper in helpers:
                if not helper.cancel():  # one that has not begun waits for other work than this
                    helper.result()
        _raise_first(failures)
        return [answers[place] for place in range(len(items))]

    def _start(self) -> None:
        self._workers = self.count()
        self._held.enter_context(self._libraries.limit(limits=1))
        if self._workers > 1:
            pool = ThreadPoolExecutor(self._workers - 1, initializer=self._begin)
            self._pool = self._held.enter_context(pool)

    def _begin(self) -> None:
        self._own.busy = True


def _taken(places: deque[int]) -> Iterator[int]:
    """Take places until none are left, beside other threads that do so too."""
    with suppress(IndexError):
        while True:
            yield places.popleft()


def _raise_first(failures: dict[int, BaseException]) -> None:
    """Raise the error of the first item that failed, and hold none of them any longer."""
    if failures:
        error = failures[min(failures)]
        failures.clear()
        try:
            raise error
        finally:
            del error
