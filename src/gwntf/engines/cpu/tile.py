"""The scaling loop of one tile of columns, in cache from the first half-step to the last.

The arithmetic is that of `transport.scaling` in plain numbers; tests hold the two together. A tile is T columns wide
and lies row by row in flat buffers, so that every inner loop runs over T neighbouring numbers. The functions release
the interpreter lock, so that plain Python threads can share the tiles.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from gwntf.engines.cpu.powers import FLAGS, divide_by_powers

T = 64
"""Columns of a tile."""

LOOSE: dict[str, Any] = {
    "fastmath": FLAGS | {"reassoc"},
    "error_model": "numpy",
    "cache": True,
    "nogil": True,
}


@njit(**LOOSE)
def multiply_dense(K, V, B, size):
    """B = K V, four rows and four columns of K at a time."""
    whole = size - size % 4
    B[: size * T] = B.dtype.type(0)
    for i in range(0, whole, 4):
        b = i * T
        for k in range(0, whole, 4):
            a00, a01, a02, a03 = K[i, k], K[i, k + 1], K[i, k + 2], K[i, k + 3]
            a10, a11, a12, a13 = K[i + 1, k], K[i + 1, k + 1], K[i + 1, k + 2], K[i + 1, k + 3]
            a20, a21, a22, a23 = K[i + 2, k], K[i + 2, k + 1], K[i + 2, k + 2], K[i + 2, k + 3]
            a30, a31, a32, a33 = K[i + 3, k], K[i + 3, k + 1], K[i + 3, k + 2], K[i + 3, k + 3]
            v = k * T
            for t in range(T):
                v0, v1, v2, v3 = V[v + t], V[v + T + t], V[v + 2 * T + t], V[v + 3 * T + t]
                B[b + t] += a00 * v0 + a01 * v1 + a02 * v2 + a03 * v3
                B[b + T + t] += a10 * v0 + a11 * v1 + a12 * v2 + a13 * v3
                B[b + 2 * T + t] += a20 * v0 + a21 * v1 + a22 * v2 + a23 * v3
                B[b + 3 * T + t] += a30 * v0 + a31 * v1 + a32 * v2 + a33 * v3
        for k in range(whole, size):
            for q in range(4):
                a = K[i + q, k]
                for t in range(T):
                    B[b + q * T + t] += a * V[k * T + t]
    for i in range(whole, size):
        for k in range(size):
            a = K[i, k]
            for t in range(T):
                B[i * T + t] += a * V[k * T + t]


@njit(**LOOSE)
def multiply_exponential(c, r, V, B, size, acc):
    """B_i = c sum_k r^|i-k| V_k in two recursive passes over the rows."""
    acc[:] = V.dtype.type(0)
    for i in range(size):
        row = V[i * T : i * T + T]
        out = B[i * T : i * T + T]
        for t in range(T):
            a = row[t] + r * acc[t]
            acc[t] = a
            out[t] = a
    acc[:] = V.dtype.type(0)
    for q in range(size):
        i = size - 1 - q
        row = V[i * T : i * T + T]
        out = B[i * T : i * T + T]
        for t in range(T):
            a = r * acc[t]
            out[t] = c * (out[t] + a)
            acc[t] = row[t] + a


@njit(**LOOSE)
def multiply(recursive, K, V, B, size, acc):
    """B = K V for a dense K, or for K = c r^|i-k| given by its first two entries."""
    if recursive:
        multiply_exponential(K[0, 0], K[0, 1], V, B, size, acc)
    else:
        multiply_dense(K, V, B, size)


@njit(**LOOSE)
def settle(u, nu, v, kv, size, width, tol, moved, mass, done, kept):
    """Keep the columns whose data marginal has just settled; return how many these are."""
    moved[:] = u.dtype.type(0)
    mass[:] = u.dtype.type(0)
    for i in range(size):
        for t in range(T):
            j = i * T + t
            moved[t] += abs(nu[j] - u[j]) * kv[j]
            mass[t] += nu[j] * kv[j]
    count = 0
    for t in range(width):
        if not done[t] and not moved[t] > tol * mass[t]:
            done[t] = True
            count += 1
            for i in range(size):
                j = i * T + t
                kept[0, j], kept[1, j], kept[2, j] = nu[j], v[j], kv[j]
    return count


@njit(**LOOSE)
def judge(total, product, counts, tiny, huge, size, low, bad):
    """Count the entries of every column that left the range or came near its lower end: see `transport.domains`."""
    zero, one = total.dtype.type(0), total.dtype.type(1)
    low[:] = zero
    for i in range(size):
        for t in range(T):
            low[t] += total[i * T + t]
    for t in range(T):
        bad[t] += zero if low[t] <= huge else one
        low[t] = tiny * max(low[t], total.dtype.type(size))
    for i in range(size):
        for t in range(T):
            x = product[i * T + t]
            good = (x <= huge) & ((x > low[t]) | (counts[i * T + t] == zero))
            bad[t] += zero if good else one


@njit(**LOOSE)
def iterate(kernel, held, kept, columnwise, done, exponents, limits, size, width):
    """Alternate the two scaling equations on one tile, ending on U; settled columns keep what they had then.

    The rows of `held` are x^phi, y^psi, U, V, K V, K' U and a spare one; V is the start, the rest follows.
    """
    recursive, K, KT = kernel
    xp, yp, u, v, kv, ku, nu = held[0], held[1], held[2], held[3], held[4], held[5], held[6]
    moved, mass = columnwise[0], columnwise[1]
    phi, psi = exponents
    max_iter, tol, check_every = limits
    multiply(recursive, K, v, kv, size, mass)
    divide_by_powers(xp, kv, phi, u)
    done[:] = False
    finished = 0
    for iteration in range(1, max_iter + 1):
        multiply(recursive, KT, u, ku, size, mass)
        divide_by_powers(yp, ku, psi, v)
        multiply(recursive, K, v, kv, size, mass)
        divide_by_powers(xp, kv, phi, nu)
        if tol > 0 and iteration % check_every == 0 and iteration < max_iter:
            finished += settle(u, nu, v, kv, size, width, tol, moved, mass, done, kept)
        u[:] = nu
        if finished == width:
            break
    for t in range(width):
        if done[t]:
            for i in range(size):
                j = i * T + t
                u[j], v[j], kv[j] = kept[0, j], kept[1, j], kept[2, j]
    multiply(recursive, KT, u, ku, size, mass)
