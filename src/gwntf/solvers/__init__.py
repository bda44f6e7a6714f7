"""The outer loop: data term, factor step, stopping, restarts, and the projection of new samples.

May import everything below it: `io`, `transport`, `updates`, `geometry`, `problem`, `engines`, `core`.
Start with `loop`, which takes `steps`; `losses` holds the data terms it evaluates, `restarts` is what an estimator
calls, `checkpoints` lets a fit that was cut short go on, `long_costs` chooses near-far costs.
"""

from gwntf.solvers.callbacks import Callback, Iteration, ProgressBar
from gwntf.solvers.checkpoints import Checkpoint, Keeper
from gwntf.solvers.initialization import INITS, start_factors, with_mass_of
from gwntf.solvers.long_costs import near_far_cost, resolve_long_costs
from gwntf.solvers.loop import Iterations, Stopping, evaluate, placed_steps
from gwntf.solvers.losses import Entrywise, Frobenius, LossSpec, ObjectiveTerms, Wasserstein
from gwntf.solvers.losses.transport import UPDATES
from gwntf.solvers.problem import Problem
from gwntf.solvers.projection import project
from gwntf.solvers.records import RECORDS
from gwntf.solvers.restarts import solve_each
from gwntf.solvers.result import Result
from gwntf.solvers.steps import Steps

__all__ = [
    "INITS",
    "RECORDS",
    "UPDATES",
    "Callback",
    "Checkpoint",
    "Entrywise",
    "Frobenius",
    "Iteration",
    "Iterations",
    "Keeper",
    "LossSpec",
    "ObjectiveTerms",
    "Problem",
    "ProgressBar",
    "Result",
    "Steps",
    "Stopping",
    "Wasserstein",
    "evaluate",
    "near_far_cost",
    "placed_steps",
    "project",
    "resolve_long_costs",
    "solve_each",
    "start_factors",
    "with_mass_of",
]
