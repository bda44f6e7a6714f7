"""The outer loop: transport step, factor step, stopping, restarts, and the projection of new samples.

May import everything below it: `io`, `transport`, `updates`, `geometry`, `problem`, `engines`, `core`.
Start with `loop`; `loss` is the data term it evaluates, `restarts` what an estimator calls.
"""

from gwntf.solvers.callbacks import Callback, Iteration, ProgressBar
from gwntf.solvers.initialization import INITS
from gwntf.solvers.loop import UPDATES, Settings
from gwntf.solvers.loss import ObjectiveTerms, TransportLoss
from gwntf.solvers.problem import Problem
from gwntf.solvers.projection import project
from gwntf.solvers.restarts import evaluate, solve
from gwntf.solvers.result import Result

__all__ = [
    "INITS",
    "UPDATES",
    "Callback",
    "Iteration",
    "ObjectiveTerms",
    "Problem",
    "ProgressBar",
    "Result",
    "Settings",
    "TransportLoss",
    "evaluate",
    "project",
    "solve",
]
