"""Data terms of the objective, one file per loss: every loss is written once, for all data and backends.

May import `transport`, `geometry`, `data`, `backends` and `core`. Start with `base`, the interface of a loss;
`least_squares` is the shortest one, `entrywise` the base of custom losses and KL, `transport` the Wasserstein loss;
`simplex` has the factor step that transport and KL share, `graph` the penalty on the samples, `warm` what transports
keep. `penalty` has L1 and L2 penalties on the factors.
"""

from gwntf.losses.base import Loss, ObjectiveTerms, PlanTerms, Position
from gwntf.losses.entrywise import Entrywise
from gwntf.losses.graph import RULES, GraphTerm, Pull, tie_penalty
from gwntf.losses.least_squares import LeastSquares
from gwntf.losses.penalty import NO_PENALTIES, NO_PENALTY, Penalties, Penalty, block_rows_penalty, l2_on_simplex
from gwntf.losses.simplex import SimplexLoss
from gwntf.losses.transport import transport_loss

__all__ = [
    "NO_PENALTIES",
    "NO_PENALTY",
    "RULES",
    "Entrywise",
    "GraphTerm",
    "LeastSquares",
    "Loss",
    "ObjectiveTerms",
    "Penalties",
    "Penalty",
    "PlanTerms",
    "Position",
    "Pull",
    "SimplexLoss",
    "block_rows_penalty",
    "l2_on_simplex",
    "tie_penalty",
    "transport_loss",
]
