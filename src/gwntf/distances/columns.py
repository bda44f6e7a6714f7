"""Transport distances and plans between matching columns of two matrices."""

import math
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gwntf.backends import get_backend
from gwntf.core import FloatArray, InputError, Relaxation
from gwntf.geometry import Cost, Kernel, build_kernel
from gwntf.transport import Scaled, TransportLimits, plan_terms, ratio_and_kl, scale

_SAME_MASS = 1e-6


@dataclass(frozen=True)
class Plans:
    """Plans T = diag(u) K diag(v) with K = exp(-C / reg - 1), one for every pair of columns."""

    cost: Cost  # C, shared by all columns
    reg: float  # 1/lam
    kernel: Kernel  # K
    scaled: Scaled  # log U, log V and the marginals Phi = T1 and Psi = T'1

    def total(self) -> FloatArray:
        """Return the sum of the plans of all columns, (I, I): rows are data entries, columns model entries."""
        matrix = _matrix(self.cost)
        log_kernel = -matrix / self.reg - 1
        summed = np.zeros(matrix.shape)
        for log_u, log_v in zip(self.scaled.log_u.T, self.scaled.log_v.T, strict=True):
            summed += np.exp(log_u[:, None] + log_kernel + log_v[None, :])
        return summed

    def mean_positions(self, positions: FloatArray) -> FloatArray:
        """Return the mean position to which the mass of every entry is transported, Tp / T1, (I, M).

        `positions` is p, the nonnegative position of every entry, (I,). The result is NaN for entries without mass. It
        is computed as u (K (v p)) / Phi in logarithmic arithmetic, without forming the plans.
        """
        with get_backend("numpy").quiet():
            arrived = self.kernel.log_matmul(self.scaled.log_v + np.log(positions)[:, None])
            means: FloatArray = np.exp(self.scaled.log_u + arrived - np.log(self.scaled.data_marginal))
        return means


@dataclass(frozen=True)
class Distance:
    """Parameters of a distance: exact if `reg` is zero, balanced on a side whose marginal weight is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from gwntf.distances import Distance
    >>> exact = Distance(reg=0.0, reg_m_data=np.inf, reg_m_model=np.inf)
    >>> X, Y = np.array([[1.0], [0.0], [0.0]]), np.array([[0.0], [0.0], [1.0]])
    >>> exact.between_columns(X, Y, np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0))))
    array([2.])
    """

    reg: float
    reg_m_data: float
    reg_m_model: float
    max_iter: int = 1
    tol: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.reg < math.inf:
            raise InputError("reg", repr(self.reg), "a positive number, or 0 for the exact distance")
        TransportLimits(self.max_iter, self.tol)
        Relaxation(self.reg or 1.0, self.reg_m_data, self.reg_m_model)
        if self.reg == 0 and math.isinf(self.reg_m_data) != math.isinf(self.reg_m_model):
            given = repr((self.reg_m_data, self.reg_m_model))
            raise InputError("reg_m", given, "weights that are both inf or both finite for the exact distance (reg=0)")

    @property
    def balanced(self) -> bool:
        """Whether both marginals are exact."""
        return math.isinf(self.reg_m_data) and math.isinf(self.reg_m_model)

    def between_columns(self, X: FloatArray, Y: FloatArray, cost: Cost, *, name: str = "Y") -> FloatArray:
        """Return W between every column of X and the same column of Y, in float64.

        `name` is the name of Y in error messages.
        """
        X, Y = X.astype(np.float64), Y.astype(np.float64)
        if self.balanced:
            Y = _same_mass(X, Y, name)
        if self.reg == 0:
            matrix = _matrix(cost)
            return np.array([self._exact(x, y, matrix) for x, y in zip(X.T, Y.T, strict=True)])
        solved = self.plans(X, Y, cost).scaled
        values: FloatArray = plan_terms(get_backend("numpy"), solved, X, Y, self._relaxation).sum(axis=0)
        return values

    def plans(self, X: FloatArray, Y: FloatArray, cost: Cost) -> Plans:
        """Return the entropic plans from every column of X to the same column of Y, both float64; `reg` is positive."""
        backend = get_backend("numpy")
        kernel = build_kernel(cost, self.reg, backend, np.float64)
        solved = scale(backend, kernel, X, Y, self._relaxation, max_iter=self.max_iter, tol=self.tol)
        self._warn_unless_converged(solved, Y, self._relaxation.psi)
        return Plans(cost, self.reg, kernel, solved)

    @property
    def _relaxation(self) -> Relaxation:
        return Relaxation(self.reg, self.reg_m_data, self.reg_m_model)

    def _exact(self, x: FloatArray, y: FloatArray, cost: FloatArray) -> float:
        """Solve equation 2 by POT: linear programming, or L-BFGS-B if both marginals are relaxed.

        W(s x, s y) = s W(x, y), so the vectors are scaled to a mass of about one for the solvers.
        """
        import ot

        mass = max(x.sum(), y.sum())
        rows, columns = x > 0, y > 0
        if not (rows.any() and columns.any()):
            weighted = ((self.reg_m_data, x), (self.reg_m_model, y))
            return float(sum(weight * side.sum() for weight, side in weighted if side.any()))
        a, b = x[rows] / mass, y[columns] / mass
        part = np.ascontiguousarray(cost[np.ix_(rows, columns)])
        if self.balanced:
            return float(mass * ot.emd2(a / a.sum(), b / b.sum(), part) * a.sum())
        weights = (self.reg_m_data, self.reg_m_model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # POT uses a deprecated option of SciPy
            plan = ot.unbalanced.lbfgsb_unbalanced(a, b, part, 0.0, weights, numItermax=10_000)
        value = (part * plan).sum()
        for weight, marginal, wanted in zip(weights, (plan.sum(axis=1), plan.sum(axis=0)), (a, b), strict=True):
            with get_backend("numpy").quiet():  # entries without mass
                value += weight * float(ratio_and_kl(np, marginal, wanted, axis=0)[1])
        return float(mass * value)

    def _warn_unless_converged(self, solved: Scaled, Y: FloatArray, psi: float) -> None:
        """Warn if one more half-step would change the model marginal by more than the tolerance."""
        if self.tol == 0:
            return
        with np.errstate(all="ignore"):
            log_ku = np.log(solved.model_marginal) - solved.log_v
            after = np.exp(psi * (np.log(Y) - log_ku) + log_ku)
            moved = np.nansum(np.abs(after - solved.model_marginal), axis=0)
        if (moved > 100 * self.tol * solved.model_marginal.sum(axis=0)).any():
            state = f"to tol={self.tol} after max_iter={self.max_iter}"
            warnings.warn(
                f"the scaling did not converge {state}: raise max_iter or reg", ConvergenceWarning, stacklevel=5
            )


def _same_mass(X: FloatArray, Y: FloatArray, name: str) -> FloatArray:
    """Check that matching columns have the same mass up to rounding; return Y scaled to exactly the same mass."""
    x, y = X.sum(axis=0), Y.sum(axis=0)
    wrong = np.flatnonzero(np.abs(x - y) > _SAME_MASS * np.maximum(x, y))
    if wrong.size:
        given = f"mass {y[wrong[0]]:g} in column {wrong[0]}, against {x[wrong[0]]:g} on the other side"
        raise InputError(name, given, "equal masses, or a finite reg_m")
    scaled: FloatArray = Y * (x / np.where(y > 0, y, 1))
    return scaled


def _matrix(cost: Cost) -> FloatArray:
    return cost if isinstance(cost, np.ndarray) else cost.to_matrix()
