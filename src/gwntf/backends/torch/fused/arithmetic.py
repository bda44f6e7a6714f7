"""Powers and limits that the fused kernels share, in float32 and float64.

With `config.native`, logarithm, exponential and inverse are single GPU instructions, accurate to a few units in the
last place of float32. Otherwise, as in float64 and under Triton's interpreter, they are Triton's own functions.
"""

import triton
import triton.language as tl

LOG_2 = tl.constexpr(0.6931471805599453)
_NEGLIGIBLE = tl.constexpr(2.0**-30)
"""Largest fraction of the mass of a marginal that may be lost to subnormal numbers."""
_TINY, _WIDE_TINY = tl.constexpr(1.1754943508222875e-38), tl.constexpr(2.2250738585072014e-308)
_LARGE, _WIDE_LARGE = tl.constexpr(2.0**125), tl.constexpr(2.0**1021)
"""Largest divisors: their inverses are normal numbers."""


@triton.jit
def positive(x):
    """Return x, or the smallest normal number where that is larger."""
    return tl.maximum(x, _WIDE_TINY if x.dtype == tl.float64 else _TINY)


@triton.jit
def times_tiny(x):
    """Return x times the smallest normal number."""
    return x * (_WIDE_TINY if x.dtype == tl.float64 else _TINY)


@triton.jit
def in_range(x):
    """Whether `divide_by_power` accepts a nonnegative x as it is; false for infinity and NaN."""
    return x <= (_WIDE_LARGE if x.dtype == tl.float64 else _LARGE)


@triton.jit
def flushed_mass(scaled, counted, product):
    """Return an upper bound on the mass of subnormal entries of U or V, which are flushed to zero."""
    return times_tiny(tl.where((counted > 0) & (positive(scaled) > scaled), product, 0.0))


@triton.jit
def is_negligible(part, mass):
    """Whether a part of the mass of a marginal may be lost."""
    return part <= mass * _NEGLIGIBLE


@triton.jit
def log2(x, config):
    """log2 x of a positive number."""
    if config.native:
        return tl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
    return tl.log2(x)


@triton.jit
def exp2(x, config):
    """2^x."""
    if config.native:
        return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
    return tl.exp2(x)


@triton.jit
def inverse(x, config):
    """1 / x."""
    if config.native:
        return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
    return 1.0 / x


@triton.jit
def divide_by_power(raised, product, side, config):
    """Return raised / product^power, NaN where the product is out of range.

    A large logarithm has few correct digits. With `config.exact` this is raised / product * product^rest: near power
    one the exponent `rest` is small, and so is the error of its product with the logarithm. This needs one more inverse
    than product^-power.
    """
    base = tl.minimum(positive(product), _WIDE_LARGE if product.dtype == tl.float64 else _LARGE)
    logs = log2(base, config)
    if config.exact:
        divided = raised * inverse(base, config) * exp2(side.rest * logs, config)
    else:
        divided = raised * exp2(-side.power * logs, config)
    return tl.where((base == product) | (raised == 0.0), divided, float("nan"))


@triton.jit
def raise_to_power(x, side, config):
    """Return factor x^power; zero at zero."""
    return x * side.factor * exp2(-side.rest * log2(positive(x), config), config)


@triton.jit
def natural_log(x, offset, config):
    """Return offset + log x, minus infinity at zero."""
    return tl.where(x > 0, log2(positive(x), config) * LOG_2 + offset, float("-inf"))


@triton.jit
def mass_times_log2(mass, x, config):
    """Mass times log2 x in float64, zero where there is no mass."""
    return tl.where(mass > 0, mass * log2(positive(x), config), 0.0).to(tl.float64)
