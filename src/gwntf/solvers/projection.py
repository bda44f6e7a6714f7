"""New samples: their embedding with the other factors fixed, alone or tied to training samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gwntf.core import FloatArray
from gwntf.engines import Engine
from gwntf.geometry import SampleTies, Ties
from gwntf.solvers.loop import Stopping
from gwntf.solvers.problem import Problem
from gwntf.updates import tie_penalty

_BATCH_ENTRIES = 2**22


def project(
    problem: Problem,
    components: Sequence[FloatArray],
    stopping: Stopping,
    engine: Engine,
    ties: Ties | None = None,
) -> tuple[FloatArray, int]:
    """Minimise the data term, and the penalty of `ties`, over the sample factor alone; also count unsettled samples.

    Nothing ties one new sample to another, so each is a problem of its own: it has its own stop, and its answer
    does not depend on the samples beside it. Samples are taken in batches to bound the memory.
    """
    values = problem.tensor.values
    step = max(1, _BATCH_ENTRIES // max(1, values[0].size))
    parts = []
    for start in range(0, len(values), step):
        samples = slice(start, start + step)
        tied = None if ties is None else ties.place(engine, values.dtype, samples)
        batch = problem.of_new_samples(samples)
        parts.append(_project_batch(batch, components, stopping, engine, tied))
    return np.concatenate([part for part, _ in parts]), sum(unsettled for _, unsettled in parts)


def _project_batch(
    problem: Problem,
    components: Sequence[FloatArray],
    stopping: Stopping,
    engine: Engine,
    ties: SampleTies | None,
) -> tuple[FloatArray, int]:
    xp = engine.xp
    loss, _ = problem.place(engine)
    values = problem.tensor.values
    rest = [engine.asarray(component, values.dtype) for component in components]
    mass = values.reshape(len(values), -1).sum(axis=1, dtype=np.float64)
    weight = np.prod([component.sum(axis=0, dtype=np.float64) for component in components], axis=0)
    start = mass[:, None] / (weight.size * np.where(weight > 0, weight, 1))
    a, size = engine.asarray(start, values.dtype), engine.asarray(loss.sample_scales)
    done = xp.zeros_like(size, dtype=xp.bool)
    last = None
    with engine.quiet():
        for _ in range(stopping.max_iter):
            moved, value = loss.sample_step([a, *rest], ties)
            if ties is not None:
                value = value + tie_penalty(engine, a, ties)
            if last is not None and stopping.tol > 0:
                scale = xp.maximum(xp.abs(value), size)
                done = done | ~(last - value > stopping.tol * scale)
                if bool(xp.all(done)):
                    break
            a = xp.where(done[:, None], a, moved)
            last = value
    return engine.to_numpy(a), int(xp.sum(~done))
