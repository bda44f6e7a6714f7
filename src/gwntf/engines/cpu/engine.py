"""The engine whose scalings are compiled; everything else is the reference engine."""

from __future__ import annotations

import itertools
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeGuard

import numba
import numpy as np

from gwntf.core import FloatArray, Relaxation
from gwntf.engines.cpu.stack import transport_stack
from gwntf.engines.cpu.tile import T, scale_tiles
from gwntf.engines.numpy_engine import NumpyEngine
from gwntf.engines.protocol import ColumnScaling, KernelForm, StackTransport

_log = logging.getLogger(__name__)

_DENSE_LIMIT = 256
_TILE_ENTRIES = 2**18


class CpuEngine(NumpyEngine):
    """NumPy arrays, with the scalings of short or exponential kernels compiled and spread over threads.

    Threads are as many as numba would use (``NUMBA_NUM_THREADS``, ``numba.set_num_threads``). A column's result
    does not depend on their number, to the bit.
    """

    name = "cpu"

    def tile_columns(self, length: int) -> int:
        """Return a tile for all threads together; each takes narrow strips of it."""
        return max(T, _TILE_ENTRIES // length)

    def column_scaling(self, form: KernelForm | None) -> ColumnScaling | None:
        """Return the compiled loop for exponential kernels and for short dense ones."""
        if not _compiles(form):
            return None

        def scale(
            problem: tuple[FloatArray, ...],
            exponents: tuple[float, float],
            max_iter: int,
            tol: float,
            check_every: int,
        ) -> tuple[tuple[Any, ...], Any]:
            arrays = [np.ascontiguousarray(array) for array in problem]
            kind, columns = arrays[0].dtype.type, arrays[0].shape[1]
            written = [np.empty_like(arrays[0]) for _ in range(4)]
            sound = np.empty(columns, np.bool_)
            info = np.finfo(kind)
            numbers = (kind(exponents[0]), kind(exponents[1]), max_iter, kind(tol), check_every)
            fixed = (
                *arrays,
                form.recursive,
                form.matrix,
                form.transposed,
                *numbers,
                info.smallest_normal,
                info.max,
            )
            _spread(scale_tiles, -(-columns // T), fixed, (*written, sound))
            return tuple(written), sound

        return scale

    def stack_transport(self, form: KernelForm | None) -> StackTransport | None:
        """Return the compiled transport for exponential kernels and for short dense ones."""
        if not _compiles(form):
            return None

        def transport(
            stacks: tuple[FloatArray, ...],
            relaxation: Relaxation,
            share: float,
            warm: bool,
            max_iter: int,
            tol: float,
            check_every: int,
        ) -> tuple[Any, Any]:
            kind, columns = stacks[0].dtype.type, stacks[0].shape[0] * stacks[0].shape[2]
            info = np.finfo(kind)
            weights = (relaxation.reg, relaxation.reg_m_data, relaxation.reg_m_model)
            exponents = (kind(relaxation.phi), kind(relaxation.psi))
            fixed = (*stacks, warm, kind(share), form.recursive, form.matrix, form.transposed, *exponents)
            limits = (max_iter, kind(tol), check_every, info.smallest_normal, info.max)
            terms, sound = np.empty((3, columns)), np.empty(columns, np.bool_)
            _spread(
                transport_stack, -(-columns // T), (*fixed, *limits, *map(float, weights)), (terms, sound)
            )
            return terms, sound

        return transport


def _compiles(form: KernelForm | None) -> TypeGuard[KernelForm]:
    return form is not None and (form.recursive or form.matrix.shape[0] <= _DENSE_LIMIT)


def _spread(compiled: Any, tiles: int, fixed: tuple[Any, ...], written: tuple[Any, ...]) -> None:
    """Share the tiles among threads; the compiled function releases the interpreter lock."""
    if not compiled.signatures:
        _log.info("compiling the scaling loop; the result is kept on disk for the next time")
    workers = max(1, min(numba.get_num_threads(), os.cpu_count() or 1, tiles))
    bounds = [worker * tiles // workers for worker in range(workers + 1)]
    if workers == 1:
        compiled(0, tiles, *fixed, *written)
        return
    with ThreadPoolExecutor(workers) as pool:
        jobs = [
            pool.submit(compiled, first, last, *fixed, *written) for first, last in itertools.pairwise(bounds)
        ]
        for job in jobs:
            job.result()
