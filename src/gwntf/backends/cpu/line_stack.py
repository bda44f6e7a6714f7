"""Transport of all fibers of a mode along a line, in the log2 domain: see `line` and `stack`."""

import math
from typing import Any

import numpy as np
from numba import njit

from gwntf.backends.cpu.cache import cached_njit
from gwntf.backends.cpu.line import LOG_JIT, NONE, marginals, to_log2
from gwntf.backends.cpu.sources import digest_of_sources
from gwntf.backends.cpu.stack import FROM_LOG2, add_scaled, load_fibers, move_fibers, sum_terms, write_terms
from gwntf.backends.cpu.tile import iterate


@njit(**LOG_JIT)
def solve_line_tile(kernel, X, Y, log_u, warm, buffers, kept, columnwise, work, done, task, tile_range):
    """Load a tile and do all its scalings."""
    _, width, filled, size = tile_range
    _, _, exponents, limits, _, _ = task
    xp, yp, u, v, ku, x, y = buffers[0], buffers[1], buffers[2], buffers[3], buffers[5], buffers[7], buffers[8]
    load_fibers(kernel, X, tile_range, x)
    load_fibers(kernel, Y, tile_range, y)
    to_log2(x, exponents[0], xp)
    to_log2(y, exponents[1], yp)
    if warm:
        load_fibers(kernel, log_u, tile_range, ku)
        for j in range(u.size):
            u[j] = max(ku[j] / FROM_LOG2, NONE)
    else:
        v[:] = -math.log2(size)
    iterate(kernel, buffers, kept, columnwise, work, done, exponents, limits, warm, size, width, filled)


def _compile(digest: int) -> Any:
    """Return the function that Python calls; see `sources` for the digest."""

    @cached_njit(**LOG_JIT)
    def transport_lines(X, Y, log_u, marginal, warm, keep, kernel, sizes, task, terms, accurate):
        """Transport every fiber, tile by tile; arguments as in `stack.transport_stack`, all in float64."""
        salt = digest  # noqa: F841
        width, columns, size = sizes[0], X.shape[0] * X.shape[2], X.shape[1]
        buffers = np.empty((9, size * width))
        kept = np.empty((3, size * width if task[3][1] > 0 else 0))
        work, columnwise = np.empty(sizes[1]), np.empty((2, width))
        done, sums = np.empty(width, np.bool_), np.empty((7, width))
        phi, psi, u, v, kv = buffers[0], buffers[1], buffers[2], buffers[3], buffers[4]
        ku, ratio, x, y = buffers[5], buffers[6], buffers[7], buffers[8]
        accurate[:] = True
        for left in range(0, columns, width):
            tile_range = (left, width, min(width, columns - left), size)
            solve_line_tile(kernel, X, Y, log_u, warm, buffers, kept, columnwise, work, done, task, tile_range)
            marginals(x, y, u, v, kv, ku, size, width, phi, psi, ratio)
            sum_terms(x, y, phi, psi, u, v, ratio, size, width, sums)
            write_terms(sums, task[5], task[0], left, tile_range[2], terms)
            for t in range(tile_range[2]):
                if sums[4, t] > 0.0 and sums[6, t] == 0.0:  # no plan; infinite if alpha is
                    terms[1, left + t] = task[5][1] * sums[4, t]
            load_fibers(kernel, marginal, tile_range, phi)
            add_scaled(psi, task[1], phi)
            move_fibers(kernel, marginal, tile_range, phi, marginal)
            if keep:
                for j in range(u.size):
                    phi[j] = FROM_LOG2 * u[j] if u[j] > 0.5 * NONE else -np.inf
                move_fibers(kernel, log_u, tile_range, phi, log_u)

    return transport_lines


transport_lines = _compile(digest_of_sources())
