"""Distances between two nonnegative matrices or tensors: sums of W over matching fibers."""

import math
from typing import Any

import numpy as np

from gwntf.core import FloatArray, InputError
from gwntf.data import DataTensor, as_dense_block, unfold
from gwntf.distances.columns import Distance
from gwntf.geometry import CostSpec, check_cost, check_costs, resolve_costs


def wasserstein_matrix_distance(
    X: Any,
    Y: Any,
    cost: Any = "grid",
    *,
    reg: float = 0.01,
    reg_m_data: float = math.inf,
    reg_m_model: float = math.inf,
    max_iter: int = 10_000,
    tol: float = 1e-9,
) -> float:
    """Wasserstein matrix distance (definition 1): the sum of W over matching columns.

    Parameters
    ----------
    X, Y : array-like of shape (I, M)
        Nonnegative; columns of the same mass where both sides are balanced.
    cost : {"grid", "grid2", "cosine", "euclidean"}, (I, I) array or SeparableCost
        Ground cost between rows; "cosine" and "euclidean" compare rows of X.
    reg : float
        1/lambda; zero takes the exact distance of Eq. 2.
    reg_m_data, reg_m_model : float
        alpha and beta; ``inf`` holds that side exactly.
    max_iter, tol
        Scalings at most, and the relative change of the marginals at which they stop.

    Returns
    -------
    float

    Examples
    --------
    >>> from gwntf import wasserstein_matrix_distance
    >>> wasserstein_matrix_distance([[1, 2], [0, 1]], [[0, 2], [1, 1]], reg=0)
    1.0
    """
    distance = Distance(reg, reg_m_data, reg_m_model, max_iter, tol)
    data, model = _pair(X, Y)
    if data.ndim != 2:
        raise InputError("X", f"{data.ndim} dimensions", "a matrix")
    if cost is None:
        raise InputError("cost", "None", "a named cost, a square array or a SeparableCost")
    return _measure(data, model, (check_cost(cost, len(data), "cost"), None), distance)


def wasserstein_tensor_distance(
    X: Any,
    Y: Any,
    costs: Any = "auto",
    *,
    reg: float = 0.01,
    reg_m_data: float = math.inf,
    reg_m_model: float = math.inf,
    max_iter: int = 10_000,
    tol: float = 1e-9,
) -> float:
    """Wasserstein tensor distance (definition 2): the matrix distance of every pair of unfoldings, summed.

    Parameters
    ----------
    X, Y : array-like of the same shape, order 2 or more
        Nonnegative; fibers of the same mass where both sides are balanced.
    costs : "auto" or sequence
        One ground cost per axis, as for `GWNTF`; None leaves an axis out.
    reg, reg_m_data, reg_m_model, max_iter, tol
        As in `wasserstein_matrix_distance`.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from gwntf import wasserstein_tensor_distance
    >>> X, Y = np.zeros((2, 3, 4)), np.zeros((2, 3, 4))
    >>> X[0, 0, 0] = Y[0, 0, 3] = 1
    >>> wasserstein_tensor_distance(X, Y, costs=(None, None, "grid"), reg=0)
    1.0
    """
    distance = Distance(reg, reg_m_data, reg_m_model, max_iter, tol)
    data, model = _pair(X, Y)
    specs = check_costs(costs, data.shape)
    if all(spec is None for spec in specs):
        raise InputError("costs", "only None", "a cost for at least one axis")
    return _measure(data, model, specs, distance)


def _pair(X: Any, Y: Any) -> tuple[FloatArray, FloatArray]:
    x, y = (as_dense_block(values, name=name, dtype=np.float64).values for name, values in (("X", X), ("Y", Y)))
    if x.shape != y.shape:
        raise InputError("Y", f"shape {y.shape}", f"the shape of X, {x.shape}")
    return x, y


def _measure(data: FloatArray, model: FloatArray, specs: tuple[CostSpec, ...], distance: Distance) -> float:
    """Sum the distances of all fibers along the axes that have a cost."""
    resolved = resolve_costs(specs, DataTensor.of_array(data))
    by_mode = [
        distance.between_columns(unfold(data, mode), unfold(model, mode), cost).sum()
        for mode, cost in enumerate(resolved)
        if cost is not None
    ]
    return float(sum(by_mode))
