"""Penalties l1 |A|_1 + (l2/2) |A|_F^2 on the factors, their values, and the update of a factor on the simplex."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gwntf.backends import Backend
from gwntf.core import Array, InputError
from gwntf.data import BlockState, Sums
from gwntf.transport import positive

_NEWTON_STEPS = 16


@dataclass(frozen=True)
class Penalty:
    """l1 |A|_1 + (l2/2) |A|_F^2 of a nonnegative factor A."""

    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        for name in ("l1", "l2"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise InputError(name, repr(value), "a finite nonnegative number")

    @property
    def present(self) -> bool:
        """Whether the penalty is not zero."""
        return self.l1 > 0 or self.l2 > 0

    def gradient(self, a: Array) -> Array:
        """Return l1 + l2 a."""
        return self.l1 + self.l2 * a

    def of_rows(self, xp: Any, a: Array) -> Array:
        """Return the penalty of every row, in float64."""
        wide = xp.astype(a, xp.float64, copy=False)
        return xp.sum(wide * (self.l1 + 0.5 * self.l2 * wide), axis=1)

    def of(self, xp: Any, a: Array) -> Array:
        """Return the penalty of a factor, in float64."""
        return xp.sum(self.of_rows(xp, a))


NO_PENALTY = Penalty()


@dataclass(frozen=True)
class Penalties:
    """Penalties on all factors: one on the sample factor, and one on each of the other factors."""

    samples: Penalty = NO_PENALTY
    others: Penalty = NO_PENALTY

    @property
    def present(self) -> bool:
        """Whether any factor has a penalty."""
        return self.samples.present or self.others.present


NO_PENALTIES = Penalties()


def block_rows_penalty(backend: Backend, kept: BlockState, *, penalty: Penalty) -> tuple[None, Sums]:
    """Return the penalty on the rows of a block, for `Blocks.apply`."""
    return None, Sums(penalty=penalty.of(backend.xp, kept.rows))


def l2_on_simplex(xp: Any, c: Array, l2: float) -> Array:
    """Minimise -sum_i c_i log a_i + (l2/2) sum_i a_i^2 over the simplex, for every column of c; l2 is positive.

    With the multiplier t of the constraint, -c_i / a_i + l2 a_i + t = 0, so that a_i(t) is the positive root of
    l2 a^2 + t a - c_i = 0. Multiplied by a_i and summed, t = sum(c) - l2 |a|^2 is between sum(c) - l2 and
    sum(c) - l2 / n. s(t) = sum_i a_i(t) is convex and decreasing: the Newton step for s = 1 never passes the solution
    from the left and so bounds it from below, and the one for 1/s = 1 converges faster. The latter is taken where it
    stays inside the bounds, else the former. The number of steps is fixed, in float64 and without host
    synchronisation; it reaches rounding also where the entries of a column span 100 orders of magnitude, and a last
    division makes the sums one. A column of zeros becomes uniform, which minimises its penalty.
    """
    wide = xp.astype(c, xp.float64, copy=False)
    total = xp.sum(wide, axis=0)
    low, high = total - l2, total - l2 / c.shape[0]
    t, a = high, wide
    for _ in range(_NEWTON_STEPS):
        a, slope = _root(xp, wide, l2, t)
        excess = xp.sum(a, axis=0) - 1
        step = excess / slope
        low, high = xp.maximum(low, t + step), xp.where(excess < 0, t, high)
        faster = t + (1 + excess) * step
        t = xp.where((faster >= low) & (faster <= high), faster, low)
    a, _ = _root(xp, wide, l2, t)
    return xp.astype(a / xp.sum(a, axis=0), c.dtype, copy=False)


def _root(xp: Any, c: Array, l2: float, t: Array) -> tuple[Array, Array]:
    """Return a(t), in the form that does not cancel, and minus the derivative of the sums of its columns."""
    size = xp.abs(t) + xp.sqrt(t * t + 4 * l2 * c)
    a = xp.where(t > 0, 2 * c / positive(xp, size), size / (2 * l2))
    root = positive(xp, size - xp.abs(t))
    return a, positive(xp, xp.sum(a / root, axis=0))
