"""Near-far costs, with the number of clusters chosen by the measured error on a subset of the data."""

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import get_backend
from gwntf.core import FloatArray, InputError, Relaxation
from gwntf.data import DataTensor, unfold
from gwntf.geometry import Cost, CostSpec, DenseKernel, NearFarCost, Points, near_far_parts, near_pairs, resolve_cost
from gwntf.geometry.costs import COMPARED_COSTS, PAIRS_LIMIT
from gwntf.geometry.features import sample_features
from gwntf.geometry.near_far import N_NEAR
from gwntf.transport import scale

_log = logging.getLogger(__name__)

_FIRST, _SUBSET, _COLUMNS, _SCALINGS = 48, 512, 64, 10


def resolve_long_costs(
    specs: Sequence[CostSpec], tensor: DataTensor, relaxation: Relaxation, tol: float
) -> tuple[Cost | None, ...]:
    """Compute the costs of checked specifications like `resolve_costs`, but with near-far costs along long modes.

    Near-far costs are used for costs between slices of the data, without missing entries (otherwise pairs are compared
    on the entries observed in both, which defines no centres) and with a tolerance above zero. For sparse tensors, and
    for chunked tensors along other modes than the samples, all pairs are compared.
    """
    costs = []
    for mode, spec in enumerate(specs):
        long = tensor.shape[mode] > tensor.backend.long_fibers and tol > 0 and tensor.complete
        compared = isinstance(spec, str) and spec in COMPARED_COSTS
        points = _points(tensor, mode, str(spec)) if long and compared else None
        cost: Cost | None = None if points is None else near_far_cost(points, relaxation, tol)
        costs.append(resolve_cost(spec, tensor, mode) if cost is None else cost)
    return tuple(costs)


def _points(tensor: DataTensor, mode: int, metric: str) -> Points | None:
    """Return the slices along a long mode as points, or None if all pairs are to be compared.

    Raise InputError if there are too many pairs.
    """
    block = tensor.dense_block
    if block is not None:
        return Points.of_rows(unfold(block.host.values, mode), metric)
    if mode == 0 and not tensor.sparse:
        return Points(sample_features(tensor, metric, tensor.dtype)[0], metric, tensor.samples)
    if tensor.shape[mode] > PAIRS_LIMIT:
        given = f"{metric!r} between {tensor.shape[mode]} slices of a {'sparse' if tensor.sparse else 'chunked'} tensor"
        allowed = "None, 'grid', 'grid2' or a cost matrix, or kernel_tol=0 to compare all pairs"
        raise InputError(f"costs[{mode}]", given, allowed)
    return None


def near_far_cost(points: Points, relaxation: Relaxation, tol: float) -> NearFarCost | None:
    """Build a near-far cost, or return None if it would need so many clusters that all pairs are cheaper.

    The relative error of the model marginal, in norm, is at most `tol`; it is measured with the given relaxation.
    """
    near = near_pairs(points, N_NEAR)
    n_clusters = _FIRST
    while 3 * n_clusters < len(points):
        cost = near_far_parts(points, near, n_clusters)
        error = measure_error(cost, points, relaxation)
        _log.info("near-far cost of %d elements: %d clusters, error %.2g", len(points), cost.n_clusters, error)
        if error <= tol:
            return replace(cost, error=error)
        n_clusters = int(n_clusters * np.clip(error / tol, 1.3, 3))
    return None


def measure_error(cost: NearFarCost, points: Points, relaxation: Relaxation) -> float:
    """Return the relative error of Psi on a seeded subset of the data, transported to a coarse model of it.

    The model is half the mean of a sample's cluster and half the mean of all samples, between a good and a bad fit.
    """
    rng = np.random.default_rng(0)
    subset = np.sort(rng.permutation(cost.size)[:_SUBSET])
    x = points.elements(cost.order[subset]).astype(np.float64)
    filled = np.flatnonzero(x.any(axis=0))
    columns = rng.permutation(filled)[:_COLUMNS]
    x = x[:, columns]
    if not x.size:
        return 0.0
    own = np.array([x[cost.cluster[subset] == c].mean(axis=0) for c in cost.cluster[subset]])
    y = 0.5 * own + 0.5 * x.mean(axis=0)
    features = points.features[cost.order[subset]]
    exact = np.maximum(points.cost(features, features), 0)
    np.fill_diagonal(exact, 0)
    wanted, found = (_marginal(matrix, x, y, relaxation) for matrix in (exact, cost.between(subset, subset)))
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def _marginal(matrix: FloatArray, x: FloatArray, y: FloatArray, relaxation: Relaxation) -> NDArray[np.float64]:
    backend = get_backend("numpy")
    kernel = DenseKernel(backend, -matrix / relaxation.reg - 1, np.float64)
    psi: NDArray[np.float64] = scale(backend, kernel, x, y, relaxation, max_iter=_SCALINGS, tol=0.0).model_marginal
    return psi
