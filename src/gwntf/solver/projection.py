"""New samples: their embedding with the other factors fixed, alone or tied to training samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from operator import mul

from gwntf.core import Array
from gwntf.backends import Backend
from gwntf.geometry import SampleTies, Ties
from gwntf.data import ChunkedTensor, NonnegativeTensor, SparseTensor
from gwntf.solver.loop import Stopping
from gwntf.losses import LossSpec
from gwntf.solver.problem import Problem
from gwntf.updates import tie_penalty

_BATCH_ENTRIES = 2**22


def project(
    problem: Problem,
    components: Sequence[Array],
    stopping: Stopping,
    backend: Backend,
    ties: Ties | None = None,
) -> tuple[Array, int]:
    """Minimise the data term, and the penalty of `ties`, over the sample factor alone; also count unsettled samples.

    Nothing ties one new sample to another, so each is a problem of its own: it has its own stop, and its answer
    does not depend on the samples beside it. Samples are taken in batches to bound the memory.
    """
    tensor, loss = problem.tensor, problem.loss.for_new_samples()
    rest = [backend.asarray(component, tensor.dtype) for component in components]
    if isinstance(tensor, ChunkedTensor):
        parts = tensor.blocks.map(partial(project_block, loss=loss, rest=rest, stopping=stopping))
    else:
        parts = [project_block(tensor, loss, rest, stopping, ties)]
    return backend.xp.concat([part for part, _ in parts]), sum(unsettled for _, unsettled in parts)


def project_block(
    tensor: NonnegativeTensor | SparseTensor,
    loss: LossSpec,
    rest: Sequence[Array],
    stopping: Stopping,
    ties: Ties | None = None,
) -> tuple[Array, int]:
    """Embed samples that are in memory, in batches, on the backend they are on."""
    backend, parts = tensor.backend, []
    for batch in tensor.batches(max(_BATCH_ENTRIES, backend.block_entries)):
        tied = None if ties is None else ties.place(backend, tensor.dtype, batch)
        parts.append(_project_batch(Problem(tensor.of(batch), loss), rest, stopping, backend, tied))
    return backend.xp.concat([part for part, _ in parts]), sum(unsettled for _, unsettled in parts)


def _project_batch(
    problem: Problem, rest: Sequence[Array], stopping: Stopping, backend: Backend, ties: SampleTies | None
) -> tuple[Array, int]:
    xp = backend.xp
    loss, _ = problem.place(backend)
    a, size = _start(backend, problem, rest), loss.sample_scales
    done = xp.zeros_like(size, dtype=xp.bool)
    last = None
    with backend.quiet():
        for _ in range(stopping.max_iter):
            moved, value = loss.sample_step([a, *rest], ties)
            if ties is not None:
                value = value + tie_penalty(backend, a, ties)
            if last is not None and stopping.tol > 0:
                scale = xp.maximum(xp.abs(value), size)
                done = done | ~(last - value > stopping.tol * scale)
                if bool(xp.all(done)):
                    break
            a = xp.where(done[:, None], a, moved)
            last = value
    return a, int(xp.sum(~done))


def _start(backend: Backend, problem: Problem, rest: Sequence[Array]) -> Array:
    """Return the same weight for every component of a sample, with the mass of the sample in all."""
    xp = backend.xp
    mass = backend.asarray(problem.tensor.sample_sums)
    weight = reduce(mul, (xp.sum(factor, axis=0, dtype=xp.float64) for factor in rest))
    share = weight.shape[0] * xp.where(weight > 0, weight, xp.ones_like(weight))
    return xp.astype(mass[:, None] / share, rest[0].dtype)
