"""Data terms of the objective, one module per loss, independent of the kind of data and of the backend.

May import `transport`, `geometry`, `data`, `backends` and `core`. Start with `base`, the interface of a loss.
`least_squares` is the shortest loss, `entrywise` the base of custom losses and KL, `transport` the Wasserstein loss.
`simplex` is the factor update shared by transport and KL, `sweeps` that of least squares, `scheme` the extrapolation of
both, `graph` the graph penalty, `held` the components that a fit does not change, `warm` the warm starts of the
transports, `penalty` the L1 and L2 penalties.
"""

from gwntf.losses.base import FitState, Loss, ObjectiveTerms, PlanTerms
from gwntf.losses.entrywise import Entrywise
from gwntf.losses.graph import RULES, GraphGradient, GraphTerm, tie_penalty
from gwntf.losses.held import all_with_held
from gwntf.losses.least_squares import LeastSquares
from gwntf.losses.penalty import NO_PENALTIES, NO_PENALTY, Penalties, Penalty, block_rows_penalty, l2_on_simplex
from gwntf.losses.scheme import Momentum, Plain, Search
from gwntf.losses.simplex import SimplexLoss
from gwntf.losses.transport import transport_loss

__all__ = [
    "NO_PENALTIES",
    "NO_PENALTY",
    "RULES",
    "Entrywise",
    "FitState",
    "GraphGradient",
    "GraphTerm",
    "LeastSquares",
    "Loss",
    "Momentum",
    "ObjectiveTerms",
    "Penalties",
    "Penalty",
    "Plain",
    "PlanTerms",
    "Search",
    "SimplexLoss",
    "all_with_held",
    "block_rows_penalty",
    "l2_on_simplex",
    "tie_penalty",
    "transport_loss",
]
