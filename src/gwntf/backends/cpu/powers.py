"""Powers and logarithms as short polynomials that LLVM vectorises, in float32 and float64.

A positive number is 2^k m with m between sqrt(1/2) and sqrt(2), read off its bits (subnormal numbers are scaled up
first). log2 m and 2^r are polynomials; the exponent k is kept apart from the fraction as long as possible, so that
the result is right to a few units in the last place over the whole range.

The speed hangs on details that fail silently: integers of exactly the width of the float, no branch around the
polynomial, ``error_model="numpy"`` in every caller, and outputs that never alias inputs.
"""

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

FLAGS = {"nsz", "arcp", "contract", "afn"}
"""Fast-math flags without nnan, ninf (guards against zero must survive) and reassoc (the order is overflow-safe)."""

JIT: dict[str, Any] = {"fastmath": FLAGS, "error_model": "numpy"}


def _fit(function: Any, low: float, high: float, degree: int, kind: Any) -> tuple[Any, ...]:
    """Coefficients of a near-minimax polynomial, lowest first."""
    nodes = np.cos(np.pi * (np.arange(400) + 0.5) / 400) * (high - low) / 2 + (high + low) / 2
    series = np.polynomial.Chebyshev.fit(nodes, function(nodes), degree, domain=[low, high])
    return tuple(kind(c) for c in series.convert(kind=np.polynomial.Polynomial).coef)


def _log_ratio(z: Any) -> Any:
    """log2(1 + z) / z."""
    safe = np.where(np.abs(z) < 1e-9, 1.0, z)
    return np.where(np.abs(z) < 1e-9, 1 / np.log(2), np.log2(1 + safe) / safe)


L32 = _fit(_log_ratio, -0.29290, 0.41422, 8, np.float32)
E32 = _fit(np.exp2, -0.5, 0.5, 6, np.float32)
L64 = tuple(
    2 / (math.log(2) * (2 * k + 1)) for k in range(11)
)  # log2((1 + s) / (1 - s)) / s in powers of s^2
E64 = tuple(math.log(2) ** k / math.factorial(k) for k in range(14))

I32, I64, F32, F64 = np.int32, np.int64, np.float32, np.float64
ROOT32, ROOT64 = I32(0x3F3504F3), I64(0x3FE6A09E667F3BCD)
TINY32, TINY64 = F32(1.17549435e-38), F64(2.2250738585072014e-308)
UP32, UP64 = F32(2.0**64), F64(2.0**128)


@njit(**JIT)
def _split32(x):
    small = x < TINY32
    scaled = x * UP32 if small else x
    bits = I32(F32(scaled).view(I32))
    k = I32(I32(bits - ROOT32) >> I32(23))
    m = F32(I32(bits - I32(k << I32(23))).view(F32))
    k = I32(k - (I32(64) if small else I32(0)))
    z = m - F32(1)
    log = L32[7] + z * L32[8]
    log = L32[5] + z * (L32[6] + z * log)
    log = L32[3] + z * (L32[4] + z * log)
    log = L32[1] + z * (L32[2] + z * log)
    return k, z * (L32[0] + z * log)


@njit(**JIT)
def _split64(x):
    small = x < TINY64
    scaled = x * UP64 if small else x
    bits = I64(F64(scaled).view(I64))
    k = I64(I64(bits - ROOT64) >> I64(52))
    m = F64(I64(bits - I64(k << I64(52))).view(F64))
    k = I64(k - (I64(128) if small else I64(0)))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    log = L64[8] + z * (L64[9] + z * L64[10])
    log = L64[6] + z * (L64[7] + z * log)
    log = L64[4] + z * (L64[5] + z * log)
    log = L64[2] + z * (L64[3] + z * log)
    return k, s * (L64[0] + z * (L64[1] + z * log))


@njit(**JIT)
def _times_exp2_32(numerator, h, n):
    """Numerator * 2^(n + h) for |h| <= 1/2, scaled in two steps so that it may end subnormal or infinite."""
    e = E32[4] + h * (E32[5] + h * E32[6])
    e = E32[2] + h * (E32[3] + h * e)
    e = E32[0] + h * (E32[1] + h * e)
    half = I32(n >> I32(1))
    first = F32(I32(I32(half + I32(127)) << I32(23)).view(F32))
    second = F32(I32(I32(I32(n - half) + I32(127)) << I32(23)).view(F32))
    return ((numerator * e) * first) * second


