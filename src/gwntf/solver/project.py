"""Embedding of new samples with the other factors fixed, with or without edges to training samples."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import mul

from gwntf.core import Array
from gwntf.data import Block, DataTensor
from gwntf.geometry import SampleTies, Ties
from gwntf.losses import NO_PENALTY, GraphGradient, Loss, Penalties, Penalty, tie_penalty
from gwntf.solver.problem import Stopping

_BATCH_ENTRIES = 2**22

_FAR = 10
"""A sample is far from converged if its objective decreases by more than this multiple of `tol` in the last step."""


def project(
    data: DataTensor,
    loss: Loss,
    components: Sequence[Array],
    stopping: Stopping,
    ties: Ties | None = None,
    penalty: Penalty = NO_PENALTY,
) -> tuple[Array, int]:
    """Minimise the data term and both penalties over the sample factor; also count samples far from converged.

    `ties` are edges to training samples, `penalty` is that on the sample factor of the fit.

    New samples are not coupled: each is a separate problem with its own stopping, and its embedding does not depend on
    the other samples. Samples are processed in batches to bound the memory.
    """
    backend = data.backend
    own = loss.for_new_samples().prepared(data)
    own.effective_penalties(Penalties(penalty))
    rest = [backend.to_numpy(backend.asarray(component, data.dtype)) for component in components]
    tied = [None] * len(data.blocks.slices) if ties is None else [ties.of(part) for part in data.blocks.slices]
    found = data.blocks.map(partial(project_block, loss=own, rest=rest, stopping=stopping, penalty=penalty), tied)
    return backend.xp.concat([backend.asarray(part) for part, _ in found]), sum(left for _, left in found)


def project_block(
    block: Block, ties: Ties | None, loss: Loss, rest: Sequence[Array], stopping: Stopping, penalty: Penalty
) -> tuple[Array, int]:
    """Embed the samples of a block in batches, where the block is stored."""
    backend, parts = block.backend, []
    factors = [backend.asarray(factor) for factor in rest]
    for batch in block.batches(max(_BATCH_ENTRIES, backend.block_entries)):
        tied = None if ties is None else ties.of(batch).on(backend, block.dtype)
        parts.append(_project_batch(block.select(batch), loss, factors, stopping, tied, penalty))
    return backend.xp.concat([part for part, _ in parts]), sum(left for _, left in parts)


def _project_batch(
    block: Block,
    loss: Loss,
    rest: Sequence[Array],
    stopping: Stopping,
    ties: SampleTies | None,
    penalty: Penalty,
) -> tuple[Array, int]:
    backend, xp = block.backend, block.backend.xp
    a, size = _start(block, rest), loss.sizes(block)
    gradient = None if ties is None else GraphGradient(ties.weight, ties.neighbor_sum, ties.degree)
    done = xp.zeros_like(size, dtype=xp.bool)
    before = last = state = None
    with backend.quiet():
        for _ in range(stopping.max_iter):
            moved, value, state = loss.sample_step(block, a, rest, gradient, penalty, state)
            if ties is not None:
                value = value + tie_penalty(backend, a, ties)
            if penalty.present:
                value = value + penalty.of_rows(xp, a)
            if last is not None and stopping.tol > 0:
                done = done | ~stopping.moving(last, value, size)
                if bool(xp.all(done)):
                    break
            a = xp.where(done[:, None], a, moved)
            before, last = last, value
    far = ~done
    if before is not None:
        far = far & replace(stopping, tol=_FAR * stopping.tol).moving(before, last, size)
    return a, int(xp.sum(far))


def _start(block: Block, rest: Sequence[Array]) -> Array:
    """Return equal weights for all components of a sample, whose model has the mass of the sample."""
    xp = block.backend.xp
    weight = reduce(mul, (xp.sum(factor, axis=0, dtype=xp.float64) for factor in rest))
    share = weight.shape[0] * xp.where(weight > 0, weight, xp.ones_like(weight))
    return xp.astype(block.sums()[:, None] / share, rest[0].dtype)
