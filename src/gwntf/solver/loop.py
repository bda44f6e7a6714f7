"""The outer loop, from every start: the data term at the present factors, the factors from it, until F settles."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gwntf.core import Array, FloatArray, InputError, Status
from gwntf.losses import ObjectiveTerms, Position
from gwntf.solver.callbacks import Callback, Iteration
from gwntf.solver.checkpoint import Keeper, Progress
from gwntf.solver.iteration import Steps
from gwntf.solver.problem import Problem, Result, Stopping
from gwntf.solver.saved import from_file, to_file
from gwntf.solver.start import INITS, start_factors

_log = logging.getLogger(__name__)

_SLOW = 1e-3
"""Relative fall of F at which the data term is evaluated more exactly, where it can be."""


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
    """Minimise F for every way to start, from `n_init` starts each, and give the result with the lowest objective.

    Kernels and graph are built once, and what a backend has recorded serves all fits. A keeper writes checkpoints, and
    has the results and the position from the last one.
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
    """Minimise F from each start, beginning at a position, and return the result with the lowest objective."""
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
        raise RuntimeError("there was no start")
    return best


def _check_init(init: object, n_init: int) -> None:
    if isinstance(init, str) and init not in INITS:
        raise InputError("init", repr(init), f"one of {', '.join(map(repr, INITS))} or a list of factors")
    if n_init > 1 and not (isinstance(init, str) and init == "random"):
        raise InputError("n_init", repr(n_init), "1 unless init='random': other starts are all the same")


def run(
    steps: Steps,
    factors: Sequence[Array],
    stopping: Stopping,
    callbacks: Sequence[Callback],
    restart: int,
    keeper: Keeper,
    saved: Mapping[str, Any] | None,
) -> Result:
    """Minimise F from the given factors, or from where a checkpoint had the loop."""
    with steps.blocks.backend.quiet():
        if saved is not None:
            at, terms, curve = from_file(steps, saved["position"]), saved["terms"], saved["curve"].tolist()
        else:
            at, terms = steps.first(factors)
            if terms.broken:
                allowed = "factors whose model is positive wherever X is, and data whose squares the number type holds"
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
                news = Iteration(restart, iteration, terms.total, terms, steps.factors(at))
                stops = [callback(news) for callback in callbacks]  # all of them are called
                if any(stops):
                    status = Status.STOPPED
                    break
        last = list(steps.factors(at))
    _log.info("restart %d: %s after %d iterations", restart, status.value, len(curve) - 1)
    return Result(last, np.array(curve), terms, status)


def _state(steps: Steps, at: Position, terms: ObjectiveTerms, curve: Sequence[float]) -> dict[str, Any]:
    """Return the state of the loop, for a file."""
    return {"position": to_file(steps, at), "terms": terms, "curve": np.array(curve)}


def evaluate(problem: Problem, factors: Sequence[FloatArray]) -> ObjectiveTerms:
    """F at given factors, term by term."""
    backend = problem.data.backend
    placed = [backend.asarray(factor, problem.data.dtype) for factor in factors]
    return Steps(problem).first(placed)[1]


def _finer(steps: Steps, at: Position, curve: Sequence[float], stopping: Stopping) -> Position | None:
    """Return a position from which the data term is evaluated more exactly, where F has become slow and it can be."""
    slow = Stopping(tol=max(stopping.tol, _SLOW))
    if len(curve) < 2 or slow.moving(curve[-2], curve[-1], steps.size):
        return None
    return steps.refined(at)


def _status(curve: Sequence[float], size: float, stopping: Stopping, *, refined: bool) -> Status | None:
    """Why the last iteration was the last one, if it was."""
    if len(curve) > 1 and stopping.tol > 0 and not refined and not stopping.moving(curve[-2], curve[-1], size):
        return Status.ROSE if stopping.moving(curve[-1], curve[-2], size) else Status.CONVERGED
    return Status.MAX_ITER if len(curve) > stopping.max_iter else None
