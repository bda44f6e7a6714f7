"""What a fit returns."""

from dataclasses import dataclass

from gwntf.core import Array, FloatArray, Status
from gwntf.losses import ObjectiveTerms


@dataclass(frozen=True)
class Result:
    """Factors and the way to them."""

    # List of (I_n, R) array of the backend: Samples first. Under the Wasserstein loss the columns of all others sum
    # to one (except with update="paper"), under the least-squares loss they have Euclidean length one.
    factors: list[Array]
    # (n_iter + 1,) array: F after k outer iterations at the plans of those factors; k = 0 is the start. The least-
    # squares loss scales columns once more at the very end, after the last value.
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
