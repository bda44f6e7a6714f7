"""The two number systems in which the scaling loop can run: plain numbers and logarithms.

The loop of `scaling` is the same in both; a domain defines products, quotients and powers of U and V for one kernel. In
`Plain` a quantity is represented by its value and may overflow; in `Log` by its logarithm.
"""

import math
from typing import Any, TypeAlias

from gwntf.backends import Backend
from gwntf.core import Array
from gwntf.geometry import Kernel


class Plain:
    """Plain numbers in the precision of the kernel.

    The kernel is stored as exp(s) K, and U and V are represented by exp(-a) U and exp(-b) V with a + b = s. This does
    not change the marginals and keeps all numbers far from overflow and underflow.
    """

    def __init__(self, backend: Backend, kernel: Kernel, tiny: float) -> None:
        self._xp: Any = backend.xp
        self._kernel = kernel
        self._tiny = tiny
        self._offsets = kernel.offsets

    def raised(self, values: Array, power: float, side: int) -> Array:
        """Return the representation of values raised to a power; `side` is 0 for the data, 1 for the model."""
        return values**power * math.exp(self._offsets[side] * (power - 1))

    def from_log(self, logs: Array, side: int) -> Array:
        """Return the representation of values given by their logarithms."""
        return self._xp.exp(logs - self._offsets[side])

    def to_log(self, values: Array, side: int) -> Array:
        return self._xp.log(values) + self._offsets[side]

    def apply(self, values: Array, *, transposed: bool = False) -> Array:
        """Return K V, or K' U if transposed."""
        return self._kernel.matmul(values, transposed=transposed)

    def quotient(self, raised: Array, product: Array, power: float) -> Array:
        """Return raised / product ** power: one half of a scaling."""
        return raised / product**power

    def product(self, left: Array, right: Array) -> Array:
        """Return the entrywise product as plain numbers: a marginal."""
        return left * right

    def accurate(self, u: Array, v: Array, kv: Array, ku: Array, x: Array, y: Array) -> Array:
        """Return which columns are finite and have products well above the smallest normal number.

        Sums below the smallest normal number are rounded, and so are such entries of K, unless `kernel.all_normal`;
        that error is at most the smallest normal number (times the machine precision) for each unit of U or V. Both
        errors are negligible if every product at a nonzero entry is larger than `tiny` times the sum of U or V, and
        times the size of the kernel.
        """
        xp = self._xp
        return self._clear(kv, x > 0, xp.sum(v, axis=0)) & self._clear(ku, y > 0, xp.sum(u, axis=0))

    def _clear(self, product: Array, counts: Array, total: Array) -> Array:
        xp = self._xp
        units = xp.zeros_like(total) if self._kernel.all_normal else total
        floor = self._tiny * xp.clip(units, float(self._kernel.size), None)
        return xp.isfinite(total) & xp.all(xp.isfinite(product) & ((product > floor) | ~counts), axis=0)


class Log:
    """Logarithms: nothing overflows, but every pair of entries needs an exponential."""

    def __init__(self, backend: Backend, kernel: Kernel) -> None:
        self._xp: Any = backend.xp
        self._kernel = kernel

    def raised(self, values: Array, power: float, side: int) -> Array:  # noqa: ARG002
        return power * self._xp.log(values)

    def from_log(self, logs: Array, side: int) -> Array:  # noqa: ARG002
        return logs

    def to_log(self, values: Array, side: int) -> Array:  # noqa: ARG002
        return values

    def apply(self, values: Array, *, transposed: bool = False) -> Array:
        return self._kernel.log_matmul(values, transposed=transposed)

    def quotient(self, raised: Array, product: Array, power: float) -> Array:
        return raised - power * product

    def product(self, left: Array, right: Array) -> Array:
        return self._xp.exp(left + right)

    def accurate(self, u: Array, v: Array, kv: Array, ku: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        return self._xp.ones_like(kv[0, :], dtype=self._xp.bool)


Domain: TypeAlias = Plain | Log
