"""A factorization problem, when to stop, and what a fit returns."""

import math
from dataclasses import dataclass
from typing import Any

from scipy.sparse import csr_array

from gwntf.core import Array, FloatArray, InputError, Status
from gwntf.data import DataTensor
from gwntf.losses import NO_PENALTIES, Loss, ObjectiveTerms, Penalties


@dataclass(frozen=True)
class Problem:
    """What is to be minimised: F(A) of `docs/mathematics.md`, without the rank."""

    data: DataTensor  # X, samples first
    loss: Loss  # The data term
    graph: csr_array | None = None  # V on the samples
    graph_reg: float = 0.0  # mu
    penalties: Penalties = NO_PENALTIES  # L1 and L2, on the factors

    def __post_init__(self) -> None:
        if not 0 <= self.graph_reg < math.inf:
            raise InputError("graph_reg", repr(self.graph_reg), "a finite nonnegative number")
        self.loss.effective_penalties(self.penalties)


@dataclass(frozen=True)
class Stopping:
    """When iterations end: the same rule for fits, new samples and batches."""

    max_iter: int = 100  # Iterations at most
    # Stop when F falls by at most ``tol * max(|F|, size of X)``, where the size is sum(X) for transport and KL, and
    # 1/2 |X|^2 for least squares; zero never stops early
    tol: float = 1e-4

    def moving(self, before: Any, after: Any, size: Any) -> Any:
        """Whether F, a number or an array of them, fell by more than that."""
        fall = before - after
        return (fall > self.tol * abs(after)) & (fall > self.tol * size)


@dataclass(frozen=True)
class Result:
    """Factors and the way to them."""

    # List of (I_n, R) array of the backend: Samples first. Under the Wasserstein loss the columns of all others sum
    # to one (except with update="paper"), under the least-squares loss they have Euclidean length one.
    factors: list[Array]
    # (n_iter + 1,) array: F after k outer iterations at the plans of those factors; k = 0 is the start. The least-
    # squares loss scales columns once more at the very end, after the last value; this changes the penalties.
    objective_curve: FloatArray
    terms: ObjectiveTerms  # The last value, term by term
    status: Status  # Why the loop stopped

    @property
    def objective(self) -> float:
        """Return the last value of the curve."""
        return float(self.objective_curve[-1])

    @property
    def n_iter(self) -> int:
        """Outer iterations done."""
        return len(self.objective_curve) - 1
