"""The outer loop: transports at the present factors, factors from the transports, until F settles."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gwntf.core import Array, Status
from gwntf.geometry import SampleGraph
from gwntf.solvers.callbacks import Callback, Iteration
from gwntf.solvers.loss import Evaluation, ObjectiveTerms, TransportLoss
from gwntf.solvers.result import Result
from gwntf.updates import RULES, penalty, printed_factor, ratio_to_model, step

UPDATES = (*RULES, "paper")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """How to minimise F.

    Attributes
    ----------
    update : {"mm", "multiplicative", "paper"}
        Factor rule; "mm" never raises F.
    inner_iter : int
        Steps of the sample factor per transport step.
    max_iter : int
        Outer iterations at most.
    tol : float
        Stop when F falls by at most ``tol * max(|F|, sum(X))``; zero never stops early.
    """

    update: str = "mm"
    inner_iter: int = 1
    max_iter: int = 100
    tol: float = 1e-4


def run(
    loss: TransportLoss,
    graph: SampleGraph | None,
    factors: Sequence[Array],
    settings: Settings,
    callbacks: Sequence[Callback] = (),
    restart: int = 0,
) -> Result:
    """Minimise F from the given factors."""
    loss.forget()
    with loss.engine.quiet():
        evaluation, terms = assess(loss, graph, factors)
        curve = [terms.total]
        status = Status.MAX_ITER
        for iteration in range(1, settings.max_iter + 1):
            moved = _advance(loss, graph, factors, evaluation, settings)
            next_evaluation, next_terms = assess(loss, graph, moved)
            if not math.isfinite(next_terms.total):
                status = Status.DIVERGED
                break
            factors, evaluation, terms = moved, next_evaluation, next_terms
            curve.append(terms.total)
            _log.debug("restart %d, iteration %d: F = %.10g", restart, iteration, terms.total)
            news = Iteration(restart, iteration, terms.total, terms, factors)
            asked = [callback(news) for callback in callbacks]
            if any(asked):
                status = Status.STOPPED
                break
            if settings.tol > 0 and (verdict := _verdict(curve, settings.tol, loss.mass)):
                status = verdict
                break
    _log.info(
        "restart %d: %s after %d iterations, F = %.10g", restart, status.value, len(curve) - 1, curve[-1]
    )
    return Result([loss.engine.to_numpy(a) for a in factors], np.array(curve), terms, status)


def assess(
    loss: TransportLoss, graph: SampleGraph | None, factors: Sequence[Array]
) -> tuple[Evaluation, ObjectiveTerms]:
    """F at these factors, with what the factor step needs."""
    evaluation = loss.evaluate(factors)
    smoothness = 0.0 if graph is None else penalty(loss.engine, factors[0], graph)
    return evaluation, ObjectiveTerms(evaluation.modes, evaluation.kl, smoothness)


def _advance(
    loss: TransportLoss,
    graph: SampleGraph | None,
    factors: Sequence[Array],
    evaluation: Evaluation,
    settings: Settings,
) -> list[Array]:
    """One factor step."""
    if settings.update == "paper":
        return _printed_step(loss, graph, factors)
    ratio = ratio_to_model(loss.engine, evaluation.target, evaluation.model, loss.observed)
    rule = RULES[settings.update]
    return step(loss.engine, factors, ratio, loss.weight, graph, rule, settings.inner_iter)


def _printed_step(loss: TransportLoss, graph: SampleGraph | None, factors: Sequence[Array]) -> list[Array]:
    """Algorithm 1 as printed: factors in turn, each from the transport of its own mode, samples last."""
    moved = list(factors)
    beta = loss.relaxation.reg_m_model if loss.transported else 1.0
    for mode in [*range(1, len(factors)), 0]:
        model, marginal = loss.marginal(moved, mode)
        ratio = ratio_to_model(loss.engine, marginal, model, loss.observed)
        moved[mode] = printed_factor(loss.engine, moved, ratio, mode, beta, graph)
    return moved


def _verdict(curve: Sequence[float], tol: float, mass: float) -> Status | None:
    """Whether the last iteration was small enough to be the last."""
    fall = curve[-2] - curve[-1]
    small = tol * max(abs(curve[-1]), mass)
    if fall > small:
        return None
    return Status.CONVERGED if fall >= -small else Status.ROSE
