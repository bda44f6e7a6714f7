"""The backend whose transports are compiled; everything else is the reference backend."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from gwntf.backends.cpu.compiling import told_if_slow
from gwntf.backends.cpu.entrywise import ratio_and_kl
from gwntf.backends.cpu.products import T, scratch_size, tile_width
from gwntf.backends.cpu.rows import SKEW, step_rows
from gwntf.backends.cpu.stack import transport_stack
from gwntf.backends.cpu.threads import Threads
from gwntf.backends.forms import DenseForm, KernelForm
from gwntf.backends.numpy_backend import NumpyBackend
from gwntf.backends.protocol import Answer, RowStep, StackTask, StackTransport
from gwntf.core import FloatArray

_SHORT = 256
_LONG_TILE = 256
_FEW, _MANY = range(3, 33), 512


class CpuBackend(NumpyBackend):
    """NumPy arrays, with the transport compiled and independent blocks of work spread over threads.

    A long dense kernel is left to BLAS. Results do not depend on the number of threads, to the bit.
    """

    name = "cpu"

    def __init__(self) -> None:
        self._compiled: set[tuple[str, str]] = set()
        self._compiling = threading.Lock()

    def __reduce__(self) -> tuple[type[CpuBackend], tuple[()]]:
        """Be made anew where it is sent: what has been compiled is there or is loaded from disk."""
        return CpuBackend, ()

    @cached_property
    def _threads(self) -> Threads:
        return Threads()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Silence NumPy's floating-point warnings, and keep the threads meanwhile."""
        with super().quiet(), self._threads.held():
            yield

    def map(self, function: Callable[[slice], Answer], blocks: Iterable[slice]) -> list[Answer]:
        """Share the blocks among threads."""
        return self._threads.map(function, list(blocks))

    def fused_kl(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Divide and sum in one pass."""
        ratio, kl = np.empty_like(x), np.empty(len(x))
        ratio_and_kl(x, y, np.finfo(x.dtype).smallest_normal, ratio, kl)
        return ratio, kl

    def row_step(self, other: FloatArray) -> RowStep | None:
        """Return the compiled step for factors of few columns and samples of many entries, where it is faster."""
        entries, rank = other.shape
        if rank not in _FEW or entries < _MANY:
            return None
        filled = -(-rank // 4) * 4
        others = np.zeros((filled, entries + SKEW), other.dtype)
        others[:rank, :entries] = other.T

        def step(
            x: FloatArray, a: FloatArray, attraction: FloatArray | None, denominator: FloatArray
        ) -> tuple[FloatArray, FloatArray, float]:
            product, moved = np.empty((len(x), filled), x.dtype), np.zeros((len(x), filled), x.dtype)
            sums = np.zeros_like(others)
            rest = (a, attraction, denominator, others, product, moved, sums)
            what = f"the least-squares step ({'no' if attraction is None else 'a'} graph)"
            self._ready(what, x.dtype, lambda: step_rows(x[:0], *rest))
            cross = step_rows(x, *rest)
            return moved[:, :rank], sums[:rank, :entries].T, cross

        return step

    def _ready(self, what: str, dtype: Any, compiled: Callable[[], Any]) -> None:
        """Compile for arrays of a type, or load what was compiled earlier, by a call with nothing to do."""
        key = (what, str(dtype))
        if key in self._compiled:
            return
        with self._compiling:
            if key not in self._compiled:
                with told_if_slow(f"{what}, {key[1]}"):
                    compiled()
                self._compiled.add(key)

    def tile_columns(self, length: int) -> int:
        """Return a whole number of compiled tiles, or what keeps BLAS busy along a long dense kernel."""
        return super().tile_columns(length) if length <= _SHORT else _LONG_TILE

    def stack_transport(
        self, form: Callable[[], KernelForm], length: int, columns: int
    ) -> StackTransport | None:
        """Return the compiled transport, but not for long dense kernels nor for a few long fibers.

        The latter would leave most of a tile empty.
        """
        if length > _SHORT and columns < T // 4:
            return None
        kernel = form()
        if length > _SHORT and isinstance(kernel, DenseForm):
            return None

        sizes = (tile_width(kernel, length), scratch_size(kernel))

        def transport(stacks: tuple[FloatArray, ...], task: StackTask) -> tuple[Any, Any]:
            columns = stacks[0].shape[0] * stacks[0].shape[2]
            terms, sound = np.empty((3, columns)), np.empty(columns, np.bool_)
            work = _in_type(task, stacks[0].dtype.type)
            arguments = (task.warm, task.keep, kernel, sizes, work, terms, sound)
            none = [stack[:0] for stack in stacks]
            what = f"the transport ({type(kernel).__name__})"
            self._ready(what, stacks[0].dtype, lambda: transport_stack(*none, *arguments))
            transport_stack(*stacks, *arguments)
            return terms, sound

        return transport


def _in_type(task: StackTask, kind: Any) -> tuple[Any, ...]:
    """Return what `transport_stack` calls the task, in the number type of the stacks."""
    info, relaxation = np.finfo(kind), task.relaxation
    return (
        (kind(task.offsets[0]), kind(task.offsets[1])),
        kind(task.share),
        (kind(relaxation.phi), kind(relaxation.psi)),
        (task.max_iter, kind(task.tol), task.check_every),
        (info.smallest_normal, info.max, kind(0 if task.whole else 1)),
        (float(relaxation.reg), float(relaxation.reg_m_data), float(relaxation.reg_m_model)),
    )
