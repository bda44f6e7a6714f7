"""The outer loop: from every start, iterate until F converges."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gwntf.core import Array, FloatArray, InputError, Status
from gwntf.losses import FitState, ObjectiveTerms, all_with_held
from gwntf.solver.callbacks import Callback, Iteration
from gwntf.solver.checkpoint import Keeper, Progress
from gwntf.solver.problem import Problem, Result, Stopping
from gwntf.solver.saved import from_file, to_file
from gwntf.solver.start import INITS, start_factors
from gwntf.solver.steps import Steps

_log = logging.getLogger(__name__)

_SLOW = 1e-3
"""Predicted remaining decrease of F at or below which the effort of the data term is raised, if `tol` is zero."""

_START, _PER_ITERATION, _FLOOR = Stopping(max_iter=80, tol=1e-4), 5, 0.1
"""Stopping rule of the fit that improves a start, its maximum number of iterations for every iteration of the fit, and
its smallest entries in relation to the mean of their column."""


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
    easier, loss = steps, problem.loss.for_start() if problem.loss.held < rank else None
    for fit, (init, rng) in enumerate(inits):
        _check_init(init, n_init)
        result = keeper.finished(fit, backend)
        if result is None:
            at = keeper.begin(rng, backend)
            drawn = [start_factors(data, rank, init, at.rng, problem.held) for _ in range(n_init)]
            starts = [[backend.asarray(factor, data.dtype) for factor in start] for start in drawn]
            steps = steps or Steps(problem)
            if easier is None and isinstance(init, str) and loss is not None:
                easier = Steps(replace(problem, loss=loss))
            begin = partial(_improved, easier if isinstance(init, str) else None, stopping.max_iter)
            result = _best(steps, starts, begin, stopping, callbacks, keeper, at)
            keeper.end(result)
        yield result


def _best(
    steps: Steps,
    starts: Sequence[Sequence[Array]],
    begin: Callable[[Sequence[Array]], Sequence[Array]],
    stopping: Stopping,
    callbacks: Sequence[Callback],
    keeper: Keeper,
    at: Progress,
) -> Result:
    """Minimise F from each start, resuming at `at`, and return the result with the lowest objective."""
    best, saved = at.best, at.loop
    for restart in range(at.restart, len(starts)):
        keeper.move(restart, best)
        start = starts[restart] if saved is not None else begin(starts[restart])
        result = run(steps, start, stopping, callbacks, restart, keeper, saved)
        saved = None
        if best is None or result.objective < best.objective:
            best = result
        if result.status is Status.STOPPED:
            break
    if best is None:
        raise RuntimeError("no starts")
    return best


def _improved(easier: Steps | None, max_iter: int, factors: Sequence[Array]) -> Sequence[Array]:
    """Return factors fitted with the easier loss of `Loss.for_start`, if there is one, without entries near zero.

    From random factors the transport loss may decrease so slowly that it seems to have converged; from a fit of KL it
    does not. Factors given by the user are not changed.
    """
    if easier is None:
        return factors
    xp = easier.blocks.backend.xp
    stopping = replace(_START, max_iter=min(_START.max_iter, _PER_ITERATION * max_iter))
    fitted = run(easier, factors, stopping, (), 0, Keeper(), None).factors
    raised = [xp.maximum(factor, _FLOOR * xp.sum(factor, axis=0) / factor.shape[0]) for factor in fitted]
    return [raised[0], *all_with_held(xp, raised[1:], factors[1:], easier.loss.held)]


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
                name = "parts" if steps.loss.held else "init"
                allowed = "factors whose model is positive wherever X is, and data whose squares do not overflow"
                raise InputError(name, f"a start at which the objective is {terms.total}", allowed)
            curve = [terms.total]
        while True:
            keeper.offer(partial(_state, steps, at, terms, curve))
            remaining = stopping.remaining(curve[at.since :], steps.size)
            at, status = _decided(steps, at, curve, stopping, remaining)
            if status is not None:
                break
            moved, next_terms = next_state(steps, at, curve[-1], len(curve) - 1)
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
    return Result(last, np.array(curve), terms, status, remaining)


def next_state(steps: Steps, at: FitState, value: float, count: int = 0) -> tuple[FitState, ObjectiveTerms]:
    """Return the next fit state and F there, given F at the last one and the number of iterations before.

    If a step raises F, shorter ones are tried, and in the end the update without acceleration.
    """
    moved, terms = steps.next(at)
    if steps.loss.plain:
        return steps.prepared([moved], count), terms
    tried = [at, moved]
    while terms.broken or terms.total > value:
        shorter = steps.loss.shorter(at, terms.total - value)
        if shorter is None:
            moved, terms = steps.retreat(at, moved)
            tried = [moved]
            break
        at = shorter
        moved, terms = steps.next(at)
        tried.append(moved)
    return steps.prepared(tried, count), terms


def _state(steps: Steps, at: FitState, terms: ObjectiveTerms, curve: Sequence[float]) -> dict[str, Any]:
    """Return the state of the loop for a checkpoint."""
    return {"position": to_file(steps, at), "terms": terms, "curve": np.array(curve)}


def evaluate(problem: Problem, factors: Sequence[FloatArray]) -> ObjectiveTerms:
    """Return the terms of F at given factors."""
    backend = problem.data.backend
    arrays = [backend.asarray(factor, problem.data.dtype) for factor in factors]
    return Steps(problem).first(arrays)[1]


def _decided(
    steps: Steps, at: FitState, curve: Sequence[float], stopping: Stopping, remaining: float
) -> tuple[FitState, Status | None]:
    """Return the fit state, with a higher effort if F has arrived with the current one, and why the loop stops or None.

    The fit has converged if a higher effort does not change F either, or if there is none.
    """
    count, size = len(curve) - 1, steps.size
    tested = stopping if stopping.tol > 0 else Stopping(tol=_SLOW)
    refined_before = 0 < at.since == count - 1
    arrived = tested.arrived(curve[-1], remaining, size) or (
        refined_before and not tested.moving(curve[-2], curve[-1], size)
    )
    rose = count > 0 and tested.moving(curve[-1], curve[-2], size)
    slow = arrived and not refined_before
    if steps.loss.plain:
        slow = count > 0 and not Stopping(tol=max(stopping.tol, _SLOW)).moving(curve[-2], curve[-1], size)
    finer = steps.refined(at) if slow or rose else None
    if finer is not None:
        at = finer._replace(since=count)
    elif stopping.tol > 0 and rose:
        return at, Status.ROSE
    elif stopping.tol > 0 and arrived:
        return at, Status.CONVERGED
    return at, Status.MAX_ITER if count >= stopping.max_iter else None
