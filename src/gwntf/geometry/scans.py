"""Sums along a line whose terms decay with the distance, of plain numbers or of logarithms, by doubling.

With S_w(i) the sum over the w places up to i, discounted to i, S_2w(i) = S_w(i) + exp(-(p_i - p_{i-w})) S_w(i - w).
Nothing is subtracted or divided, and every factor is at most one, so all sums are accurate to rounding, also where the
distances are so large that the decay underflows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from gwntf.backends import Backend
from gwntf.core import Array, FloatArray


class Arithmetic(ABC):
    """A number system for `Scan`; arrays have one row per place."""

    empty: float  # representation of zero

    def __init__(self, backend: Backend, dtype: Any) -> None:
        self.backend, self.dtype, self.xp = backend, dtype, backend.xp

    @abstractmethod
    def weights(self, distances: FloatArray) -> Array:
        """Return the representation of exp(-distances), one per row, for `damped`."""

    @abstractmethod
    def damped(self, values: Array, weights: Array) -> Array:
        """Return values multiplied by exp(-distances)."""

    @abstractmethod
    def add(self, left: Array, right: Array) -> Array:
        """Return the sum."""

    def row_of_zeros(self, values: Array) -> Array:
        """Return one row of zeros."""
        return self.xp.full_like(values[:1], self.empty)


class Numbers(Arithmetic):
    """Plain numbers; a weight is applied as two square roots, which are normal numbers where their product is not."""

    empty = 0.0

    def weights(self, distances: FloatArray) -> Array:
        return self.backend.asarray(np.exp(-distances / 2)[:, None], self.dtype)

    def damped(self, values: Array, weights: Array) -> Array:
        return weights * (weights * values)

    def add(self, left: Array, right: Array) -> Array:
        return left + right


class Logarithms(Arithmetic):
    """Logarithms of the numbers."""

    empty = -math.inf

    def weights(self, distances: FloatArray) -> Array:
        return self.backend.asarray(distances[:, None], self.dtype)

    def damped(self, values: Array, weights: Array) -> Array:
        return values - weights

    def add(self, left: Array, right: Array) -> Array:
        return self.xp.logaddexp(left, right)


class Scan:
    """Sums over the places of a line, given by the distances between neighbours, for every column of an array."""

    def __init__(self, arithmetic: Arithmetic, steps: FloatArray) -> None:
        self._arithmetic, self._levels = arithmetic, list[tuple[int, Array]]()
        span, distances = 1, steps  # distances between the places k and k + span
        while distances.size:
            self._levels.append((span, arithmetic.weights(distances)))
            distances = distances[:-span] + distances[span:]
            span *= 2

    def before(self, values: Array) -> Array:
        """Return the sum over all places up to every place, itself included."""
        add, damped, xp = self._arithmetic.add, self._arithmetic.damped, self._arithmetic.xp
        for span, weights in self._levels:
            values = xp.concat([values[:span], add(values[span:], damped(values[:-span], weights))])
        return values

    def behind(self, values: Array) -> Array:
        """Return the sum over all places from every place on, itself included."""
        add, damped, xp = self._arithmetic.add, self._arithmetic.damped, self._arithmetic.xp
        for span, weights in self._levels:
            values = xp.concat([add(values[:-span], damped(values[span:], weights)), values[-span:]])
        return values

    def both(self, values: Array) -> Array:
        """Return the sum over all places."""
        if not self._levels:
            return values
        add, damped, xp = self._arithmetic.add, self._arithmetic.damped, self._arithmetic.xp
        before, behind = self.before(values), self.behind(values)
        return xp.concat([add(before[:-1], damped(behind[1:], self._levels[0][1])), before[-1:]])
