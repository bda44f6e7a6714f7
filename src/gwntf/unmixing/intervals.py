"""Uncertainty of the shares, by implicit differentiation of the solution.

A change dx of a sample changes the shares by J dx with J = -A^-1 (df/dw)' diag(Phi / x), where A is the Hessian of F in
the shares. The variance of a share is at least that of counts, and at least that of the residual of the model before it
is moved, because what has drifted is uncertain. Residuals of drift belong together, and cancel each other, over the
width of a line and the distance that mass may move: their products are added up with falling weights (Bartlett).
"""

from __future__ import annotations

import numpy as np

from gwntf.core import FloatArray
from gwntf.unmixing.line import LineSolver, Solution
from gwntf.unmixing.moves import FAR
from gwntf.unmixing.rules import effective_counts

_RIDGE = 1e-12
_MOST_COUNTS = 1e12


def line_width(parts: FloatArray) -> int:
    """Return the width of the lines of the parts, in places.

    It is the lag at which the autocorrelation of the differences of the parts changes its sign.
    """
    changes = np.diff(parts, axis=0)
    longest = max(1, len(changes) // 4)
    for lag in range(1, longest):
        if float(np.sum(changes[lag:] * changes[:-lag])) <= 0:
            return lag
    return longest


def share_errors(
    solver: LineSolver, rows: FloatArray, solution: Solution, signal: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return centres and standard errors of the proportions w_k / signal_k over their sum, (n, R) each.

    Rows have the sum one. The centre is the Newton point without the bounds, which may be outside of them where a share
    is zero.
    """
    details = solution.details
    if details is None:
        raise ValueError("a solution without details")
    noise = 1.0 / np.minimum(effective_counts(rows), _MOST_COUNTS)  # variance over mean
    reach = FAR * solver.reg * solver.scale / float(np.median(np.diff(solver.positions)))
    width = min(len(solver.positions), line_width(solution.parts) + round(reach))
    count, rank = solution.shares.shape
    centres, errors = np.empty((count, rank)), np.empty((count, rank))
    for k in range(count):
        x, w, curvature = rows[k], solution.shares[k], details.curvature[k]
        ratio = np.divide(details.u[k] * details.kv[k], x, out=np.zeros_like(x), where=x > 0)
        matrix = curvature + _RIDGE * np.trace(curvature) * np.eye(rank)
        amounts = w / signal
        proportions = amounts / amounts.sum()
        to_proportions = (np.diag(1 / signal) - np.outer(proportions, 1 / signal)) / amounts.sum()
        change = to_proportions @ -np.linalg.solve(matrix, details.slopes[k] * ratio)
        centres[k] = proportions - to_proportions @ np.linalg.solve(matrix, details.gradient[k])
        model = solution.parts @ w
        residual = x - model / model.sum()
        errors[k] = np.sqrt(np.maximum((change**2) @ (x * noise[k]), neighbor_products(change * residual, width)))
    return centres, errors


def neighbor_products(rows: FloatArray, width: int) -> FloatArray:
    """Return sum_l (1 - |l| / width) sum_i r_i r_(i+l) over lags l below a width, for every row r.

    It is the sum of the squares of the sums over all windows of this width, divided by it.
    """
    sums = np.cumsum(np.pad(rows, ((0, 0), (width, width - 1))), axis=1)
    total: FloatArray = ((sums[:, width:] - sums[:, :-width]) ** 2).sum(axis=1) / width
    return total
