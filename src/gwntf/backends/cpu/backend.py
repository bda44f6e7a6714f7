"""The backend with compiled transports and updates; everything else is inherited from the NumPy backend."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from gwntf.backends.cpu.entrywise import ratio_and_kl
from gwntf.backends.cpu.line_stack import transport_lines
from gwntf.backends.cpu.products import T, scratch_size, tile_width
from gwntf.backends.cpu.stack import transport_stack
from gwntf.backends.cpu.sweeps import sweep_rows, sweep_unit_columns
from gwntf.backends.cpu.threads import Threads
from gwntf.backends.forms import DenseForm, ExponentialForm, KernelForm, LineForm, UnevenForm
from gwntf.backends.numpy_backend import NumpyBackend
from gwntf.backends.protocol import FusedSweeps, Result, StackTask, StackTransport
from gwntf.core import FloatArray

_SHORT = 256
_ROWS = 64
"""Samples that a thread solves at a time where each is a problem of its own."""

_LONG_TILE = 256
_DELAY = 1.0

_log = logging.getLogger(__name__)


class CpuBackend(NumpyBackend):
    """NumPy arrays, with compiled transports and independent blocks of work distributed over threads.

    Long dense kernels use BLAS. Results are bitwise independent of the number of threads.
    """

    name = "cpu"
    uneven_lines = True

    def __init__(self) -> None:
        self._compiled: set[tuple[str, str]] = set()
        self._compiling = threading.Lock()
        self._scratch = threading.local()

    def __reduce__(self) -> tuple[type[CpuBackend], tuple[()]]:
        """Pickle no state: compiled functions are loaded from disk."""
        return CpuBackend, ()

    @cached_property
    def _threads(self) -> Threads:
        return Threads()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Silence the floating-point warnings of NumPy, and keep the thread pool running."""
        with super().quiet(), self._threads.running():
            yield

    def map(self, function: Callable[[slice], Result], blocks: Iterable[slice]) -> list[Result]:
        return self._threads.map(function, list(blocks))

    def _reused(self, name: str, shape: tuple[int, ...], dtype: Any) -> FloatArray:
        """Return an array of this thread that is overwritten by the next call with the same name and dtype.

        New arrays of megabytes are slow: the system has to provide every page of them.
        """
        arrays, size = self._scratch.__dict__, math.prod(shape)
        key = f"{name}, {np.dtype(dtype)}"
        if key not in arrays or arrays[key].size < size:
            arrays[key] = np.empty(size, dtype)
        found: FloatArray = arrays[key][:size].reshape(shape)
        return found

    def product(self, a: FloatArray, b: FloatArray) -> FloatArray:
        out = self._reused("product", (a.shape[0], b.shape[1]), a.dtype)
        return np.matmul(a, b, out=out)

    def fused_kl(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        ratio, kl, tiny = self._reused("ratio", x.shape, x.dtype), np.empty(len(x)), np.finfo(x.dtype).smallest_normal
        self._compile("the KL divergence", x.dtype, ratio_and_kl, (x[:0], y[:0], tiny, ratio[:0], kl[:0]))
        ratio_and_kl(x, y, tiny, ratio, kl)
        return ratio, kl

    @property
    def fused_sweeps(self) -> FusedSweeps:  # type: ignore[override]
        return FusedSweeps(self._sweep_rows, self._sweep_unit_columns)

    def _sweep_rows(
        self, columns: FloatArray, linear: FloatArray, gram: FloatArray, curvature: FloatArray, count: int
    ) -> None:
        none = columns[:0, :0]
        self._compile("the sweeps over rows", columns.dtype, sweep_rows, (none, none, none, curvature[:0], count))
        sweep_rows(columns, linear, gram, curvature, count)

    def _sweep_unit_columns(self, columns: FloatArray, linear: FloatArray, gram: FloatArray, count: int) -> None:
        none = columns[:0, :0]
        self._compile("the sweeps over columns", columns.dtype, sweep_unit_columns, (none, none, none, count))
        sweep_unit_columns(columns, linear, gram, count)

    def _compile(self, what: str, dtype: Any, run: Any, arguments: tuple[Any, ...], function: Any = None) -> None:
        """Compile a function for a dtype, or load it from disk, by calling it, or what calls it, with empty arrays."""
        key = (what, str(dtype))
        if key in self._compiled:
            return
        with self._compiling:
            if key not in self._compiled:
                with announced(run if function is None else function, f"{what}, {key[1]}"):
                    run(*arguments)
                self._compiled.add(key)

    def run_rows(self, what: str, function: Any, run: Callable[[slice], None], count: int) -> None:
        """Run a compiled function of some rows for all rows, on all threads; `what` names it in the notice."""
        self._compile(what, np.dtype(np.float64), run, (slice(0, 0),), function)
        self.map(run, [slice(start, start + _ROWS) for start in range(0, count, _ROWS)])

    def tile_columns(self, length: int) -> int:
        """Return the fastest number of columns for the NumPy code, or for BLAS with a long dense kernel."""
        return super().tile_columns(length) if length <= _SHORT else _LONG_TILE

    def stack_transport(
        self, form: Callable[[], KernelForm | None], length: int, columns: int
    ) -> StackTransport | None:
        """Return the compiled transport; None for long dense kernels, and for few long fibers without a recursion."""
        kernel = form()
        if kernel is None:
            return None
        recursive = isinstance(kernel, ExponentialForm | UnevenForm | LineForm)
        if length > _SHORT and not recursive and (columns < T // 4 or isinstance(kernel, DenseForm)):
            return None
        run = transport_lines if isinstance(kernel, LineForm) else transport_stack
        sizes = (tile_width(kernel, length, columns), scratch_size(kernel, length))

        def transport(stacks: tuple[FloatArray, ...], task: StackTask) -> tuple[Any, Any]:
            columns = stacks[0].shape[0] * stacks[0].shape[2]
            terms, accurate = np.empty((3, columns)), np.empty(columns, np.bool_)
            numbers = _in_type(task, stacks[0].dtype.type)
            arguments = (task.warm, task.keep, kernel, sizes, numbers, terms, accurate)
            empty = (stack[:0] for stack in stacks)
            what = f"the transport ({type(kernel).__name__})"
            self._compile(what, stacks[0].dtype, run, (*empty, *arguments))
            run(*stacks, *arguments)
            return terms, accurate

        return transport


def _in_type(task: StackTask, kind: Any) -> tuple[Any, ...]:
    """Return the `task` argument of `transport_stack`, in the dtype of the stacks."""
    info, relaxation = np.finfo(kind), task.relaxation
    return (
        (kind(task.offsets[0]), kind(task.offsets[1])),
        kind(task.share),
        (kind(relaxation.phi), kind(relaxation.psi)),
        (task.max_iter, kind(task.tol), task.check_every),
        (info.smallest_normal, info.max, kind(0 if task.all_normal else 1)),
        (float(relaxation.reg), float(relaxation.reg_m_data), float(relaxation.reg_m_model)),
    )


@contextmanager
def announced(function: Any, what: str) -> Iterator[None]:
    """Log a warning if compilation in the block takes long; loading from disk is not announced."""
    cached, done, before = function.stats.cache_path is not None, threading.Event(), _compilations(function)

    def announce() -> None:
        while not done.wait(_DELAY):
            if _compilations(function) > before:
                how = "once: it is cached on disk" if cached else "in every process: set NUMBA_CACHE_DIR to cache it"
                _log.warning("compiling %s: this takes a few seconds, %s", what, how)
                return

    threading.Thread(target=announce, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _compilations(function: Any) -> int:
    """Return how many versions of a function were not found on disk."""
    return sum(function.stats.cache_misses.values())
