"""The outer loop: starts, iterations, stopping, restarts, checkpoints, and the projection of new samples.

May import everything below it: `io`, `losses`, `transport`, `geometry`, `data`, `backends`, `core`. Start with `loop`,
which takes the iterations of `iteration`; `restarts` is what an estimator calls, `checkpoint` lets a fit that was
interrupted continue from where `saved` says it was, `project` embeds new samples, `long_costs` chooses near-far costs.
"""

from gwntf.solver.callbacks import Callback, Iteration, ProgressBar
from gwntf.solver.checkpoint import LAYOUT, Checkpoint, Keeper
from gwntf.solver.iteration import Steps
from gwntf.solver.long_costs import near_far_cost, resolve_long_costs
from gwntf.solver.loop import evaluate
from gwntf.solver.problem import Problem
from gwntf.solver.project import project
from gwntf.solver.records import RECORDS
from gwntf.solver.restarts import solve_each
from gwntf.solver.result import Result
from gwntf.solver.start import INITS, start_factors, with_mass_of
from gwntf.solver.stopping import Stopping

__all__ = [
    "INITS",
    "LAYOUT",
    "RECORDS",
    "Callback",
    "Checkpoint",
    "Iteration",
    "Keeper",
    "Problem",
    "ProgressBar",
    "Result",
    "Steps",
    "Stopping",
    "evaluate",
    "near_far_cost",
    "project",
    "resolve_long_costs",
    "solve_each",
    "start_factors",
    "with_mass_of",
]
