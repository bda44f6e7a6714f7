"""The objective F of the factorization, term by term, at any factors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gwntf.core import Relaxation
from gwntf.data import as_data, as_factors, as_real_array
from gwntf.geometry import check_costs, check_graph, resolve_costs
from gwntf.losses import ObjectiveTerms, transport_loss
from gwntf.solver import Problem, evaluate
from gwntf.transport import TransportLimits


def objective(
    X: Any,
    factors: Sequence[Any],
    costs: Any = "auto",
    *,
    reg: float = 0.01,
    reg_m_data: float = 1.0,
    reg_m_model: float = 1.0,
    graph: Any = None,
    graph_reg: float = 0.0,
    missing: str = "error",
    max_iter: int = 10_000,
    tol: float = 1e-9,
) -> ObjectiveTerms:
    """F(A) = sum over modes and fibers of W(x, x^) + (graph_reg/4) sum_ij V_ij |a_i - a_j|^2.

    Parameters
    ----------
    X : array-like, samples first
        Taken as it is: no normalisation.
    factors : sequence of (I_n, R) arrays
        Samples first, any scale.
    costs, reg, reg_m_data, reg_m_model, graph, graph_reg, missing
        As in `GWNTF`; `graph` is a ready symmetric matrix or None.
    max_iter, tol
        Accuracy of the transports.

    Returns
    -------
    ObjectiveTerms
        ``.total`` is F; ``.modes[n]`` holds the transport, data and model parts of axis n.

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
    relaxation = Relaxation(reg, reg_m_data, reg_m_model)
    loss = transport_loss(resolve_costs(specs, data), relaxation, TransportLimits(max_iter, tol))
    return evaluate(Problem(data, loss, ready, graph_reg), checked)
