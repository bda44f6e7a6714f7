"""A factorization problem, the stopping rule, and the result of a fit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy.sparse import csr_array

from gwntf.core import Array, FloatArray, InputError, Status
from gwntf.data import DataTensor
from gwntf.losses import NO_PENALTIES, Loss, ObjectiveTerms, Penalties


@dataclass(frozen=True)
class Problem:
    """The objective F(A) of `docs/mathematics.md`, without the rank."""

    data: DataTensor  # X, samples first
    loss: Loss  # The data term
    graph: csr_array | None = None  # V on the samples
    graph_reg: float = 0.0  # mu
    penalties: Penalties = NO_PENALTIES  # L1 and L2 penalties on the factors
    # Factors, except that of the samples, of the held components, which are the first ones; see `start.hold`
    held: Sequence[FloatArray] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.graph_reg < math.inf:
            raise InputError("graph_reg", repr(self.graph_reg), "a finite nonnegative number")
        self.loss.effective_penalties(self.penalties)


FIRST_TEST = 16
"""Iterations before the first prediction of the remaining decrease."""

FLAT = 0.1
"""Fraction of the tolerance below which a decrease counts as none."""

NEAR_ZERO = 100.0
"""Multiple of `tol` that bounds the remaining decrease in relation to |F|."""


@dataclass(frozen=True)
class Stopping:
    """Stopping rule of fits, new samples and batches.

    A fit stops when the predicted remaining decrease of F is at most ``tol * max(|F|, size of X)``, where the size is
    sum(X) for transport and KL, and 1/2 |X|^2 for least squares. It must also be at most ``100 * tol * |F|`` (one
    percent of F by default), because F may be negative under transport and happen to be near zero.
    """

    max_iter: int = 100  # Maximum number of iterations
    tol: float = 1e-4  # Zero never stops early

    def tolerance(self, value: Any, size: Any) -> Any:
        """Return ``tol * max(|F|, size of X)``, for numbers or arrays."""
        return self.tol * (abs(value) + size + abs(abs(value) - size)) / 2

    def arrived(self, value: float, remaining: float, size: float) -> bool:
        """Whether a predicted remaining decrease from a value of F is small enough to stop."""
        return remaining <= self.tolerance(value, size) and (
            remaining <= NEAR_ZERO * self.tol * abs(value) or remaining <= FLAT * self.tolerance(value, size)
        )

    def moving(self, before: Any, after: Any, size: Any) -> Any:
        """Whether F, a number or an array, decreased by more than the tolerance."""
        return before - after > self.tolerance(after, size)

    def remaining(self, curve: Sequence[float], size: float) -> float:
        """Predict how much F will still decrease, from its values at k/4, k/2 and k of k iterations; may be infinite.

        With the two decreases d1 and d2 between them, F(k) - F(end) = d2^2 / (d1 - d2) if F approaches its end like any
        power of k; if it approaches it geometrically, the result is too large. Without d1 > d2 there is no prediction,
        except that a curve without a decrease, in relation to the tolerance, has arrived.
        """
        last = len(curve) - 1
        if last < FIRST_TEST:
            return math.inf
        first, second = curve[last // 4] - curve[last // 2], curve[last // 2] - curve[last]
        if first + second <= FLAT * self.tolerance(curve[last], size):
            return max(second, 0.0)
        return second * second / (first - second) if first > second > 0 else (0.0 if second <= 0 < first else math.inf)


@dataclass(frozen=True)
class Result:
    """Factors, objective values and status of a fit."""

    # List of (I_n, R) arrays of the backend, samples first. Under the Wasserstein loss the columns of all others sum
    # to one, under the least-squares loss they have Euclidean length one.
    factors: list[Array]
    # (n_iter + 1,) array: F after k outer iterations, at the plans of these factors; k = 0 is the start. The least-
    # squares loss scales columns once more after the last value, which changes the penalties.
    objective_curve: FloatArray
    terms: ObjectiveTerms  # Terms of the last value
    status: Status  # Why the loop stopped
    remaining: float = math.inf  # Predicted remaining decrease of F; infinite if there is no prediction

    @property
    def objective(self) -> float:
        """Return the last value of the curve."""
        return float(self.objective_curve[-1])

    @property
    def n_iter(self) -> int:
        """Number of outer iterations."""
        return len(self.objective_curve) - 1
