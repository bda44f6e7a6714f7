"""What a fit keeps of earlier iterations to converge faster, and the plain updates of the papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gwntf.core import Array, FloatArray
from gwntf.losses.graph import RULES
from gwntf.transport import positive

FIRST_WEIGHT, GROWTH, BOUND_GROWTH, SHRINK = 0.5, 1.05, 1.01, 1.5
_LARGEST_RATIO = 8.0
"""Largest factor by which the ratio of two iterates is extrapolated, and its inverse the smallest."""

_SHORTEST, _LONGEST = 0.1, 0.5
"""Limits of the length of the second step in a direction, in relation to the first."""


@dataclass(frozen=True)
class Plain:
    """The scheme of the papers: one update of every factor per pass over the data, and no acceleration."""

    update: str = "mm"  # Update of the sample factor under transport and KL, one of `RULES`; "mm" never raises F
    row_steps: int = 1  # Updates of the sample factor per pass under transport and KL, if there is a graph

    def __post_init__(self) -> None:
        if self.update not in RULES or self.row_steps < 1:
            raise ValueError(f"no such scheme: {self}")


class Momentum(NamedTuple):
    """Weight of the extrapolation and its upper bound, adapted to whether extrapolated points lower F.

    The rule is that of A. M. S. Ang and N. Gillis, *Accelerating nonnegative matrix factorization algorithms using
    extrapolation*, Neural Computation 31 (2019), with their constants, except that the bound has a limit other than
    one for some losses.
    """

    weight: float = 0.0  # zero in the first iteration, which comes from the start
    bound: float = 1.0

    @property
    def inputs(self) -> Sequence[float]:
        """Numbers that the next step depends on."""
        return [self.weight]

    def accepted(self, limit: float) -> Momentum:
        """Return the momentum after an extrapolated point that did not raise F; `limit` is that of the loss."""
        if self.weight == 0:
            return Momentum(FIRST_WEIGHT)
        return Momentum(min(self.bound, GROWTH * self.weight), min(limit, BOUND_GROWTH * self.bound))

    def rejected(self) -> Momentum:
        """Return the momentum after an extrapolated point that raised F."""
        return Momentum(FIRST_WEIGHT) if self.weight == 0 else Momentum(self.weight / SHRINK, self.weight)


class Search(NamedTuple):
    """The next step of the quasi-Newton method of `quasi_newton`, and what is needed to shorten it."""

    weights: FloatArray  # (m,) array: coefficients c of the steps in the history
    gram: FloatArray  # (2 m + 2, 2 m + 2) array: inner products of the history
    pairs: int = 0  # Number of pairs so far; the next one is written to slot `pairs` modulo m
    slope: float = 0.0  # Decrease of F per unit of length at the current point
    scale: float = 1.0  # By which the curvature of the majorizer of the data term is divided
    length: float = 1.0  # Length of the next step, in relation to that of the method
    mean: float = 0.0  # Mean entry of the sample factor at the start

    @property
    def inputs(self) -> Sequence[float]:
        """Numbers that the next step depends on."""
        return [self.length, *self.weights.tolist()]

    def shortened(self, rise: float) -> Search:
        """Return the step of the length that minimises a parabola, after one of length one that raised F by `rise`."""
        ratio = self.slope / (2 * (rise + self.slope)) if rise + self.slope > 0 else _LONGEST
        return self._replace(length=min(_LONGEST, max(_SHORTEST, ratio)))


def extrapolated_ratio(xp: Any, new: Array, old: Array, weight: Any) -> Array:
    """Return new (new / old)^weight: extrapolation of logarithms, which keeps entries positive."""
    return new * xp.clip(new / positive(xp, old), 1 / _LARGEST_RATIO, _LARGEST_RATIO) ** weight


def extrapolated_line(xp: Any, new: Array, old: Array, weight: Any) -> Array:
    """Return new + weight (new - old), with negative entries set to zero."""
    return xp.clip(new + weight * (new - old), 0.0, None)
