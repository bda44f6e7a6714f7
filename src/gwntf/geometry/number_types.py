"""Kernels in number types: by how much to lift a kernel, U and V, so that a type holds them.

Data have zeros where their model has none, so V has to be large far away from the data, and U small at them: held as
they are, both would leave float32 at one end while the other end is empty.
"""

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np

from gwntf.core import Array


def lifting_shift(smallest: float, largest: float, dtype: Any) -> tuple[float, bool]:
    """Return s >= 0 that makes exp(s + smallest) a normal number of that type, and whether there is room for it.

    exp(s + largest) stays below the square root of the largest number, to leave room for U and V.
    """
    info = np.finfo(dtype)
    wanted = max(0.0, math.log(float(info.smallest_normal)) + 1 - smallest)
    room = max(0.0, 0.5 * math.log(float(info.max)) - largest)
    return min(wanted, room), wanted <= room


def split_shift(shift: float, dtype: Any) -> tuple[float, float]:
    """Return (a, b) with a + b = s: U is held as exp(-a) U and V as exp(-b) V, U lifted and V lowered."""
    gauge = 0.3 * math.log(float(np.finfo(dtype).max))
    return shift / 2 - gauge, shift / 2 + gauge


class Retyped(ABC):
    """A kernel that can be had in another precision; its float64 twin is kept, because hard columns turn to it."""

    _dtype: Any

    @abstractmethod
    def _at(self, dtype: Any) -> Self:
        """Build the same kernel in another precision."""

    def astype(self, dtype: Any) -> Self:
        """Return the same kernel in another precision (a NumPy dtype)."""
        if np.dtype(dtype) == self._dtype:
            return self
        return self._wide if np.dtype(dtype) == np.float64 else self._at(dtype)

    @cached_property
    def _wide(self) -> Self:
        return self._at(np.float64)


def log_sum_exp(xp: Any, terms: Array, axis: int) -> Array:
    """log(sum(exp(terms))) along an axis; -inf where all are -inf."""
    top = xp.max(terms, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    return xp.squeeze(top, axis=axis) + xp.log(xp.sum(xp.exp(terms - top), axis=axis))
