"""Plain Python threads over code that releases the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numba
from threadpoolctl import ThreadpoolController

from gwntf.engines.protocol import Answer

Item = TypeVar("Item")


class Threads:
    """Threads for independent pieces of work.

    Their number is the smallest of what numba, the BLAS and OpenMP libraries and the processor allow, so that
    ``NUMBA_NUM_THREADS``, ``numba.set_num_threads``, ``OMP_NUM_THREADS``, ``threadpoolctl.threadpool_limits`` and
    joblib's limit on nested threads all hold. While they run, and also where there is only one, each BLAS call inside
    them has one thread: idle threads of BLAS spin, and would take the cores away, and products on several threads
    round otherwise than on one.
    """

    def __init__(self) -> None:
        self._libraries = ThreadpoolController().select(user_api=["blas", "openmp"])

    def count(self) -> int:
        """How many threads may run now."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        allowed = [library.num_threads for library in self._libraries.lib_controllers]
        return int(max(1, min([numba.get_num_threads(), cores, *allowed])))

    def map(self, function: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
        """Apply a function to every item; answers in the order of the items."""
        workers = min(self.count(), len(items))
        with self._libraries.limit(limits=1):
            if workers <= 1:
                return [function(item) for item in items]
            with ThreadPoolExecutor(workers) as pool:
                return list(pool.map(function, items))
