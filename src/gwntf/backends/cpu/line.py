"""Transport along a line in the log2 domain: nothing underflows, and a product still costs O(I) per column.

U, V and products are stored as log2. For log2 W = w the product with K_ij = c 2^-|p_i - p_j| is computed in units of
2^e_i, where e_i is max_j (w_j - |p_i - p_j|) rounded up: two passes for the maximum, two for the sum. Every number in
the sums is then at most 2, and every sum is between 1/2 and 2 I: on a line, a term that is negligible at one point is
negligible at all points beyond it.
"""

import numpy as np
from numba import njit

from gwntf.backends.cpu.powers import FLAGS, exp2_of, log2_of

LOG_JIT = {"fastmath": FLAGS, "error_model": "numpy", "nogil": True}

NONE = -1e15
"""log2 of zero: finite, so that the difference of two of them is not NaN."""

_SHIFTED = 1023.0 + 2.0**52


@njit(**LOG_JIT)
def integer_power(n):
    """2^n for an integer n stored as a float, zero if it underflows; the exponent bits are set by an addition."""
    clipped = max(n, -1023.0)
    return np.int64(np.int64(np.float64(clipped + _SHIFTED).view(np.int64)) << np.int64(52)).view(np.float64)


@njit(**LOG_JIT)
def multiply_line(kernel, W, B, size, width, work):
    """B = log2(K 2^W) for a tile of `size` rows of `width` numbers."""
    exponents, terms, acc = work[: size * width], work[size * width : 2 * size * width], work[2 * size * width :]
    _round_up_maxima(kernel, W, exponents, size, width, acc)
    acc[:width] = 0.0
    for i in range(size):
        a = i * width
        integer, fraction = (kernel.integer[i - 1], kernel.fraction[i - 1]) if i else (0.0, 0.0)
        before = exponents[a - width : a] if i else exponents[:width]
        _add_forward(W[a : a + width], exponents[a : a + width], before, integer, fraction, acc, terms[a : a + width])
        B[a : a + width] = acc[:width]
    acc[:width] = 0.0
    for q in range(size):
        i = size - 1 - q
        a = i * width
        integer, fraction = (kernel.integer[i], kernel.fraction[i]) if q else (0.0, 0.0)
        after = exponents[a + width : a + 2 * width] if q else exponents[a : a + width]
        own = exponents[a : a + width]
        _add_backward(terms[a : a + width], own, after, integer, fraction, kernel.log2_scale, acc, B[a : a + width])


@njit(**LOG_JIT)
def _round_up_maxima(kernel, W, exponents, size, width, acc):
    """Write max_j (w_j - |p_i - p_j|), rounded up, to `exponents`."""
    acc[:width] = NONE
    for i in range(size):
        row, out = W[i * width : (i + 1) * width], exponents[i * width : (i + 1) * width]
        step = kernel.integer[i - 1] + kernel.fraction[i - 1] if i else 0.0
        for t in range(width):
            acc[t] = max(row[t], acc[t] - step)
            out[t] = acc[t]
    for q in range(size):
        i = size - 1 - q
        out = exponents[i * width : (i + 1) * width]
        step = kernel.integer[i] + kernel.fraction[i] if q else 0.0
        for t in range(width):
            acc[t] = max(out[t], acc[t] - step)
            out[t] = np.ceil(acc[t])


@njit(**LOG_JIT)
def _add_forward(row, own, before, integer, fraction, acc, terms):
    """Advance the sum over all points on the left by one point."""
    factor = exp2_of(-fraction)
    for t in range(row.size):
        terms[t] = exp2_of(row[t] - own[t])
    for t in range(row.size):
        acc[t] = terms[t] + acc[t] * (factor * integer_power(before[t] - own[t] - integer))


@njit(**LOG_JIT)
def _add_backward(terms, own, after, integer, fraction, log2_scale, acc, out):
    """Advance the sum over all points on the right by one point, and write log2 of the total of both sums."""
    factor = exp2_of(-fraction)
    for t in range(terms.size):
        a = acc[t] * (factor * integer_power(after[t] - own[t] - integer))
        out[t] += a
        acc[t] = terms[t] + a
    for t in range(terms.size):
        out[t] = log2_scale + own[t] + log2_of(out[t])


@njit(**LOG_JIT)
def to_log2(x, power, out):
    """Out = power log2 x."""
    for j in range(x.size):
        out[j] = power * log2_of(x[j]) if x[j] > 0.0 else NONE


@njit(**LOG_JIT)
def subtract(numerator, product, power, out):
    """Out = numerator - power product."""
    for j in range(out.size):
        out[j] = numerator[j] - power * product[j]


@njit(**LOG_JIT)
def add_log_moves(u, nu, kv, moved, mass):
    """Add one row of |nu - u| kv and of nu kv."""
    for t in range(u.size):
        now = exp2_of(nu[t] + kv[t])
        moved[t] += abs(now - exp2_of(u[t] + kv[t]))
        mass[t] += now


@njit(**LOG_JIT)
def marginals(x, y, u, v, kv, ku, size, width, phi, psi, ratio):
    """Write Phi, Psi and log2(Psi / y); a column that is empty on either side has no plan, and its U and V are zero."""
    for t in range(width):
        data = model = 0.0
        for i in range(size):
            data += x[i * width + t]
            model += y[i * width + t]
        for i in range(size):
            j = i * width + t
            if data == 0.0 or model == 0.0:
                u[j] = v[j] = NONE
    for j in range(x.size):
        phi[j] = exp2_of(u[j] + kv[j]) if u[j] > 0.5 * NONE else 0.0
        psi[j] = exp2_of(v[j] + ku[j]) if v[j] > 0.5 * NONE else 0.0
        ratio[j] = v[j] + ku[j] - log2_of(y[j]) if psi[j] > 0.0 and y[j] > 0.0 else 0.0
