"""Transport of all fibers of a mode, straight from the tensor and back into it.

A tensor is seen as a stack (before, length, after) whose middle axis is the mode, so that nothing is gathered, and of
what a column gives only Psi, log V and its three terms leave the tile. The data term needs no logarithm of its own: U
is updated last, so alpha KL(Phi | x) = alpha (sum x - sum Phi) - (1/lam) <Phi, log u>.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gwntf.engines.cpu.powers import divide_by_powers, exp2_of, log2_of
from gwntf.engines.cpu.tile import LOOSE, T, iterate, judge

FROM_LOG2 = math.log(2)


@njit(**LOOSE)
def load_fibers(stack, left, width, size, tile):
    """Copy fibers into a tile, zeros beyond them, in runs that share their place on the leading axis."""
    after = stack.shape[2]
    tile[: size * T] = tile.dtype.type(0)
    t = 0
    while t < width:
        p, q = (left + t) // after, (left + t) % after
        run = min(width - t, after - q)
        for i in range(size):
            for s in range(run):
                tile[i * T + t + s] = stack[p, i, q + s]
        t += run


@njit(**LOOSE)
def store_fibers(sound, v, ku, share, left, width, size, marginal, log_v):
    """Add share * Psi to one stack and write log V to another, for sound columns."""
    after = marginal.shape[2]
    kind = v.dtype.type
    for t in range(width):
        if not sound[t]:
            continue
        p, q = (left + t) // after, (left + t) % after
        for i in range(size):
            j = i * T + t
            marginal[p, i, q] += share * (v[j] * ku[j])
            log_v[p, i, q] = kind(FROM_LOG2) * log2_of(v[j]) if v[j] > kind(0) else kind(-np.inf)


@njit(**LOOSE)
def sum_terms(x, y, u, v, kv, ku, size, sums):
    """Sum down every column in float64: <Phi, log u>, <Psi, log v>, Phi, Psi, x, Psi log(Psi / y), y."""
    zero, one = x.dtype.type(0), x.dtype.type(1)
    sums[:] = 0.0
    for i in range(size):
        for t in range(T):
            j = i * T + t
            phi, psi = u[j] * kv[j], v[j] * ku[j]
            some, more = u[j] > zero, psi > zero
            sums[0, t] += np.float64(phi * log2_of(u[j] if some else one))
            sums[1, t] += np.float64(psi * log2_of(v[j] if more else one))
            sums[2, t] += np.float64(phi)
            sums[3, t] += np.float64(psi)
            sums[4, t] += np.float64(x[j])
            sums[5, t] += np.float64(psi * log2_of(psi / y[j] if more else one))
            sums[6, t] += np.float64(y[j])


@njit(**LOOSE)
def write_terms(sums, weights, left, width, terms):
    """Write the three terms of W of every column from its sums."""
    reg, alpha, beta = weights
    for t in range(width):
        entropy = FROM_LOG2 * sums[0, t]
        terms[0, left + t] = reg * (entropy + FROM_LOG2 * sums[1, t] - sums[3, t])
        terms[1, left + t] = 0.0 if np.isinf(alpha) else alpha * (sums[4, t] - sums[2, t]) - reg * entropy
        terms[2, left + t] = beta * (FROM_LOG2 * sums[5, t] - sums[3, t] + sums[6, t])


@njit(**LOOSE)
def transport_stack(
    first,
    last,
    X,
    Y,
    log_v,
    marginal,
    warm,
    share,
    kernel,
    exponents,
    limits,
    extremes,
    weights,
    terms,
    sound,
):
    """Transport the fibers of the tiles from `first` to `last`; unsound columns are left untouched."""
    before, size, after = X.shape
    kind = X.dtype.type
    held, kept = np.empty((9, size * T), X.dtype), np.empty((3, size * T), X.dtype)
    columnwise, done, sums = np.empty((2, T), X.dtype), np.empty(T, np.bool_), np.empty((7, T), np.float64)
    u, v, kv, ku, x, y = held[2], held[3], held[4], held[5], held[7], held[8]
    tiny, huge = extremes
    for tile in range(first, last):
        left = tile * T
        width = min(T, before * after - left)
        load_fibers(X, left, width, size, x)
        divide_by_powers(x, x, kind(1) - exponents[0], held[0])
        load_fibers(Y, left, width, size, y)
        divide_by_powers(y, y, kind(1) - exponents[1], held[1])
        v[:] = kind(1) / kind(size)
        if warm:
            load_fibers(log_v, left, width, size, ku)
            for j in range(size * T):
                v[j] = exp2_of(ku[j] * kind(1 / FROM_LOG2))
        iterate(kernel, held, kept, columnwise, done, exponents, limits, size, width)
        bad = columnwise[0]
        bad[:] = kind(0)
        judge(v, kv, held[0], tiny, huge, size, columnwise[1], bad)
        judge(u, ku, held[1], tiny, huge, size, columnwise[1], bad)
        sum_terms(x, y, u, v, kv, ku, size, sums)
        for t in range(width):
            done[t] = bad[t] == kind(0) or sums[4, t] == 0.0
            sound[left + t] = done[t]
        write_terms(sums, weights, left, width, terms)
        store_fibers(done, v, ku, share, left, width, size, marginal, log_v)
