"""A factorization problem, the stopping rule, and the result of a fit."""

import math
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

    def __post_init__(self) -> None:
        if not 0 <= self.graph_reg < math.inf:
            raise InputError("graph_reg", repr(self.graph_reg), "a finite nonnegative number")
        self.loss.effective_penalties(self.penalties)


@dataclass(frozen=True)
class Stopping:
    """Stopping rule of fits, new samples and batches."""

    max_iter: int = 100  # Maximum number of iterations
    # Stop when F decreases by at most ``tol * max(|F|, size of X)``, where the size is sum(X) for transport and KL, and
    # 1/2 |X|^2 for least squares; zero never stops early
    tol: float = 1e-4

    def moving(self, before: Any, after: Any, size: Any) -> Any:
        """Whether F, a number or an array, decreased by more than the tolerance."""
        fall = before - after
        return (fall > self.tol * abs(after)) & (fall > self.tol * size)


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

    @property
    def objective(self) -> float:
        """Return the last value of the curve."""
        return float(self.objective_curve[-1])

    @property
    def n_iter(self) -> int:
        """Number of outer iterations."""
        return len(self.objective_curve) - 1
