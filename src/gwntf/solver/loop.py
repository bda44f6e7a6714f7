"""The outer loop: the data term at the present factors, the factors from it, until F settles."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from gwntf.core import Array, FloatArray, InputError, Status
from gwntf.backends import Backend
from gwntf.solver.callbacks import Callback, Iteration
from gwntf.solver.checkpoints import Keeper
from gwntf.losses import ObjectiveTerms
from gwntf.solver.problem import Problem
from gwntf.solver.result import Result
from gwntf.solver.steps import Steps

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


class Settling(Protocol):
    """What the loop asks of a loss: see `losses.Loss`."""

    @property
    def backend(self) -> Backend:
        """Who does what is done here."""
        ...

    @property
    def sample_scales(self) -> Array:
        """Sizes whose sum is that of X in the unit of the loss."""
        ...

    def forget(self) -> None:
        """Drop all state, as a restart must."""
        ...

    def refine(self) -> bool:
        """Evaluate more exactly from now on, and say whether that was possible."""
        ...

    def finish(self, factors: Sequence[Array]) -> Sequence[Array]:
        """Bring factors into the scale in which they are returned."""
        ...


class Iterations(Protocol):
    """Where iterations come from: `steps.Steps`, or a cluster."""

    @property
    def loss(self) -> Settling:
        """The data term."""
        ...

    def first(self, factors: Sequence[Array]) -> tuple[tuple[Array, ...], ObjectiveTerms]:
        """Return what the step from these factors needs, and F."""
        ...

    def next(
        self, factors: Sequence[Array], carried: tuple[Array, ...]
    ) -> tuple[list[Array], tuple[Array, ...], ObjectiveTerms]:
        """Return the next factors with what the step from them needs, and F there."""
        ...


def placed_steps(problem: Problem, backend: Backend) -> Steps:
    """Place a problem on an backend."""
    return Steps(*problem.place(backend))


def run(
    steps: Iterations,
    factors: Sequence[Array],
    stopping: Stopping,
    callbacks: Sequence[Callback] = (),
    restart: int = 0,
    keeper: Keeper | None = None,
    saved: Mapping[str, Any] | None = None,
) -> Result:
    """Minimise F from the given factors, or from where a checkpoint had the loop."""
    loss = steps.loss
    loss.forget()
    size = float(loss.sample_scales.sum())
    with loss.backend.quiet():
        if saved is not None and isinstance(steps, Steps):
            factors, carried, terms, curve = steps.resume(saved)
        else:
            carried, terms = steps.first(factors)
            _check_start(terms)
            curve = [terms.total]
        while True:
            if keeper is not None and isinstance(steps, Steps):
                keeper.offer(partial(steps.state, factors, carried, terms, curve))
            if status := _judge(curve, size, stopping, loss):
                break
            moved, carried, next_terms = steps.next(factors, carried)
            if next_terms.broken:
                status = Status.DIVERGED
                break
            factors, terms = moved, next_terms
            curve.append(terms.total)
            iteration = len(curve) - 1
            _log.debug("restart %d, iteration %d: F = %.10g", restart, iteration, terms.total)
            if callbacks:
                news = Iteration(restart, iteration, terms.total, terms, loss.finish(factors))
                asked = [callback(news) for callback in callbacks]
                if any(asked):
                    status = Status.STOPPED
                    break
        last = list(loss.finish(factors))
    _log.info("restart %d: %s after %d iterations", restart, status.value, len(curve) - 1)
    return Result(last, np.array(curve), terms, status)


def _check_start(terms: ObjectiveTerms) -> None:
    if terms.broken:
        allowed = (
            "factors whose model is positive wherever X is, and data whose squares the number type holds"
        )
        raise InputError("init", f"a start at which the objective is {terms.total}", allowed)


def evaluate(problem: Problem, factors: Sequence[FloatArray], backend: Backend) -> ObjectiveTerms:
    """F at given factors, term by term."""
    placed = [backend.asarray(factor, problem.tensor.dtype) for factor in factors]
    return placed_steps(problem, backend).first(placed)[1]


def _fall(curve: Sequence[float], size: float) -> float:
    """By which part of max(|F|, size of X) the last iteration lowered F."""
    scale = max(abs(curve[-1]), size)
    return (curve[-2] - curve[-1]) / scale if scale > 0 else 0.0


def _judge(curve: Sequence[float], size: float, stopping: Stopping, loss: Settling) -> Status | None:
    """Whether the last iteration was the last one; where it was small, the loss may be refined instead."""
    if len(curve) > 1:
        fall = _fall(curve, size)
        refined = fall <= max(stopping.tol, _SLOW) and loss.refine()
        if not refined and stopping.tol > 0 and fall <= stopping.tol:
            return Status.CONVERGED if fall >= -stopping.tol else Status.ROSE
    return Status.MAX_ITER if len(curve) > stopping.max_iter else None
