"""Transport between matching columns of two matrices: the one computation behind every distance here."""

from __future__ import annotations

import math
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gwntf.core import FloatArray, InputError, Relaxation
from gwntf.engines import get_engine
from gwntf.geometry import Cost, SeparableCost, build_kernel
from gwntf.transport import Scaled, plan_terms, scale

_SAME_MASS = 1e-6


def column_distances(
    X: FloatArray,
    Y: FloatArray,
    cost: Cost,
    reg: float,
    reg_m_data: float,
    reg_m_model: float,
    max_iter: int,
    tol: float,
) -> FloatArray:
    """W between every column of X and the same column of Y; exact where `reg` is zero."""
    _check_marginal_weights(reg_m_data, reg_m_model)
    if math.isinf(reg_m_data) and math.isinf(reg_m_model):
        _check_masses(X, Y)
    if reg == 0:
        matrix = cost.to_matrix() if isinstance(cost, SeparableCost) else cost
        pairs = zip(X.T, Y.T, strict=True)
        return np.array([_exact(x, y, matrix, reg_m_data, reg_m_model) for x, y in pairs])
    relaxation = Relaxation(reg, reg_m_data, reg_m_model)
    engine = get_engine("numpy")
    kernel = build_kernel(cost, reg, engine, X.dtype)
    solved = scale(engine, kernel, X, Y, relaxation, max_iter=max_iter, tol=tol)
    _warn_unless_settled(solved, Y, relaxation.psi, max_iter, tol)
    values: FloatArray = plan_terms(engine, solved, X, Y, relaxation).total
    return values


def _exact(x: FloatArray, y: FloatArray, cost: FloatArray, reg_m_data: float, reg_m_model: float) -> float:
    """Eq. 2 by POT: linear programming, or L-BFGS-B where both marginals are relaxed."""
    import ot

    rows, columns = x > 0, y > 0
    if not (rows.any() and columns.any()):
        weighted = ((reg_m_data, x), (reg_m_model, y))
        return float(sum(weight * mass.sum() for weight, mass in weighted if mass.any()))
    a, b = x[rows].astype(np.float64), y[columns].astype(np.float64)
    part = np.ascontiguousarray(cost[np.ix_(rows, columns)])
    if math.isinf(reg_m_data):
        return float(ot.emd2(a, b * (a.sum() / b.sum()), part))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # POT sets an option that SciPy is dropping
        weights = (reg_m_data, reg_m_model)
        plan = ot.unbalanced.lbfgsb_unbalanced(a, b, part, 0.0, weights, numItermax=10_000)
    return float(
        (part * plan).sum() + reg_m_data * _kl(plan.sum(axis=1), a) + reg_m_model * _kl(plan.sum(axis=0), b)
    )


def _kl(a: FloatArray, b: FloatArray) -> float:
    logs = np.where(a > 0, a * np.log(np.where(a > 0, a, 1) / b), 0)
    return float((logs - a + b).sum())


def _check_marginal_weights(reg_m_data: float, reg_m_model: float) -> None:
    for name, weight in (("reg_m_data", reg_m_data), ("reg_m_model", reg_m_model)):
        if not weight > 0:
            raise InputError(name, repr(weight), "a positive number, or inf for an exact marginal")


def _check_masses(X: FloatArray, Y: FloatArray) -> None:
    x, y = X.sum(axis=0, dtype=np.float64), Y.sum(axis=0, dtype=np.float64)
    wrong = np.flatnonzero(np.abs(x - y) > _SAME_MASS * np.maximum(x, y))
    if wrong.size:
        given = f"masses {x[wrong[0]]:g} and {y[wrong[0]]:g} in column {wrong[0]}"
        raise InputError("Y", given, "the same mass as X, or finite reg_m_data or reg_m_model")


def _warn_unless_settled(solved: Scaled, Y: FloatArray, psi: float, max_iter: int, tol: float) -> None:
    """Compare the model marginal with what one more half-step would make of it."""
    if tol == 0:
        return
    with np.errstate(all="ignore"):
        log_ku = np.log(solved.model_marginal) - solved.log_v
        after = np.exp(psi * (np.log(Y) - log_ku) + log_ku)
        moved = np.nansum(np.abs(after - solved.model_marginal), axis=0)
    if (moved > 100 * tol * solved.model_marginal.sum(axis=0)).any():
        message = f"the scaling had not settled to tol={tol} after max_iter={max_iter}: raise max_iter or reg"
        warnings.warn(message, ConvergenceWarning, stacklevel=4)
