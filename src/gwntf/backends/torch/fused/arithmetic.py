"""Powers and limits that the fused transports share, in float32 and float64.

With `NATIVE` logarithm, exponential and inverse are single instructions of the chip, good to some units in the last
place of float32; without, as under Triton's interpreter and in float64, they are the language's own.
"""

import triton
import triton.language as tl

LOG_2 = tl.constexpr(0.6931471805599453)
NEGLIGIBLE = tl.constexpr(2.0**-30)
"""Part of a marginal that may be lost."""
_TINY, _WIDE_TINY = tl.constexpr(1.1754943508222875e-38), tl.constexpr(2.2250738585072014e-308)
_LARGE, _WIDE_LARGE = tl.constexpr(2.0**125), tl.constexpr(2.0**1021)
"""Largest numbers that are divided by: their inverses are normal."""


@triton.jit
def positive(x):
    """Return x, or the smallest normal number where that is larger."""
    if x.dtype == tl.float64:
        return tl.maximum(x, _WIDE_TINY)
    return tl.maximum(x, _TINY)


@triton.jit
def times_tiny(x):
    """Return x times the smallest normal number."""
    if x.dtype == tl.float64:
        return x * _WIDE_TINY
    return x * _TINY


@triton.jit
def held(x):
    """Whether `divide_by_power` takes a nonnegative x as it is; neither infinity nor what is not a number is."""
    if x.dtype == tl.float64:
        return x <= _WIDE_LARGE
    return x <= _LARGE


@triton.jit
def hidden(given, counted, product):
    """Return the most mass that entries of U or V below the smallest normal number may have had, and now have not.

    CPUs hold such numbers with fewer digits, these instructions take them for zero.
    """
    return times_tiny(tl.where((counted > 0) & (positive(given) > given), product, 0.0))


@triton.jit
def log2(x, NATIVE: tl.constexpr):
    """log2 x of a positive number."""
    if NATIVE:
        return tl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
    return tl.log2(x)


@triton.jit
def exp2(x, NATIVE: tl.constexpr):
    """2^x."""
    if NATIVE:
        return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
    return tl.exp2(x)


@triton.jit
def inverse(x, NATIVE: tl.constexpr):
    """1 / x."""
    if NATIVE:
        return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
    return 1.0 / x


@triton.jit
def divide_by_power(raised, product, power, rest, EXACT: tl.constexpr, NATIVE: tl.constexpr):
    """Return raised / product^power, given rest = 1 - power; not a number where the product is not held.

    A logarithm has few digits where it is large. Near power one, product^rest / product has the error of `rest` times
    the logarithm and costs an inverse more, where the plain product^-power has that of the whole.
    """
    if product.dtype == tl.float64:
        base = tl.minimum(positive(product), _WIDE_LARGE)
    else:
        base = tl.minimum(positive(product), _LARGE)
    logs = log2(base, NATIVE)
    if EXACT:
        moved = raised * inverse(base, NATIVE) * exp2(rest * logs, NATIVE)
    else:
        moved = raised * exp2(-power * logs, NATIVE)
    return tl.where((base == product) | (raised == 0.0), moved, float("nan"))


@triton.jit
def raise_to(x, rest, factor, NATIVE: tl.constexpr):
    """Return factor x^(1 - rest); zero at zero."""
    return x * factor * exp2(-rest * log2(positive(x), NATIVE), NATIVE)


@triton.jit
def natural_log(x, offset, NATIVE: tl.constexpr):
    """Return offset + log x, minus infinity at zero."""
    return tl.where(x > 0, log2(positive(x), NATIVE) * LOG_2 + offset, float("-inf"))


@triton.jit
def mass_times_log2(mass, x, NATIVE: tl.constexpr):
    """Mass times log2 x in float64, zero where there is no mass."""
    return tl.where(mass > 0, mass * log2(positive(x), NATIVE), 0.0).to(tl.float64)
