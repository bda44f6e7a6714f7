"""The engine whose transports are compiled; everything else is the reference engine."""

from __future__ import annotations

import itertools
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

from gwntf.core import FloatArray, Relaxation
from gwntf.engines.cpu.stack import transport_stack
from gwntf.engines.cpu.tile import T
from gwntf.engines.numpy_engine import NumpyEngine
from gwntf.engines.protocol import KernelForm, StackTransport

_log = logging.getLogger(__name__)

_DENSE_LIMIT = 256


class CpuEngine(NumpyEngine):
    """NumPy arrays, with the transport along short or exponential kernels compiled and spread over threads.

    Threads are as many as numba would use (``NUMBA_NUM_THREADS``, ``numba.set_num_threads``). A column's result
    does not depend on their number, to the bit.
    """

    name = "cpu"

    def stack_transport(self, form: KernelForm | None) -> StackTransport | None:
        """Return the compiled transport for exponential kernels and for short dense ones."""
        if form is None or (not form.recursive and form.matrix.shape[0] > _DENSE_LIMIT):
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
            arguments = (
                *stacks,
                warm,
                kind(share),
                (form.recursive, form.matrix, form.transposed),
                (kind(relaxation.phi), kind(relaxation.psi)),
                (max_iter, kind(tol), check_every),
                (info.smallest_normal, info.max),
                (float(relaxation.reg), float(relaxation.reg_m_data), float(relaxation.reg_m_model)),
            )
            terms, sound = np.empty((3, columns)), np.empty(columns, np.bool_)
            _spread(-(-columns // T), (*arguments, terms, sound))
            return terms, sound

        return transport


def _spread(tiles: int, arguments: tuple[Any, ...]) -> None:
    """Share the tiles among threads; the compiled function releases the interpreter lock."""
    if not transport_stack.signatures:
        _log.info("compiling the transport; the result is kept on disk for the next time")
    workers = max(1, min(numba.get_num_threads(), os.cpu_count() or 1, tiles))
    bounds = [worker * tiles // workers for worker in range(workers + 1)]
    with ThreadPoolExecutor(workers) as pool:
        jobs = [
            pool.submit(transport_stack, first, last, *arguments)
            for first, last in itertools.pairwise(bounds)
        ]
        for job in jobs:
            job.result()
