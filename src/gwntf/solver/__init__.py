"""The outer loop: data term, factor step, stopping, restarts, and the projection of new samples.

May import everything below it: `io`, `transport`, `updates`, `geometry`, `problem`, `backends`, `core`.
Start with `loop`, which takes `steps`; `losses` holds the data terms it evaluates, `restarts` is what an estimator
calls, `checkpoints` lets a fit that was cut short go on, `long_costs` chooses near-far costs.
"""

from gwntf.solver.callbacks import Callback, Iteration, ProgressBar
from gwntf.solver.checkpoints import Checkpoint, Keeper
from gwntf.solver.initialization import INITS, start_factors, with_mass_of
from gwntf.solver.long_costs import near_far_cost, resolve_long_costs
from gwntf.solver.loop import Iterations, Stopping, evaluate, placed_steps
from gwntf.losses import Entrywise, Frobenius, LossSpec, ObjectiveTerms, Wasserstein
from gwntf.losses.transport import UPDATES
from gwntf.solver.problem import Problem
from gwntf.solver.projection import project
from gwntf.solver.records import RECORDS
from gwntf.solver.restarts import solve_each
from gwntf.solver.result import Result
from gwntf.solver.steps import Steps

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
