"""Transport of all fibers of a mode, read from the tensor and written back to it.

A tensor is treated as a stack (before, length, after) whose middle axis is the mode, so that only tiles are copied, and
only Psi, log U and the three terms of every column are written. The data term needs no further logarithm: U is updated
last, so alpha KL(Phi | x) = alpha (sum x - sum Phi) - (1/lam) <Phi, log u>.

Each loop uses few arrays, because compilers do not vectorise loops over many arrays that might overlap.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from gwntf.backends.cpu.cache import cached_njit
from gwntf.backends.cpu.powers import divide_by_powers, exp2_of, logarithms
from gwntf.backends.cpu.products import LOOSE, out_of_range, row_count, row_source
from gwntf.backends.cpu.sources import digest_of_sources
from gwntf.backends.cpu.tile import count_inaccurate, dot_columns, iterate

FROM_LOG2 = math.log(2)


@njit(**LOOSE)
def copy_run(source, target):
    """Copy contiguous numbers."""
    for s in range(source.size):
        target[s] = source[s]


@njit(**LOOSE)
def move_fibers(kernel, stack, tile_range, tile, target):
    """Copy fibers of a stack, which may be read-only, into a tile, or the tile into a target of the stack's shape.

    Fibers are copied in runs with the same index on the leading axis. Whether there is a target is known at
    compile time, so that read-only stacks are never written.
    """
    left, width, filled, size = tile_range
    after = stack.shape[2]
    t = 0
    while t < filled:
        p, q = (left + t) // after, (left + t) % after
        run = min(filled - t, after - q)
        for i in range(size):
            row = row_source(kernel, i)
            at = i * width + t
            if row >= 0 and run == 1:
                if target is None:
                    tile[at] = stack[p, row, q]
                else:
                    target[p, row, q] = tile[at]
            elif row >= 0:
                if target is None:
                    copy_run(stack[p, row, q : q + run], tile[at : at + run])
                else:
                    copy_run(tile[at : at + run], target[p, row, q : q + run])
        t += run


@njit(**LOOSE)
def load_fibers(kernel, stack, tile_range, tile):
    """Copy fibers into a tile, padded with zeros."""
    _, width, filled, size = tile_range
    if filled < width or size > stack.shape[1]:
        tile[:] = tile.dtype.type(0)
    move_fibers(kernel, stack, tile_range, tile, None)


@njit(**LOOSE)
def write_back(kernel, tile, accurate, tile_range, old, stack):
    """Write the accurate columns of a tile to their fibers; the others are unchanged."""
    _, width, filled, size = tile_range
    if not accurate[:filled].all():
        load_fibers(kernel, stack, tile_range, old)
        for t in range(filled):
            if not accurate[t]:
                for i in range(size):
                    tile[i * width + t] = old[i * width + t]
    move_fibers(kernel, stack, tile_range, tile, stack)


@njit(**LOOSE)
def add_scaled(x, share, out):
    """Add `share` times x."""
    for j in range(x.size):
        out[j] += share * x[j]


@njit(**LOOSE)
def quotients(x, y, out):
    """Out = x / y, or one where x is zero."""
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for j in range(x.size):
        out[j] = x[j] / y[j] if x[j] > zero else one


@njit(**LOOSE)
def products(x, y, out):
    """Out = x y."""
    for j in range(x.size):
        out[j] = x[j] * y[j]


@njit(**LOOSE)
def to_natural(v, logs, offset, out):
    """Out = offset + log v from log2 v, minus infinity where v is zero."""
    zero, none = v.dtype.type(0), v.dtype.type(-np.inf)
    for j in range(v.size):
        out[j] = offset + v.dtype.type(FROM_LOG2) * logs[j] if v[j] > zero else none


@njit(**LOOSE)
def from_natural(logs, offset, v):
    """V = exp(logs - offset)."""
    for j in range(v.size):
        v[j] = exp2_of((logs[j] - offset) * v.dtype.type(1 / FROM_LOG2))


@njit(**LOOSE)
def raise_to(x, power, offset, spare, out):
    """Out = x^power exp(offset (power - 1))."""
    one = x.dtype.type(1)
    factor = x.dtype.type(np.exp(np.float64(offset) * (np.float64(power) - 1.0)))
    for j in range(x.size):
        spare[j] = factor * x[j]
    divide_by_powers(spare, x, one - power, out)


@njit(**LOOSE)
def sum_columns(x, size, width, out):
    """Sum down every column in float64."""
    out[:] = 0.0
    for i in range(size):
        row = x[i * width : (i + 1) * width]
        for t in range(width):
            out[t] += np.float64(row[t])


@njit(**LOOSE)
def sum_terms(x, y, phi, psi, log_u, log_v, log_ratio, size, width, sums):
    """<Phi, log u>, <Psi, log v>, Phi, Psi, x, <Psi, log(Psi / y)>, y, summed down the columns."""
    dot_columns(phi, log_u, size, width, sums[0])
    dot_columns(psi, log_v, size, width, sums[1])
    sum_columns(phi, size, width, sums[2])
    sum_columns(psi, size, width, sums[3])
    sum_columns(x, size, width, sums[4])
    dot_columns(psi, log_ratio, size, width, sums[5])
    sum_columns(y, size, width, sums[6])


@njit(**LOOSE)
def write_terms(sums, weights, offsets, left, filled, terms):
    """Write the three terms of W of every column from its sums; U and V are stored as exp(-offset) times themselves."""
    reg, alpha, beta = weights
    a, b = np.float64(offsets[0]), np.float64(offsets[1])
    for t in range(filled):
        entropy = FROM_LOG2 * sums[0, t] + a * sums[2, t]
        terms[0, left + t] = reg * (entropy + FROM_LOG2 * sums[1, t] + b * sums[3, t] - sums[3, t])
        terms[1, left + t] = 0.0 if np.isinf(alpha) else alpha * (sums[4, t] - sums[2, t]) - reg * entropy
        terms[2, left + t] = beta * (FROM_LOG2 * sums[5, t] - sums[3, t] + sums[6, t])


@njit(**LOOSE)
def solve_tile(kernel, X, Y, log_u, warm, buffers, kept, columnwise, work, done, task, tile_range):
    """Load a tile and do all its scalings; return False if all its columns would underflow."""
    offsets, _, exponents, limits, _, _ = task
    _, width, filled, size = tile_range
    xp, yp, u, v = buffers[0], buffers[1], buffers[2], buffers[3]
    ku, spare, x, y = buffers[5], buffers[6], buffers[7], buffers[8]
    load_fibers(kernel, X, tile_range, x)
    load_fibers(kernel, Y, tile_range, y)
    if out_of_range(kernel, x, y, columnwise, size, width, filled):
        return False
    raise_to(x, exponents[0], offsets[0], spare, xp)
    raise_to(y, exponents[1], offsets[1], spare, yp)
    if warm:
        load_fibers(kernel, log_u, tile_range, ku)
        from_natural(ku, offsets[0], u)
    else:
        v[:] = v.dtype.type(np.exp(-np.float64(offsets[1]))) / v.dtype.type(X.shape[1])
    iterate(kernel, buffers, kept, columnwise, work, done, exponents, limits, warm, size, width, filled)
    return True


@njit(**LOOSE)
def assess_tile(buffers, columnwise, sums, done, task, tile_range, terms, accurate):
    """Determine which columns of a solved tile are accurate, and their terms.

    Afterwards the rows of `buffers` are Phi, Psi, U and, in the seventh, log2 U; the others are overwritten.
    """
    offsets, _, _, _, extremes, weights = task
    left, width, filled, size = tile_range
    xp, yp, u, v, kv = buffers[0], buffers[1], buffers[2], buffers[3], buffers[4]
    ku, spare, x, y = buffers[5], buffers[6], buffers[7], buffers[8]
    bad = columnwise[0]
    bad[:] = bad.dtype.type(0)
    count_inaccurate(v, kv, xp, extremes, size, width, columnwise[1], bad)
    count_inaccurate(u, ku, yp, extremes, size, width, columnwise[1], bad)
    products(u, kv, xp)
    products(v, ku, yp)
    logarithms(v, kv)
    quotients(yp, y, ku)
    logarithms(ku, v)
    logarithms(u, spare)
    sum_terms(x, y, xp, yp, spare, kv, v, size, width, sums)
    for t in range(filled):
        done[t] = bad[t] == bad.dtype.type(0) or sums[4, t] == 0.0
        accurate[left + t] = done[t]
    write_terms(sums, weights, offsets, left, filled, terms)


def _compile(digest: int) -> Any:
    """Return the function that Python calls; see `sources` for the digest."""

    @cached_njit(**LOOSE)
    def transport_stack(X, Y, log_u, marginal, warm, keep, kernel, sizes, task, terms, accurate):
        """Transport every fiber, tile by tile; for inaccurate columns only terms are written.

        `sizes` are the number of columns of a tile and the size of the scratch array; `task` has the offsets, the
        share, the exponents, the limits of the loop, the limits of the dtype, and reg, alpha and beta.
        """
        salt = digest  # noqa: F841
        width, columns = sizes[0], X.shape[0] * X.shape[2]
        size = row_count(kernel, X.shape[1])
        buffers = np.empty((9, size * width), X.dtype)
        kept = np.empty((3, size * width if task[3][1] > 0 else 0), X.dtype)
        work, columnwise = np.empty(sizes[1], X.dtype), np.empty((2, width), X.dtype)
        done, sums = np.empty(width, np.bool_), np.empty((7, width), np.float64)
        phi, psi, u, log2_u = buffers[0], buffers[1], buffers[2], buffers[6]
        for left in range(0, columns, width):
            tile_range = (left, width, min(width, columns - left), size)
            if not solve_tile(kernel, X, Y, log_u, warm, buffers, kept, columnwise, work, done, task, tile_range):
                accurate[left : left + tile_range[2]] = False
                continue
            assess_tile(buffers, columnwise, sums, done, task, tile_range, terms, accurate)
            load_fibers(kernel, marginal, tile_range, phi)
            add_scaled(psi, task[1], phi)
            write_back(kernel, phi, done, tile_range, psi, marginal)
            if keep:
                to_natural(u, log2_u, task[0][0], phi)
                write_back(kernel, phi, done, tile_range, psi, log_u)

    return transport_stack


transport_stack = _compile(digest_of_sources())
