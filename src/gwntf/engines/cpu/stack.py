"""Transport of all fibers of a mode, straight from the tensor and back into it.

A tensor is seen as a stack (before, length, after) whose middle axis is the mode, so that nothing is gathered, and of
what a column gives only Psi, log V and its three terms leave the tile. The data term needs no logarithm of its own: U
is updated last, so alpha KL(Phi | x) = alpha (sum x - sum Phi) - (1/lam) <Phi, log u>.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gwntf.engines.cpu.powers import divide_by_powers, exp2_of, log2_of
from gwntf.engines.cpu.tile import FROM_LOG2, LOOSE, TO_LOG2, T, iterate, judge


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
def transport_stack(
    first,
    last,
    X,
    Y,
    log_v,
    marginal,
    warm,
    share,
    recursive,
    K,
    KT,
    phi,
    psi,
    max_iter,
    tol,
    check_every,
    tiny,
    huge,
    reg,
    alpha,
    beta,
    terms,
    sound,
):
    """Transport the fibers of the tiles from `first` to `last`; unsound columns are left untouched."""
    before, size, after = X.shape
    columns = before * after
    kind = X.dtype.type
    held = np.empty((9, size * T), X.dtype)
    xp, yp, u, v, kv, ku, nu, x, y = (
        held[0],
        held[1],
        held[2],
        held[3],
        held[4],
        held[5],
        held[6],
        held[7],
        held[8],
    )
    kept, moved, mass, done = (
        np.empty((3, size * T), X.dtype),
        np.empty(T, X.dtype),
        np.empty(T, X.dtype),
        np.empty(T, np.bool_),
    )
    sums = np.empty((7, T), np.float64)
    log2 = np.float64(FROM_LOG2)
    for tile in range(first, last):
        left = tile * T
        width = min(T, columns - left)
        load_fibers(X, left, width, size, x)
        divide_by_powers(x, x, kind(1) - phi, xp)
        load_fibers(Y, left, width, size, y)
        divide_by_powers(y, y, kind(1) - psi, yp)
        if warm:
            load_fibers(log_v, left, width, size, ku)
            for j in range(size * T):
                v[j] = exp2_of(ku[j] * kind(TO_LOG2))
        else:
            v[:] = kind(1) / kind(size)
        iterate(
            recursive,
            K,
            KT,
            xp,
            yp,
            u,
            v,
            kv,
            ku,
            nu,
            kept,
            phi,
            psi,
            size,
            width,
            max_iter,
            tol,
            check_every,
            moved,
            mass,
            done,
        )
        moved[:] = kind(0)
        judge(v, kv, xp, tiny, huge, size, mass, moved)
        judge(u, ku, yp, tiny, huge, size, mass, moved)
        sum_terms(x, y, u, v, kv, ku, size, sums)
        for t in range(width):
            done[t] = moved[t] == kind(0) or sums[4, t] == 0.0
            sound[left + t] = done[t]
            entropy = log2 * sums[0, t]
            terms[0, left + t] = reg * (entropy + log2 * sums[1, t] - sums[3, t])
            terms[1, left + t] = 0.0 if np.isinf(alpha) else alpha * (sums[4, t] - sums[2, t]) - reg * entropy
            terms[2, left + t] = beta * (log2 * sums[5, t] - sums[3, t] + sums[6, t])
        store_fibers(done, v, ku, share, left, width, size, marginal, log_v)
