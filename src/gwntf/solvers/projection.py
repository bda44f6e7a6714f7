"""New samples: their embedding with the other factors fixed, without a graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gwntf.core import Array, FloatArray
from gwntf.engines import Engine
from gwntf.problem import mttkrp
from gwntf.solvers.loop import Settings
from gwntf.solvers.loss import TransportLoss
from gwntf.solvers.problem import Problem
from gwntf.transport import TransportLimits
from gwntf.updates import ratio_to_model

_BATCH_ENTRIES = 2**22


def project(
    problem: Problem,
    components: Sequence[FloatArray],
    settings: Settings,
    limits: TransportLimits,
    engine: Engine,
) -> FloatArray:
    """Minimise the data term over the sample factor alone.

    Only the non-sample modes are transported, so each sample is a problem of its own: it has its own stop,
    and its answer does not depend on the samples beside it. Samples are taken in batches to bound the
    memory.
    """
    values = problem.tensor.values
    step = max(1, _BATCH_ENTRIES // max(1, values[0].size))
    parts = [
        _project_batch(_batch(problem, slice(start, start + step)), components, settings, limits, engine)
        for start in range(0, len(values), step)
    ]
    return np.concatenate(parts)


def _batch(problem: Problem, samples: slice) -> Problem:
    tensor = problem.tensor
    observed = None if tensor.observed is None else tensor.observed[samples]
    part = type(tensor)(tensor.values[samples], observed)
    return Problem(part, (None, *problem.costs[1:]), problem.relaxation)


def _project_batch(
    problem: Problem,
    components: Sequence[FloatArray],
    settings: Settings,
    limits: TransportLimits,
    engine: Engine,
) -> FloatArray:
    xp = engine.xp
    dtype = problem.tensor.values.dtype
    loss, _ = problem.place(engine, limits)
    rest = [engine.asarray(component, dtype) for component in components]
    mass = xp.sum(loss.data.reshape(loss.data.shape[0], -1), axis=1)
    rank = rest[0].shape[1]
    a = mass[:, None] / rank * xp.ones_like(rest[0][:1, :])
    done = xp.zeros_like(mass, dtype=xp.bool)
    last = None
    with engine.quiet():
        for _ in range(settings.max_iter):
            moved, value = _sample_step(loss, [a, *rest])
            if last is not None and settings.tol > 0:
                scale = xp.maximum(xp.abs(value), xp.astype(mass, xp.float64))
                done = done | ~(last - value > settings.tol * scale)
                if bool(xp.all(done)):
                    break
            a = xp.where(done[:, None], a, moved)
            last = value
    return engine.to_numpy(a)


def _sample_step(loss: TransportLoss, factors: Sequence[Array]) -> tuple[Array, Array]:
    """One MM step of every sample, and the value of each before it."""
    xp = loss.engine.xp
    evaluation = loss.evaluate(factors)
    ratio = ratio_to_model(loss.engine, evaluation.target, evaluation.model, loss.observed)
    sums = xp.ones_like(factors[0][0, :])
    for factor in factors[1:]:
        sums = sums * xp.sum(factor, axis=0)
    return factors[0] * mttkrp(ratio, factors, 0) / sums, evaluation.by_sample
