"""The outer loop: starts, iterations, stopping, restarts, checkpoints, and the projection of new samples.

May import everything below it: `io`, `losses`, `transport`, `geometry`, `data`, `backends`, `core`. Start with `loop`:
estimators call its `solve_each`, which runs the iterations of `steps`. `checkpoint` and `saved` resume interrupted
fits, `project` embeds new samples, `long_costs` builds near-far costs.
"""

from gwntf.solver.callbacks import Callback, Iteration, ProgressBar, following
from gwntf.solver.checkpoint import LAYOUT, RECORDS, Checkpoint, Keeper
from gwntf.solver.long_costs import near_far_cost, resolve_long_costs
from gwntf.solver.loop import evaluate, next_state, solve_each
from gwntf.solver.problem import Problem, Result, Stopping
from gwntf.solver.project import project
from gwntf.solver.start import INITS, hold, start_factors, with_mass_of
from gwntf.solver.steps import Steps

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
    "following",
    "hold",
    "near_far_cost",
    "next_state",
    "project",
    "resolve_long_costs",
    "solve_each",
    "start_factors",
    "with_mass_of",
]
