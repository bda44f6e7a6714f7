"""The two number systems in which the scaling loop can run: plain numbers and logarithms.

The loop of `scaling` is the same in both; a domain says what a product, a quotient and a power are. In
`Plain` a quantity is itself and may overflow; in `Log` it is held as its logarithm.
"""

from __future__ import annotations

from typing import Any, Protocol

from gwntf.core import Array
from gwntf.engines import Engine
from gwntf.geometry import Kernel


class Domain(Protocol):
    """Arithmetic on U and V for one kernel."""

    def raised(self, values: Array, power: float) -> Array:
        """Bring values in, raised to a power."""
        ...

    def from_log(self, logs: Array) -> Array:
        """Bring values in that are known by their logarithms."""
        ...

    def to_log(self, held: Array) -> Array:
        """Logarithms of held values."""
        ...

    def apply(self, held: Array, *, transposed: bool = False) -> Array:
        """K V or K' U."""
        ...

    def quotient(self, raised: Array, product: Array, power: float) -> Array:
        """Return raised / product ** power: one half of a scaling."""
        ...

    def product(self, left: Array, right: Array) -> Array:
        """Entrywise product, as a plain number: a marginal."""
        ...

    def sound(self, u: Array, v: Array, kv: Array, ku: Array, x: Array, y: Array) -> Array:
        """Which columns kept their accuracy."""
        ...


class Plain:
    """Plain numbers in the precision of the kernel."""

    def __init__(self, engine: Engine, kernel: Kernel, tiny: float) -> None:
        self._xp: Any = engine.xp
        self._kernel = kernel
        self._tiny = tiny

    def raised(self, values: Array, power: float) -> Array:
        """Raise to a power."""
        return values**power

    def from_log(self, logs: Array) -> Array:
        """Take the exponential."""
        return self._xp.exp(logs)

    def to_log(self, held: Array) -> Array:
        """Take the logarithm."""
        return self._xp.log(held)

    def apply(self, held: Array, *, transposed: bool = False) -> Array:
        """K V or K' U."""
        return self._kernel.matmul(held, transposed=transposed)

    def quotient(self, raised: Array, product: Array, power: float) -> Array:
        """Return raised / product ** power."""
        return raised / product**power

    def product(self, left: Array, right: Array) -> Array:
        """Left times right."""
        return left * right

    def sound(self, u: Array, v: Array, kv: Array, ku: Array, x: Array, y: Array) -> Array:
        """Columns that stayed finite and whose products are far above what the number type cannot hold.

        Entries of K below the smallest normal number are rounded or lost; that error is at most the smallest
        normal number (times the machine precision) for each unit of U or V. It is harmless while every
        product that counts is larger than `tiny` times their sum.
        """
        xp = self._xp
        return self._clear(kv, x > 0, xp.sum(v, axis=0)) & self._clear(ku, y > 0, xp.sum(u, axis=0))

    def _clear(self, product: Array, counts: Array, total: Array) -> Array:
        xp = self._xp
        floor = self._tiny * xp.maximum(total, xp.full_like(total, float(self._kernel.size)))
        return xp.isfinite(total) & xp.all(xp.isfinite(product) & ((product > floor) | ~counts), axis=0)


class Log:
    """Logarithms: nothing overflows, at the price of an exponential for every pair of entries."""

    def __init__(self, engine: Engine, kernel: Kernel) -> None:
        self._xp: Any = engine.xp
        self._kernel = kernel

    def raised(self, values: Array, power: float) -> Array:
        """Power times log."""
        return power * self._xp.log(values)

    def from_log(self, logs: Array) -> Array:
        """Already there."""
        return logs

    def to_log(self, held: Array) -> Array:
        """Already there."""
        return held

    def apply(self, held: Array, *, transposed: bool = False) -> Array:
        """log(K V) or log(K' U)."""
        return self._kernel.log_matmul(held, transposed=transposed)

    def quotient(self, raised: Array, product: Array, power: float) -> Array:
        """Difference of logarithms."""
        return raised - power * product

    def product(self, left: Array, right: Array) -> Array:
        """Take the exponential of the sum."""
        return self._xp.exp(left + right)

    def sound(self, u: Array, v: Array, kv: Array, ku: Array, x: Array, y: Array) -> Array:  # noqa: ARG002
        """Every column."""
        return self._xp.ones_like(kv[0, :], dtype=self._xp.bool)
