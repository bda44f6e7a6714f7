"""Quotients and the Kullback-Leibler divergence, once for every array library."""

import math
from typing import Any

from gwntf.core import Array


def positive(xp: Any, values: Array) -> Array:
    """Return nonnegative values, at least the smallest normal number, to divide by."""
    return xp.clip(values, float(xp.finfo(values.dtype).smallest_normal), None)


def ratio_and_kl(xp: Any, x: Array, y: Array, axis: int) -> tuple[Array, Array]:
    """Return x / y (zero where x vanishes), and KL(x | y) = sum x log(x / y) - x + y along an axis, in float64.

    The divergence is infinite where there is mass in x and none in y.
    """
    ratio = x / positive(xp, y)
    logs = xp.where(x > 0, x * xp.log(ratio), xp.zeros_like(x))
    kl = xp.sum(logs, axis=axis, dtype=xp.float64) + xp.sum(y - x, axis=axis, dtype=xp.float64)
    broken = xp.any((x > 0) & (y == 0), axis=axis)
    return ratio, xp.where(broken, xp.full_like(kl, math.inf), kl)
