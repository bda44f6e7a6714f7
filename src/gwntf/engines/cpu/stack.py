"""Transport of all fibers of a mode, straight from the tensor and back into it.

A tensor is seen as a stack (before, length, after) whose middle axis is the mode, so that nothing is gathered, and of
what a column gives only Psi, log U and its three terms leave the tile. The data term needs no logarithm of its own: U
is updated last, so alpha KL(Phi | x) = alpha (sum x - sum Phi) - (1/lam) <Phi, log u>.

Each loop has few arrays, because compilers give up telling many of them apart and then do one number at a time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from gwntf.engines.cpu.powers import divide_by_powers, exp2_of, logarithms
from gwntf.engines.cpu.products import LOOSE, row_count, row_source
from gwntf.engines.cpu.sources import digest_of_sources
from gwntf.engines.cpu.tile import dot_columns, iterate, judge

FROM_LOG2 = math.log(2)


@njit(**LOOSE)
def load_fibers(kernel, stack, left, width, filled, size, tile):
    """Copy fibers into a tile, zeros beyond them, in runs that share their place on the leading axis."""
    after = stack.shape[2]
    if filled < width or size > stack.shape[1]:
        tile[:] = tile.dtype.type(0)
    if after == 1:
        for t in range(filled):
            fiber = stack[left + t]
            for i in range(size):
                if row_source(kernel, i) >= 0:
                    tile[i * width + t] = fiber[row_source(kernel, i), 0]
        return
    t = 0
    while t < filled:
        p, q = (left + t) // after, (left + t) % after
        run = min(filled - t, after - q)
        for i in range(size):
            if row_source(kernel, i) >= 0:
                source = stack[p, row_source(kernel, i), q : q + run]
                target = tile[i * width + t : i * width + t + run]
                for s in range(run):
                    target[s] = source[s]
        t += run


@njit(**LOOSE)
def store_fibers(kernel, tile, left, width, filled, size, stack):
    """Write a tile to its fibers."""
    after = stack.shape[2]
    if after == 1:
        for t in range(filled):
            fiber = stack[left + t]
            for i in range(size):
                if row_source(kernel, i) >= 0:
                    fiber[row_source(kernel, i), 0] = tile[i * width + t]
        return
    t = 0
    while t < filled:
        p, q = (left + t) // after, (left + t) % after
        run = min(filled - t, after - q)
        for i in range(size):
            if row_source(kernel, i) >= 0:
                target = stack[p, row_source(kernel, i), q : q + run]
                source = tile[i * width + t : i * width + t + run]
                for s in range(run):
                    target[s] = source[s]
        t += run


@njit(**LOOSE)
def write_back(kernel, tile, sound, left, width, filled, size, old, stack):
    """Write the sound columns of a tile to their fibers; the others keep what they have."""
    if not sound[:filled].all():
        load_fibers(kernel, stack, left, width, filled, size, old)
        for t in range(filled):
            if not sound[t]:
                for i in range(size):
                    tile[i * width + t] = old[i * width + t]
    store_fibers(kernel, tile, left, width, filled, size, stack)


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
    """Write the three terms of W of every column from its sums; U and V were held as exp(-offset) times themselves."""
    reg, alpha, beta = weights
    a, b = np.float64(offsets[0]), np.float64(offsets[1])
    for t in range(filled):
        entropy = FROM_LOG2 * sums[0, t] + a * sums[2, t]
        terms[0, left + t] = reg * (entropy + FROM_LOG2 * sums[1, t] + b * sums[3, t] - sums[3, t])
        terms[1, left + t] = 0.0 if np.isinf(alpha) else alpha * (sums[4, t] - sums[2, t]) - reg * entropy
        terms[2, left + t] = beta * (FROM_LOG2 * sums[5, t] - sums[3, t] + sums[6, t])


def _compile(digest: int) -> Any:
    """Return the function that Python calls; see `sources` for the number it holds."""

    @njit(cache=True, **LOOSE)
    def transport_stack(
        X,
        Y,
        log_u,
        marginal,
        warm,
        keep,
        offsets,
        share,
        kernel,
        width,
        scratch_size,
        exponents,
        limits,
        extremes,
        weights,
        terms,
        sound,
    ):
        """Transport every fiber, tile by tile; unsound columns are left untouched."""
        salt = digest  # noqa: F841
        before, length, after = X.shape
        size = row_count(kernel, length)
        kind = X.dtype.type
        held = np.empty((9, size * width), X.dtype)
        kept = np.empty((3, size * width if limits[1] > 0 else 0), X.dtype)
        work = np.empty(scratch_size, X.dtype)
        columnwise, done, sums = (
            np.empty((2, width), X.dtype),
            np.empty(width, np.bool_),
            np.empty((7, width), np.float64),
        )
        xp, yp, u, v, kv, ku, spare, x, y = (
            held[0], held[1], held[2], held[3], held[4], held[5], held[6], held[7], held[8],
        )  # fmt: skip
        for left in range(0, before * after, width):
            filled = min(width, before * after - left)
            load_fibers(kernel, X, left, width, filled, size, x)
            raise_to(x, exponents[0], offsets[0], spare, xp)
            load_fibers(kernel, Y, left, width, filled, size, y)
            raise_to(y, exponents[1], offsets[1], spare, yp)
            v[:] = kind(np.exp(-np.float64(offsets[1]))) / kind(length)
            if warm:
                load_fibers(kernel, log_u, left, width, filled, size, ku)
                from_natural(ku, offsets[0], u)
            iterate(kernel, held, kept, columnwise, work, done, exponents, limits, warm, size, width, filled)
            bad = columnwise[0]
            bad[:] = kind(0)
            judge(v, kv, xp, extremes, size, width, columnwise[1], bad)
            judge(u, ku, yp, extremes, size, width, columnwise[1], bad)
            phi, psi, logs, log_ratio = xp, yp, spare, v
            products(u, kv, phi)
            products(v, ku, psi)
            logarithms(v, kv)
            quotients(psi, y, ku)
            logarithms(ku, log_ratio)
            logarithms(u, logs)
            sum_terms(x, y, phi, psi, logs, kv, log_ratio, size, width, sums)
            for t in range(filled):
                done[t] = bad[t] == kind(0) or sums[4, t] == 0.0
                sound[left + t] = done[t]
            write_terms(sums, weights, offsets, left, filled, terms)
            load_fibers(kernel, marginal, left, width, filled, size, phi)
            add_scaled(psi, share, phi)
            write_back(kernel, phi, done, left, width, filled, size, psi, marginal)
            if keep:
                to_natural(u, logs, offsets[0], phi)
                write_back(kernel, phi, done, left, width, filled, size, psi, log_u)

    return transport_stack


transport_stack = _compile(digest_of_sources())
