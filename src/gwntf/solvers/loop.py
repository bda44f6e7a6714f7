"""The outer loop: the data term at the present factors, the factors from it, until F settles."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gwntf.core import Array, FloatArray, InputError, Status
from gwntf.engines import Engine
from gwntf.geometry import SampleGraph
from gwntf.solvers.callbacks import Callback, Iteration
from gwntf.solvers.losses import Evaluation, Loss, ObjectiveTerms
from gwntf.solvers.problem import Problem
from gwntf.solvers.result import Result
from gwntf.updates import penalty

_log = logging.getLogger(__name__)

_SLOW = 1e-3
"""Relative fall of F at which the data term is evaluated more exactly, where it can be."""


@dataclass(frozen=True)
class Stopping:
    """When the outer loop ends.

    Attributes
    ----------
    max_iter : int
        Outer iterations at most.
    tol : float
        Stop when F falls by at most ``tol * max(|F|, size of X)``, where the size is sum(X) for transport and KL, and
        1/2 |X|^2 for least squares; zero never stops early.
    """

    max_iter: int = 100
    tol: float = 1e-4


def run(
    loss: Loss,
    graph: SampleGraph | None,
    factors: Sequence[Array],
    stopping: Stopping,
    callbacks: Sequence[Callback] = (),
    restart: int = 0,
) -> Result:
    """Minimise F from the given factors."""
    loss.forget()
    size = float(loss.sample_scales.sum())
    with loss.engine.quiet():
        evaluation, terms = assess(loss, graph, factors)
        if not math.isfinite(terms.total):
            allowed = (
                "factors whose model is positive wherever X is, and data whose squares the number type holds"
            )
            raise InputError("init", f"a start at which the objective is {terms.total}", allowed)
        curve = [terms.total]
        status = Status.MAX_ITER
        for iteration in range(1, stopping.max_iter + 1):
            moved = loss.advance(factors, evaluation, graph)
            evaluation, next_terms = assess(loss, graph, moved)
            if not math.isfinite(next_terms.total):
                status = Status.DIVERGED
                break
            factors, terms = moved, next_terms
            curve.append(terms.total)
            _log.debug("restart %d, iteration %d: F = %.10g", restart, iteration, terms.total)
            if callbacks:
                news = Iteration(restart, iteration, terms.total, terms, loss.finish(factors))
                asked = [callback(news) for callback in callbacks]
                if any(asked):
                    status = Status.STOPPED
                    break
            fall = _fall(curve, size)
            if fall <= max(stopping.tol, _SLOW) and loss.refine():
                continue
            if stopping.tol > 0 and (verdict := _verdict(fall, stopping.tol)):
                status = verdict
                break
        last = loss.finish(factors)
    _log.info("restart %d: %s after %d iterations", restart, status.value, len(curve) - 1)
    return Result(last, np.array(curve), terms, status)


def evaluate(problem: Problem, factors: Sequence[FloatArray], engine: Engine) -> ObjectiveTerms:
    """F at given factors, term by term."""
    loss, graph = problem.place(engine)
    placed = [engine.asarray(factor, problem.tensor.dtype) for factor in factors]
    return assess(loss, graph, placed)[1]


def assess(
    loss: Loss, graph: SampleGraph | None, factors: Sequence[Array]
) -> tuple[Evaluation, ObjectiveTerms]:
    """F at these factors, with what the factor step needs."""
    evaluation = loss.evaluate(factors)
    smoothness = 0.0 if graph is None else penalty(loss.engine, factors[0], graph)
    return evaluation, ObjectiveTerms(evaluation.modes, evaluation.misfit, smoothness)


def _fall(curve: Sequence[float], size: float) -> float:
    """By which part of max(|F|, size of X) the last iteration lowered F."""
    return (curve[-2] - curve[-1]) / max(abs(curve[-1]), size)


def _verdict(fall: float, tol: float) -> Status | None:
    """Whether an iteration was small enough to be the last."""
    if fall > tol:
        return None
    return Status.CONVERGED if fall >= -tol else Status.ROSE
