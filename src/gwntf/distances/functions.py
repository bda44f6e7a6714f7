"""The paper's distances between two nonnegative vectors, matrices or tensors, and the objective F."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from gwntf.core import FloatArray, InputError, Relaxation, marginal_weights
from gwntf.data import DataTensor, as_data, as_dense_block, as_factors, as_real_array, unfold
from gwntf.distances.columns import Distance
from gwntf.geometry import (
    COSTS_OF_SLICES,
    NAMED_COSTS,
    CostSpec,
    check_cost,
    check_costs,
    check_graph,
    resolve_cost,
    resolve_costs,
)
from gwntf.losses import ObjectiveTerms, transport_loss
from gwntf.solver import Problem, evaluate
from gwntf.transport import TransportLimits

RegM: TypeAlias = float | tuple[float, float]
"""Weights of the relaxed marginals: one for both, or a pair for the first and the second argument."""


def wasserstein_distance(x: Any, y: Any, cost: Any = "grid", *, reg_m: RegM = math.inf) -> float:
    """Exact Wasserstein distance between two vectors (equation 2), balanced or KL-relaxed.

    min_T <C, T> subject to T1 = x, T'1 = y; or with the constraints replaced by
    ``alpha KL(T1 | x) + beta KL(T'1 | y)`` with the weights `reg_m`.

    Parameters
    ----------
    x, y : array-like of shape (I,)
        Nonnegative; of the same mass in the balanced case.
    cost : {"grid", "grid2"}, (I, I) array, AxisCost or SeparableCost
        Ground cost.
    reg_m : float or pair of floats
        alpha and beta: both ``inf`` (balanced) or both finite.

    Returns
    -------
    float

    Examples
    --------
    >>> from gwntf import wasserstein_distance
    >>> wasserstein_distance([1, 0, 0], [0, 0, 1])
    1.0
    """
    return _between(x, y, cost, Distance(0.0, *marginal_weights(reg_m)))


def entropic_wasserstein_distance(
    x: Any,
    y: Any,
    cost: Any = "grid",
    *,
    reg: float = 0.01,
    reg_m: RegM = math.inf,
    max_iter: int = 10_000,
    tol: float = 1e-9,
) -> float:
    """Entropic Wasserstein distance between two vectors (equation 3), each side balanced or KL-relaxed.

    min_T <C, T> + reg * sum T log T + alpha KL(T1 | x) + beta KL(T'1 | y). The value
    contains the entropy and may be negative.

    Parameters
    ----------
    x, y : array-like of shape (I,)
        Nonnegative; of the same mass where both sides are balanced.
    cost : {"grid", "grid2"}, (I, I) array, AxisCost or SeparableCost
        Ground cost.
    reg : float
        1/lambda, positive.
    reg_m : float or pair of floats
        alpha and beta; ``inf`` makes that side exact.
    max_iter, tol
        Maximum number of scalings, and the relative change of the marginals at which they stop.

    Returns
    -------
    float

    Examples
    --------
    >>> from gwntf import entropic_wasserstein_distance
    >>> round(entropic_wasserstein_distance([1, 0, 0], [0, 0, 1], reg=0.01), 6)
    1.0
    """
    if not reg > 0:
        raise InputError("reg", repr(reg), "a positive number; for reg=0 use wasserstein_distance")
    return _between(x, y, cost, Distance(reg, *marginal_weights(reg_m), max_iter, tol))


def wasserstein_matrix_distance(
    X: Any,
    Y: Any,
    cost: Any = "grid",
    *,
    reg: float = 0.01,
    reg_m: RegM = math.inf,
    max_iter: int = 10_000,
    tol: float = 1e-9,
) -> float:
    """Wasserstein matrix distance (definition 1): the sum of W over matching columns.

    Parameters
    ----------
    X, Y : array-like of shape (I, M)
        Nonnegative; columns of the same mass where both sides are balanced.
    cost : {"grid", "grid2", "cosine", "euclidean"}, (I, I) array, AxisCost or SeparableCost
        Ground cost between rows; "cosine" and "euclidean" compare rows of X.
    reg : float
        1/lambda; zero gives the exact distance (equation 2).
    reg_m : float or pair of floats
        alpha and beta; ``inf`` makes that side exact.
    max_iter, tol
        Maximum number of scalings, and the relative change of the marginals at which they stop.

    Returns
    -------
    float

    Examples
    --------
    >>> from gwntf import wasserstein_matrix_distance
    >>> wasserstein_matrix_distance([[1, 2], [0, 1]], [[0, 2], [1, 1]], reg=0)
    1.0
    """
    distance = Distance(reg, *marginal_weights(reg_m), max_iter, tol)
    data, model = _pair(X, Y)
    if data.ndim != 2:
        raise InputError("X", f"{data.ndim} dimensions", "a matrix")
    if cost is None:
        raise InputError("cost", "None", "a named cost, a square array, an AxisCost or a SeparableCost")
    return _measure(data, model, (check_cost(cost, len(data), "cost"), None), distance)


def wasserstein_tensor_distance(
    X: Any,
    Y: Any,
    costs: Any = "auto",
    *,
    reg: float = 0.01,
    reg_m: RegM = math.inf,
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
    reg, reg_m, max_iter, tol
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
    distance = Distance(reg, *marginal_weights(reg_m), max_iter, tol)
    data, model = _pair(X, Y)
    specs = check_costs(costs, data.shape)
    if all(spec is None for spec in specs):
        raise InputError("costs", "only None", "a cost for at least one axis")
    return _measure(data, model, specs, distance)


def objective(
    X: Any,
    factors: Sequence[Any],
    costs: Any = "auto",
    *,
    reg: float = 0.01,
    reg_m: RegM = 1.0,
    graph: Any = None,
    graph_reg: float = 0.0,
    missing: str = "error",
    max_iter: int = 10_000,
    tol: float = 1e-9,
) -> ObjectiveTerms:
    """Return F(A) = sum over modes and fibers of W(x, x^) + (graph_reg/4) sum_ij V_ij |a_i - a_j|^2, term by term.

    Parameters
    ----------
    X : array-like, samples first
        Nonnegative data; samples are not normalised.
    factors : sequence of (I_n, R) arrays
        Samples first, any scale.
    costs, reg, reg_m, graph, graph_reg, missing
        As in `GWNTF`; `graph` is a symmetric matrix or None.
    max_iter, tol
        Accuracy of the transports.

    Returns
    -------
    ObjectiveTerms
        ``.total`` is F; ``.modes[n]`` has the transport, data and model parts of axis n.

    Examples
    --------
    >>> import numpy as np
    >>> from gwntf import objective
    >>> X = np.outer([1.0, 2.0], [0.5, 0.3, 0.2])
    >>> round(objective(X, [[[1.0], [2.0]], [[0.5], [0.3], [0.2]]], costs=(None, None)).total, 12)
    0.0
    """
    data = as_data(X, missing=missing)
    shape = data.shape
    specs = check_costs(costs, shape)
    first = as_real_array(factors[0], "factors[0]") if len(factors) else np.empty((0, 0))
    rank = first.shape[-1] if first.ndim == 2 else 0
    checked = as_factors(list(factors), shape, rank, name="factors")
    ready = None if graph is None else check_graph(graph, shape[0])
    relaxation = Relaxation(reg, *marginal_weights(reg_m))
    loss = transport_loss(resolve_costs(specs, data), relaxation, TransportLimits(max_iter, tol))
    return evaluate(Problem(data, loss, ready, graph_reg), checked)


def _between(x: Any, y: Any, cost: Any, distance: Distance) -> float:
    """Check two vectors and their cost, and return the distance."""
    a, b = (_column(vector, name) for name, vector in (("x", x), ("y", y)))
    if len(a) != len(b):
        raise InputError("y", f"length {len(b)}", f"the length of x, {len(a)}")
    names = [name for name in NAMED_COSTS if name not in COSTS_OF_SLICES]
    allowed = f"{', '.join(map(repr, names))}, a square array, an AxisCost or a SeparableCost"
    if isinstance(cost, str) and cost not in names:
        raise InputError("cost", repr(cost), allowed)
    resolved = resolve_cost(check_cost(cost, len(a), "cost"), DataTensor.of_array(a), 0)
    if resolved is None:
        raise InputError("cost", repr(cost), allowed)
    return float(distance.between_columns(a, b, resolved, name="y")[0])


def _column(vector: Any, name: str) -> FloatArray:
    values = as_real_array(vector, name)
    if values.ndim != 1:
        raise InputError(name, f"{values.ndim} dimension(s)", "a vector")
    column: FloatArray = as_dense_block(values[:, None], name=name, dtype=np.float64).values
    return column


def _pair(X: Any, Y: Any) -> tuple[FloatArray, FloatArray]:
    x, y = (as_dense_block(values, name=name, dtype=np.float64).values for name, values in (("X", X), ("Y", Y)))
    if x.shape != y.shape:
        raise InputError("Y", f"shape {y.shape}", f"the shape of X, {x.shape}")
    return x, y


def _measure(data: FloatArray, model: FloatArray, specs: tuple[CostSpec, ...], distance: Distance) -> float:
    """Return the sum of the distances of all fibers along the axes with a cost."""
    resolved = resolve_costs(specs, DataTensor.of_array(data))
    by_mode = [
        distance.between_columns(unfold(data, mode), unfold(model, mode), cost).sum()
        for mode, cost in enumerate(resolved)
        if cost is not None
    ]
    return float(sum(by_mode))
