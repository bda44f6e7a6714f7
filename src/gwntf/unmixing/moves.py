"""What the plans of a solution say: how far every part has moved, where its mass is, and what is not explained."""

from __future__ import annotations

import math

import numpy as np

from gwntf.core import FloatArray
from gwntf.unmixing.line import Details, LineSolver, Solution

FAR = 5.0
"""Distance, in multiples of the drift, beyond which moved mass counts as not explained."""


def _details(solution: Solution) -> Details:
    if solution.details is None:
        raise ValueError("a solution without details")
    return solution.details


def _times_kernel(solver: LineSolver, values: FloatArray) -> FloatArray:
    """Return K times a vector."""
    from gwntf.backends.cpu import newton

    out = np.empty_like(values)
    newton.multiply_kernel(values, solver._line.decay, out)
    return out


def _owned(solution: Solution, row: int) -> FloatArray:
    """Return the fraction of every place of the model that belongs to each part, (I, R)."""
    own: FloatArray = solution.parts * solution.shares[row]
    fraction: FloatArray = own / own.sum(axis=1, keepdims=True)
    return fraction


def mean_displacements(solver: LineSolver, solution: Solution) -> FloatArray:
    """Return the mean distance that the mass of every part has moved from the part to the sample, (n, R).

    With P_ij the plan, m_j = sum_i P_ij (s_i - s_j) is v_j (K (s u) - s K u)_j; a part owns the fraction h_kj w_k / y_j
    of place j. Without mass a part has no displacement, NaN.
    """
    details, positions = _details(solution), solver.positions - solver.positions.mean()
    found = np.empty_like(solution.shares)
    for row, (u, v, ku) in enumerate(zip(details.u, details.v, details.ku, strict=True)):
        moved = v * (_times_kernel(solver, positions * u) - positions * ku)
        owned = _owned(solution, row)
        mass = owned.T @ (v * ku)
        found[row] = np.where(mass > 0, owned.T @ moved / np.where(mass > 0, mass, 1.0), math.nan)
    return found


def centres_of_mass(positions: FloatArray, parts: FloatArray) -> FloatArray:
    """Return the mean position of every part, a column; NaN without mass."""
    mass = parts.sum(axis=0)
    centres: FloatArray = np.where(mass > 0, positions @ parts / np.where(mass > 0, mass, 1.0), math.nan)
    return centres


def moved_parts(solver: LineSolver, rows: FloatArray, solution: Solution) -> FloatArray:
    """Return the mass of every part where it is in the samples, (n, R, I), without what has moved too far.

    The mass that comes to place i from a part is u_i (K (v times the fraction of the part))_i. What comes from farther
    than `FAR` drifts is no drift: it is left out, and is the unexplained part of the sample. The rest is scaled so that
    both together are the sample.
    """
    details, far = _details(solution), _FarMass(solver)
    found = np.empty((*solution.shares.shape, len(solver.positions)))
    for row, (u, v, kv) in enumerate(zip(details.u, details.v, details.kv, strict=True)):
        owned, reached = _owned(solution, row), u * kv
        scale = np.divide(rows[row], reached, out=np.zeros_like(reached), where=reached > 0)
        for part in range(found.shape[1]):
            source = v * owned[:, part]
            near = _times_kernel(solver, source) - far.of(source)
            found[row, part] = scale * u * np.maximum(near, 0.0)
    return found


class _FarMass:
    """K without the entries of places that are at most `FAR` drifts apart."""

    def __init__(self, solver: LineSolver) -> None:
        positions, drift = solver.positions, solver.scale * solver.reg
        self._decay, last = solver._line.decay, len(positions) - 1
        below = np.searchsorted(positions, positions - FAR * drift, side="left") - 1
        above = np.searchsorted(positions, positions + FAR * drift, side="right")
        self._below, self._above = np.maximum(below, 0), np.minimum(above, last)
        self._from_below = np.where(below >= 0, np.exp(-(positions - positions[self._below]) / drift - 1), 0.0)
        self._from_above = np.where(above <= last, np.exp(-(positions[self._above] - positions) / drift - 1), 0.0)

    def of(self, values: FloatArray) -> FloatArray:
        """Return the product with a vector."""
        from gwntf.backends.cpu import newton

        left, right = np.empty_like(values), np.empty_like(values)
        newton.sum_sides(values, self._decay, left, right)
        product: FloatArray = left[self._below] * self._from_below + right[self._above] * self._from_above
        return product
