"""The outer loop: from every start, iterate until F converges."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gwntf.core import Array, FloatArray, InputError, Status
from gwntf.losses import FitState, ObjectiveTerms
from gwntf.solver.callbacks import Callback, Iteration
from gwntf.solver.checkpoint import Keeper, Progress
from gwntf.solver.problem import Problem, Result, Stopping
from gwntf.solver.saved import from_file, to_file
from gwntf.solver.start import INITS, start_factors
from gwntf.solver.steps import Steps

_log = logging.getLogger(__name__)

_SLOW = 1e-3
"""Relative decrease of F at or below which the effort of the data term is raised."""


def solve_each(
    problem: Problem,
    rank: int,
    stopping: Stopping,
    inits: Iterable[tuple[object, np.random.RandomState]],
    *,
    n_init: int = 1,
    callbacks: Sequence[Callback] = (),
    keeper: Keeper | None = None,
) -> Iterator[Result]:
    """Minimise F for every item of `inits`, from `n_init` starts each, and yield the best result of each.

    Kernels and graph are built once, and steps recorded by a backend are shared by all fits. The keeper writes
    checkpoints and provides the results and the state of the last one.
    """
    data, backend = problem.data, problem.data.backend
    keeper = keeper or Keeper()
    steps: Steps | None = None
    for fit, (init, rng) in enumerate(inits):
        _check_init(init, n_init)
        result = keeper.finished(fit, backend)
        if result is None:
            at = keeper.begin(rng, backend)
            drawn = [start_factors(data, rank, init, at.rng) for _ in range(n_init)]
            starts = [[backend.asarray(factor, data.dtype) for factor in start] for start in drawn]
            steps = steps or Steps(problem)
            result = _best(steps, starts, stopping, callbacks, keeper, at)
            keeper.end(result)
        yield result


def _best(
    steps: Steps,
    starts: Sequence[Sequence[Array]],
    stopping: Stopping,
    callbacks: Sequence[Callback],
    keeper: Keeper,
    at: Progress,
) -> Result:
    """Minimise F from each start, resuming at `at`, and return the result with the lowest objective."""
    best, saved = at.best, at.loop
    for restart in range(at.restart, len(starts)):
        keeper.move(restart, best)
        result = run(steps, starts[restart], stopping, callbacks, restart, keeper, saved)
        saved = None
        if best is None or result.objective < best.objective:
            best = result
        if result.status is Status.STOPPED:
            break
    if best is None:
        raise RuntimeError("no starts")
    return best


def _check_init(init: object, n_init: int) -> None:
    if isinstance(init, str) and init not in INITS:
        raise InputError("init", repr(init), f"one of {', '.join(map(repr, INITS))} or a list of factors")
    if n_init > 1 and not (isinstance(init, str) and init == "random"):
        raise InputError("n_init", repr(n_init), "1 unless init='random'")


def run(
    steps: Steps,
    factors: Sequence[Array],
    stopping: Stopping,
    callbacks: Sequence[Callback],
    restart: int,
    keeper: Keeper,
    saved: Mapping[str, Any] | None,
) -> Result:
    """Minimise F from the given factors, or from the saved state of a checkpoint."""
    with steps.blocks.backend.quiet():
        if saved is not None:
            at, terms, curve = from_file(steps, saved["position"]), saved["terms"], saved["curve"].tolist()
        else:
            at, terms = steps.first(factors)
            if terms.broken:
                allowed = "factors whose model is positive wherever X is, and data whose squares do not overflow"
                raise InputError("init", f"a start at which the objective is {terms.total}", allowed)
            curve = [terms.total]
        while True:
            keeper.offer(partial(_state, steps, at, terms, curve))
            finer = _finer(steps, at, curve, stopping)
            at = finer or at
            if status := _status(curve, steps.size, stopping, refined=finer is not None):
                break
            moved, next_terms = steps.next(at, len(curve) - 1)
            if next_terms.broken:
                status = Status.DIVERGED
                break
            at, terms = moved, next_terms
            curve.append(terms.total)
            iteration = len(curve) - 1
            _log.debug("restart %d, iteration %d: F = %.10g", restart, iteration, terms.total)
            if callbacks:
                report = Iteration(restart, iteration, terms.total, terms, steps.factors(at))
                stops = [callback(report) for callback in callbacks]  # call all of them, also after a true value
                if any(stops):
                    status = Status.STOPPED
                    break
        last = list(steps.factors(at))
    _log.info("restart %d: %s after %d iterations", restart, status.value, len(curve) - 1)
    return Result(last, np.array(curve), terms, status)


def _state(steps: Steps, at: FitState, terms: ObjectiveTerms, curve: Sequence[float]) -> dict[str, Any]:
    """Return the state of the loop for a checkpoint."""
    return {"position": to_file(steps, at), "terms": terms, "curve": np.array(curve)}


def evaluate(problem: Problem, factors: Sequence[FloatArray]) -> ObjectiveTerms:
    """Return the terms of F at given factors."""
    backend = problem.data.backend
    arrays = [backend.asarray(factor, problem.data.dtype) for factor in factors]
    return Steps(problem).first(arrays)[1]


def _finer(steps: Steps, at: FitState, curve: Sequence[float], stopping: Stopping) -> FitState | None:
    """Return the fit state with a higher effort if F decreases slowly, or None."""
    slow = Stopping(tol=max(stopping.tol, _SLOW))
    if len(curve) < 2 or slow.moving(curve[-2], curve[-1], steps.size):
        return None
    return steps.refined(at)


def _status(curve: Sequence[float], size: float, stopping: Stopping, *, refined: bool) -> Status | None:
    """Return why the loop stops, or None if it continues."""
    if len(curve) > 1 and stopping.tol > 0 and not refined and not stopping.moving(curve[-2], curve[-1], size):
        return Status.ROSE if stopping.moving(curve[-1], curve[-2], size) else Status.CONVERGED
    return Status.MAX_ITER if len(curve) > stopping.max_iter else None
