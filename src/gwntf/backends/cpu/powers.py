"""Powers and logarithms as short polynomials that LLVM vectorises, in float32 and float64.

A positive number is 2^k m with m between sqrt(1/2) and sqrt(2), taken from its bits (subnormal numbers are scaled up
first). log2 m and 2^r are polynomials; the exponent k is kept separate from the fraction as long as possible, so that
the result is accurate to a few units in the last place over the whole range.

The speed depends on details that fail silently: integers of exactly the width of the float, no branch around the
polynomial, ``error_model="numpy"`` in every caller, and outputs that never alias inputs.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

FLAGS = {"nsz", "arcp", "contract", "afn"}
"""Fast-math flags without nnan, ninf (tests for zero must not be removed) and reassoc (the order avoids overflow)."""

JIT: dict[str, Any] = {"fastmath": FLAGS, "error_model": "numpy"}


def chosen_by_type(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for compiled code whose implementation depends on the types of its arguments."""

    def only_compiled(*_: Any) -> Any:
        raise NotImplementedError("this function can only be called from compiled code")

    overload(only_compiled)(choose)
    return only_compiled


def _fit(function: Any, low: float, high: float, degree: int, kind: Any) -> tuple[Any, ...]:
    """Return the coefficients of a near-minimax polynomial, lowest first."""
    nodes = np.cos(np.pi * (np.arange(400) + 0.5) / 400) * (high - low) / 2 + (high + low) / 2
    series = np.polynomial.Chebyshev.fit(nodes, function(nodes), degree, domain=[low, high])
    return tuple(kind(c) for c in series.convert(kind=np.polynomial.Polynomial).coef)


def _log_ratio(z: Any) -> Any:
    """log2(1 + z) / z."""
    safe = np.where(np.abs(z) < 1e-9, 1.0, z)
    return np.where(np.abs(z) < 1e-9, 1 / np.log(2), np.log2(1 + safe) / safe)


L32 = _fit(_log_ratio, -0.29290, 0.41422, 8, np.float32)
E32 = _fit(np.exp2, -0.5, 0.5, 6, np.float32)
L64 = tuple(2 / (math.log(2) * (2 * k + 1)) for k in range(11))
"""log2((1 + s) / (1 - s)) / s in powers of s^2."""
E64 = tuple(math.log(2) ** k / math.factorial(k) for k in range(14))

I32, I64, F32, F64 = np.int32, np.int64, np.float32, np.float64
ROOT32, ROOT64 = I32(0x3F3504F3), I64(0x3FE6A09E667F3BCD)
"""Bits of sqrt(1/2)."""


@njit(**JIT)
def _log2_32(m):
    """log2 m for m between sqrt(1/2) and sqrt(2)."""
    z = m - F32(1)
    log = L32[7] + z * L32[8]
    log = L32[5] + z * (L32[6] + z * log)
    log = L32[3] + z * (L32[4] + z * log)
    log = L32[1] + z * (L32[2] + z * log)
    return z * (L32[0] + z * log)


@njit(**JIT)
def _log2_64(m):
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    log = L64[8] + z * (L64[9] + z * L64[10])
    log = L64[6] + z * (L64[7] + z * log)
    log = L64[4] + z * (L64[5] + z * log)
    log = L64[2] + z * (L64[3] + z * log)
    return s * (L64[0] + z * (L64[1] + z * log))


@njit(**JIT)
def _exp2_32(h):
    """2^h for |h| <= 1/2."""
    e = E32[4] + h * (E32[5] + h * E32[6])
    e = E32[2] + h * (E32[3] + h * e)
    return E32[0] + h * (E32[1] + h * e)


@njit(**JIT)
def _exp2_64(h):
    e = E64[10] + h * (E64[11] + h * (E64[12] + h * E64[13]))
    e = E64[8] + h * (E64[9] + h * e)
    e = E64[6] + h * (E64[7] + h * e)
    e = E64[4] + h * (E64[5] + h * e)
    e = E64[2] + h * (E64[3] + h * e)
    return E64[0] + h * (E64[1] + h * e)


def _functions(Float: Any, Int: Any, root: Any, up: int, log2_near_one: Any, exp2_near_zero: Any) -> tuple[Any, ...]:
    """Return a / x ** p, log2 x and 2 ** y for a float type and the integer type of the same width.

    `root` has the bits of sqrt(1/2). Subnormal numbers are multiplied by 2^up.
    """
    info = np.finfo(Float)
    tiny, scale, half = info.smallest_normal, Float(2.0**up), Float(0.5)
    low, high = Float(2 * info.minexp), Float(2 * info.maxexp - 2)
    mantissa, bias, lift, zero = Int(info.nmant), Int(info.maxexp - 1), Int(up), Int(0)

    @njit(**JIT)
    def split(x):
        small = x < tiny
        scaled = x * scale if small else x
        bits = Int(Float(scaled).view(Int))
        k = Int(Int(bits - root) >> mantissa)
        m = Float(Int(bits - Int(k << mantissa)).view(Float))
        return Int(k - (lift if small else zero)), log2_near_one(m)

    @njit(**JIT)
    def times_exp2(numerator, h, n):
        """Numerator * 2^(n + h) for |h| <= 1/2, scaled in two steps so that the result may be subnormal or infinite."""
        part = Int(n >> Int(1))
        first = Float(Int(Int(part + bias) << mantissa).view(Float))
        second = Float(Int(Int(Int(n - part) + bias) << mantissa).view(Float))
        return ((numerator * exp2_near_zero(h)) * first) * second

    @njit(**JIT)
    def over_power(numerator, x, p, short):
        k, log = split(x)
        high = -Float(k) * short
        whole = np.floor(high + half)
        g = (high - whole) - (Float(k) * (p - short) + log * p)
        r = np.floor(g + half)
        return times_exp2(numerator, g - r, Int(whole + r))

    @njit(**JIT)
    def log2(x):
        k, log = split(x)
        return Float(k) + log

    @njit(**JIT)
    def exp2(y):
        y = min(max(y, low), high)
        r = np.floor(y + half)
        return times_exp2(Float(1), y - r, Int(r))

    return over_power, log2, exp2


_over_power32, _log32, _exp32 = _functions(F32, I32, ROOT32, 64, _log2_32, _exp2_32)
_over_power64, _log64, _exp64 = _functions(F64, I64, ROOT64, 128, _log2_64, _exp2_64)


@chosen_by_type
def over_power(numerator, x, p, short):  # noqa: ARG001
    """Return numerator / x ** p for x > 0 and 0 <= p <= 1, in the type of x.

    `short` is p truncated to so few bits that its product with an exponent is exact.
    """
    if x == types.float32:
        return lambda numerator, x, p, short: _over_power32(numerator, x, p, short)
    return lambda numerator, x, p, short: _over_power64(numerator, x, p, short)


@chosen_by_type
def log2_of(x):
    """log2 x for x > 0, in the type of x."""
    return (lambda x: _log32(x)) if x == types.float32 else (lambda x: _log64(x))


@chosen_by_type
def exp2_of(y):
    """2 ** y, in the type of y, zero or infinite outside its range."""
    return (lambda y: _exp32(y)) if y == types.float32 else (lambda y: _exp64(y))


@njit(**JIT)
def divide_by_powers(numerator, x, p, out):
    """Out = numerator / x ** p, zero where x is zero, NaN where x is infinite; arrays do not overlap."""
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
