"""Coordinate descent for the least-squares loss, as in `losses.sweeps`, on factors stored component by component."""

import math
from typing import Any

import numpy as np
from numba import njit

from gwntf.backends.cpu.cache import cached_njit
from gwntf.backends.cpu.products import LOOSE
from gwntf.backends.cpu.sources import digest_of_sources

WIDTH = 128
"""Rows that are processed at a time, so that their components stay in cache for all sweeps."""


@njit(**LOOSE)
def subtract_product(weights, columns, start, stop, out):
    """Subtract weights @ columns, between start and stop, from out; four columns at a time."""
    count = weights.size
    for s in range(0, count - count % 4, 4):
        w0, w1, w2, w3 = weights[s], weights[s + 1], weights[s + 2], weights[s + 3]
        c0, c1 = columns[s, start:stop], columns[s + 1, start:stop]
        c2, c3 = columns[s + 2, start:stop], columns[s + 3, start:stop]
        for j in range(out.size):
            out[j] -= w0 * c0[j] + w1 * c1[j] + w2 * c2[j] + w3 * c3[j]
    for s in range(count - count % 4, count):
        w0, c0 = weights[s], columns[s, start:stop]
        for j in range(out.size):
            out[j] -= w0 * c0[j]


@njit(**LOOSE)
def descend(descent, bend, curvature, column):
    """Minimise a quadratic over every nonnegative entry of a column; entries without curvature do not change."""
    zero = column.dtype.type(0)
    for j in range(column.size):
        full = bend + curvature[j]
        moved = max(column[j] + descent[j] / full, zero)
        column[j] = moved if full > zero else column[j]


@njit(**LOOSE)
def clip_and_measure(values):
    """Set negative entries to zero; return the largest entry, and the Euclidean norm in multiples of it."""
    total, largest = 0.0, values.dtype.type(0)
    for j in range(values.size):
        values[j] = max(values[j], values.dtype.type(0))
        largest = max(largest, values[j])
    if largest > values.dtype.type(0):
        for j in range(values.size):
            part = np.float64(values[j] / largest)
            total += part * part
    return largest, values.dtype.type(math.sqrt(total))


def _compile(digest: int) -> Any:
    """Return the functions that Python calls; see `sources` for the digest."""

    @cached_njit(**LOOSE)
    def sweep_rows(columns, linear, gram, curvature, count):
        """Write the result of `losses.sweeps.sweep_rows` over the columns."""
        salt = digest  # noqa: F841
        rank, size = columns.shape
        buffer = np.empty(min(WIDTH, size), columns.dtype)
        for start in range(0, size, WIDTH):
            stop = min(start + WIDTH, size)
            descent, extra = buffer[: stop - start], curvature[start:stop]
            for _ in range(count):
                for r in range(rank):
                    own, wanted = columns[r, start:stop], linear[r, start:stop]
                    for j in range(descent.size):
                        descent[j] = wanted[j] - extra[j] * own[j]
                    subtract_product(gram[r], columns, start, stop, descent)
                    descend(descent, gram[r, r], extra, own)

    @cached_njit(**LOOSE)
    def sweep_unit_columns(columns, linear, gram, count):
        """Write the result of `losses.sweeps.sweep_unit_columns` over the columns."""
        salt = digest  # noqa: F841
        rank, size = columns.shape
        rise = np.empty(size, columns.dtype)
        for _ in range(count):
            for r in range(rank):
                own, wanted, bend = columns[r], linear[r], gram[r, r]
                for j in range(size):
                    rise[j] = wanted[j] + bend * own[j]
                for start in range(0, size, WIDTH):
                    stop = min(start + WIDTH, size)
                    subtract_product(gram[r], columns, start, stop, rise[start:stop])
                largest, norm = clip_and_measure(rise)
                if norm > columns.dtype.type(0):
                    for j in range(size):
                        own[j] = rise[j] / largest / norm

    return sweep_rows, sweep_unit_columns


sweep_rows, sweep_unit_columns = _compile(digest_of_sources())
