"""The scaling loop of one tile of columns, which stays in cache from the first half-step to the last.

The arithmetic is that of `transport.scaling` in plain numbers; tests compare the two. A tile is stored by rows in flat
buffers, so that every inner loop runs over contiguous numbers. The functions release the interpreter lock, so that
Python threads can process tiles in parallel.
"""

import numpy as np
from numba import njit

from gwntf.backends.cpu.products import LOOSE, add_moves, apply, apply_transposed, divide


@njit(**LOOSE)
def dot_columns(x, y, size, width, out):
    """Inner product of every column of x with that of y in float64."""
    out[:] = 0.0
    for i in range(size):
        left, right = x[i * width : (i + 1) * width], y[i * width : (i + 1) * width]
        for t in range(width):
            out[t] += np.float64(left[t] * right[t])


@njit(**LOOSE)
def save_converged(kernel, u, nu, v, kv, size, width, filled, tol, moved, mass, done, kept):
    """Save the columns whose data marginal has just converged; return their number."""
    moved[:] = u.dtype.type(0)
    mass[:] = u.dtype.type(0)
    for i in range(size):
        a, b = i * width, (i + 1) * width
        add_moves(kernel, u[a:b], nu[a:b], kv[a:b], moved, mass)
    count = 0
    for t in range(filled):
        if not done[t] and not moved[t] > tol * mass[t]:
            done[t] = True
            count += 1
            for i in range(size):
                j = i * width + t
                kept[0, j], kept[1, j], kept[2, j] = nu[j], v[j], kv[j]
    return count


@njit(**LOOSE)
def count_inaccurate(total, product, counts, extremes, size, width, low, bad):
    """Count the entries of every column that are out of range or near its lower end: see `transport.domains`."""
    tiny, huge, units = extremes
    zero, one = total.dtype.type(0), total.dtype.type(1)
    low[:] = zero
    for i in range(size):
        row = total[i * width : (i + 1) * width]
        for t in range(width):
            low[t] += row[t]
    for t in range(width):
        bad[t] += zero if low[t] <= huge else one
        low[t] = tiny * max(units * low[t], total.dtype.type(size))
    for i in range(size):
        row, counted = product[i * width : (i + 1) * width], counts[i * width : (i + 1) * width]
        for t in range(width):
            good = (row[t] <= huge) & ((row[t] > low[t]) | (counted[t] == zero))
            bad[t] += zero if good else one


@njit(**LOOSE)
def iterate(kernel, buffers, kept, columnwise, work, done, exponents, limits, warm, size, width, filled):
    """Alternate the two scaling equations on one tile, ending with U; converged columns are not updated any more.

    The rows of `buffers` are x^phi, y^psi, U, V, K V, K' U and a spare one; the loop starts from U if `warm`, else V.
    """
    xp, yp, u, v, kv = buffers[0], buffers[1], buffers[2], buffers[3], buffers[4]
    ku, nu = buffers[5], buffers[6]
    moved, mass = columnwise[0], columnwise[1]
    phi, psi = exponents
    max_iter, tol, check_every = limits
    if not warm:
        apply(kernel, v, kv, size, width, work)
        divide(kernel, xp, kv, phi, u)
    done[:] = False
    finished = 0
    for iteration in range(1, max_iter + 1):
        apply_transposed(kernel, u, ku, size, width, work)
        divide(kernel, yp, ku, psi, v)
        apply(kernel, v, kv, size, width, work)
        if tol > 0 and iteration % check_every == 0 and iteration < max_iter:
            divide(kernel, xp, kv, phi, nu)
            finished += save_converged(kernel, u, nu, v, kv, size, width, filled, tol, moved, mass, done, kept)
            u[:] = nu
        else:
            divide(kernel, xp, kv, phi, u)
        if finished == filled:
            break
    if finished:
        for t in range(filled):
            if done[t]:
                for i in range(size):
                    j = i * width + t
                    u[j], v[j], kv[j] = kept[0, j], kept[1, j], kept[2, j]
    apply_transposed(kernel, u, ku, size, width, work)