@njit(**JIT)
def _times_exp2_64(numerator, h, n):
    e = E64[10] + h * (E64[11] + h * (E64[12] + h * E64[13]))
    e = E64[8] + h * (E64[9] + h * e)
    e = E64[6] + h * (E64[7] + h * e)
    e = E64[4] + h * (E64[5] + h * e)
    e = E64[2] + h * (E64[3] + h * e)
    e = E64[0] + h * (E64[1] + h * e)
    half = I64(n >> I64(1))
    first = F64(I64(I64(half + I64(1023)) << I64(52)).view(F64))
    second = F64(I64(I64(I64(n - half) + I64(1023)) << I64(52)).view(F64))
    return ((numerator * e) * first) * second


@njit(**JIT)
def _over_power32(numerator, x, p, short):
    k, log = _split32(x)
    high = -F32(k) * short
    whole = np.floor(high + F32(0.5))
    g = (high - whole) - (F32(k) * (p - short) + log * p)
    r = np.floor(g + F32(0.5))
    return _times_exp2_32(numerator, g - r, I32(whole + r))


@njit(**JIT)
def _over_power64(numerator, x, p, short):
    k, log = _split64(x)
    high = -F64(k) * short
    whole = np.floor(high + 0.5)
    g = (high - whole) - (F64(k) * (p - short) + log * p)
    r = np.floor(g + 0.5)
    return _times_exp2_64(numerator, g - r, I64(whole + r))


@njit(**JIT)
def _exp2_32(y):
    y = min(max(y, F32(-252)), F32(254))
    r = np.floor(y + F32(0.5))
    return _times_exp2_32(F32(1), y - r, I32(r))


@njit(**JIT)
def _exp2_64(y):
    y = min(max(y, -2044.0), 2046.0)
    r = np.floor(y + 0.5)
    return _times_exp2_64(1.0, y - r, I64(r))


def over_power(numerator: Any, x: Any, p: Any, short: Any) -> Any:
    """Return numerator / x ** p for x > 0 and 0 <= p <= 1, in the type of x (inside compiled code).

    `short` is p cut to so few bits that its product with an exponent is exact.
    """
    raise NotImplementedError("only inside compiled code")


@overload(over_power)
def _over_power(numerator, x, p, short):  # noqa: ARG001
    if x == types.float32:
        return lambda numerator, x, p, short: _over_power32(numerator, x, p, short)
    return lambda numerator, x, p, short: _over_power64(numerator, x, p, short)


def log2_of(x: Any) -> Any:
    """log2 x for x > 0, in the type of x (inside compiled code)."""
    raise NotImplementedError("only inside compiled code")


@overload(log2_of)
def _log2_of(x):
    if x == types.float32:

        def log32(x):
            k, log = _split32(x)
            return F32(k) + log

        return log32

    def log64(x):
        k, log = _split64(x)
        return F64(k) + log

    return log64


def exp2_of(y: Any) -> Any:
    """2 ** y, in the type of y, with zero and infinity beyond the range (inside compiled code)."""
    raise NotImplementedError("only inside compiled code")


@overload(exp2_of)
def _exp2_of(y):
    if y == types.float32:
        return lambda y: _exp2_32(y)
    return lambda y: _exp2_64(y)


@njit(**JIT)
def divide_by_powers(numerator, x, p, out):
    """Out = numerator / x ** p, zero where x is zero, not a number where x is infinite; arrays do not overlap."""
    one, zero = x.dtype.type(1), x.dtype.type(0)
    bits = x.dtype.type(2.0**16 if x.itemsize == 4 else 2.0**41)
    short = x.dtype.type(np.floor(p * bits) / bits)
    for j in range(x.size):
        d = x[j]
        positive = d > zero
        y = over_power(numerator[j], d if positive else one, p, short) + (d - d)
        out[j] = y if positive else zero


@njit(**JIT)
def logarithms(x, out):
    """Out = log2 x, or zero where x is zero."""
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for j in range(x.size):
        out[j] = log2_of(x[j] if x[j] > zero else one)
