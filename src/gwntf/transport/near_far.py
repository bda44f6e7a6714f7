"""How many clusters a near-far cost needs, found by transporting a small part of the data both ways."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gwntf.core import FloatArray, Relaxation
from gwntf.engines import get_engine
from gwntf.geometry import DenseKernel, NearFarCost, Points, near_far_parts, near_pairs
from gwntf.geometry.near_far import N_NEAR
from gwntf.transport.scaling import scale

_log = logging.getLogger(__name__)

_FIRST, _SUBSET, _COLUMNS, _SCALINGS = 48, 512, 32, 10


def near_far_cost(rows: FloatArray, metric: str, relaxation: Relaxation, tol: float) -> NearFarCost | None:
    """Build a near-far cost whose error is at most `tol`; None if that takes so many clusters that all pairs are cheaper.

    Parameters
    ----------
    rows : (N, M) array
        The elements, as the data have them.
    metric : {"cosine", "euclidean"}
        See `geometry.near_far.Points`.
    relaxation : Relaxation
        At which the error is measured.
    tol : float
        Largest relative error, in norm, of the model marginal.
    """
    points = Points(rows, metric)
    near = near_pairs(points, N_NEAR)
    n_clusters = _FIRST
    while 3 * n_clusters < len(rows):
        cost = near_far_parts(points, near, n_clusters)
        error = measure_error(cost, points, relaxation)
        _log.info("near-far cost of %d elements: %d clusters, error %.2g", len(rows), cost.n_clusters, error)
        if error <= tol:
            return replace(cost, error=error)
        n_clusters = int(n_clusters * np.clip((error / tol) ** 1.5, 1.4, 4))
    return None


def measure_error(cost: NearFarCost, points: Points, relaxation: Relaxation) -> float:
    """Relative error of Psi on a seeded part of the data, transported to a coarse model of itself.

    The model is half the mean of a sample's cluster and half the mean of all, between a good and a bad one.
    """
    rng = np.random.default_rng(0)
    places = np.sort(rng.permutation(cost.size)[:_SUBSET])
    x = points.rows[cost.order[places]].astype(np.float64)
    filled = np.flatnonzero(x.any(axis=0))
    columns = rng.permutation(filled)[:_COLUMNS]
    x = x[:, columns]
    if not x.size:
        return 0.0
    own = np.array([x[cost.cluster[places] == c].mean(axis=0) for c in cost.cluster[places]])
    y = 0.5 * own + 0.5 * x.mean(axis=0)
    elements = cost.order[places]
    left, right = np.meshgrid(elements, elements, indexing="ij")
    exact = points.pairs(left.ravel(), right.ravel()).reshape(left.shape)
    wanted, found = (_marginal(matrix, x, y, relaxation) for matrix in (exact, cost.places(places, places)))
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def _marginal(
    matrix: FloatArray, x: FloatArray, y: FloatArray, relaxation: Relaxation
) -> NDArray[np.float64]:
    engine = get_engine("numpy")
    kernel = DenseKernel(engine, -matrix / relaxation.reg - 1, np.float64)
    psi: NDArray[np.float64] = scale(
        engine, kernel, x, y, relaxation, max_iter=_SCALINGS, tol=0.0
    ).model_marginal
    return psi
