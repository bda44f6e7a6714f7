"""Uncertainty of the shares, by implicit differentiation of the solution.

A change dx of a sample changes the shares by J dx with J = -A^-1 (df/dw)' diag(Phi / x), where A is the Hessian of F in
the shares. The variance of an entry of x is at least that of counts, and at least the squared difference from the model
before it is moved: what has drifted is uncertain. Differences of neighbouring places belong together as far as the
lines of the parts are wide, for which their products are added up with falling weights (Bartlett).
"""

from __future__ import annotations

import numpy as np

from gwntf.core import FloatArray
from gwntf.unmixing.line import Solution
from gwntf.unmixing.rules import effective_counts

_RIDGE = 1e-12
_MOST_COUNTS = 1e12


def line_width(parts: FloatArray) -> int:
    """Return the number of places over which residuals of drift belong together.

    It is the lag at which the autocorrelation of the differences of the parts changes its sign.
    """
    changes = np.diff(parts, axis=0)
    longest = max(1, len(changes) // 4)
    for lag in range(1, longest):
        if float(np.sum(changes[lag:] * changes[:-lag])) <= 0:
            return lag
    return longest


def share_errors(rows: FloatArray, solution: Solution, signal: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return centres and standard errors of the proportions w_k / signal_k over their sum, (n, R) each.

    Rows have the sum one. The centre is the Newton point without the bounds, which may be outside of them where a share
    is zero.
    """
    details = solution.details
    if details is None:
        raise ValueError("a solution without details")
    noise = 1.0 / np.minimum(effective_counts(rows), _MOST_COUNTS)  # variance over mean
    width, (count, rank) = line_width(solution.parts), solution.shares.shape
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
        alone = (change**2) @ np.maximum(residual**2, x * noise[k])
        errors[k] = np.sqrt(np.maximum(alone, _together(change * residual, width)))
    return centres, errors


def _together(parts: FloatArray, width: int) -> FloatArray:
    """Return the sum of all products of neighbours up to a width, with falling weights, for every row."""
    total: FloatArray = (parts**2).sum(axis=1)
    for lag in range(1, width):
        total += 2 * (1 - lag / width) * (parts[:, lag:] * parts[:, :-lag]).sum(axis=1)
    return total
