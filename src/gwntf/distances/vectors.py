"""Distances between two nonnegative vectors."""

import math
from typing import Any

import numpy as np

from gwntf.core import FloatArray, InputError
from gwntf.data import DataTensor, as_dense_block, as_real_array
from gwntf.distances.columns import Distance
from gwntf.geometry import COSTS_OF_SLICES, NAMED_COSTS, check_cost, resolve_cost


def wasserstein_distance(
    x: Any,
    y: Any,
    cost: Any = "grid",
    *,
    reg_m_data: float = math.inf,
    reg_m_model: float = math.inf,
) -> float:
    """Exact Wasserstein distance between two vectors (equation 2), balanced or KL-relaxed.

    min_T <C, T> subject to T1 = x, T'1 = y; or with the constraints replaced by
    ``reg_m_data * KL(T1 | x) + reg_m_model * KL(T'1 | y)``.

    Parameters
    ----------
    x, y : array-like of shape (I,)
        Nonnegative; of the same mass in the balanced case.
    cost : {"grid", "grid2"}, (I, I) array or SeparableCost
        Ground cost.
    reg_m_data, reg_m_model : float
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
    return _between(x, y, cost, Distance(0.0, reg_m_data, reg_m_model))


def entropic_wasserstein_distance(
    x: Any,
    y: Any,
    cost: Any = "grid",
    *,
    reg: float = 0.01,
    reg_m_data: float = math.inf,
    reg_m_model: float = math.inf,
    max_iter: int = 10_000,
    tol: float = 1e-9,
) -> float:
    """Entropic Wasserstein distance between two vectors (equation 3), each side balanced or KL-relaxed.

    min_T <C, T> + reg * sum T log T + reg_m_data * KL(T1 | x) + reg_m_model * KL(T'1 | y). The value
    contains the entropy and may be negative.

    Parameters
    ----------
    x, y : array-like of shape (I,)
        Nonnegative; of the same mass where both sides are balanced.
    cost : {"grid", "grid2"}, (I, I) array or SeparableCost
        Ground cost.
    reg : float
        1/lambda, positive.
    reg_m_data, reg_m_model : float
        alpha and beta; ``inf`` holds that side exactly.
    max_iter, tol
        Scalings at most, and the relative change of the marginals at which they stop.

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
    return _between(x, y, cost, Distance(reg, reg_m_data, reg_m_model, max_iter, tol))


def _between(x: Any, y: Any, cost: Any, distance: Distance) -> float:
    """Check two vectors and their cost, and measure."""
    a, b = (_column(vector, name) for name, vector in (("x", x), ("y", y)))
    if len(a) != len(b):
        raise InputError("y", f"length {len(b)}", f"the length of x, {len(a)}")
    names = [name for name in NAMED_COSTS if name not in COSTS_OF_SLICES]
    allowed = f"{', '.join(map(repr, names))}, a square array or a SeparableCost"
    if cost is None or (isinstance(cost, str) and cost not in names):
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
