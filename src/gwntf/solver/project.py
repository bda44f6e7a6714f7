"""Embedding of new samples with the other factors fixed, with or without edges to training samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import mul
from typing import Any

import numpy as np

from gwntf.core import Array
from gwntf.data import Block, DataTensor
from gwntf.geometry import SampleTies, Ties
from gwntf.losses import NO_PENALTY, GraphGradient, Loss, Momentum, Penalties, Penalty, tie_penalty
from gwntf.losses.scheme import BOUND_GROWTH, FIRST_WEIGHT, GROWTH, SHRINK, extrapolated_ratio
from gwntf.solver.problem import FIRST_TEST, FLAT, Stopping

_BATCH_ENTRIES = 2**22

_FAR = 10
"""A sample is far from converged if its predicted remaining decrease is more than this multiple of `tol`."""

_COMPACT = 0.75
"""Fraction of the samples of a batch still going at or below which the others are removed."""


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
    """Minimise over the rows of all samples of a batch; samples that have arrived are removed from the batch."""
    backend, xp = block.backend, block.backend.xp
    result = _start(block, rest)
    going = _Going(block, backend.asarray(np.arange(block.shape[0])), result, loss.sizes(block), ties)
    far = 0
    with backend.quiet():
        for _ in range(stopping.max_iter):
            going = going.stepped(loss, rest, penalty)
            remaining = going.remaining(stopping)
            wanted = stopping.tolerance(going.curve[-1], going.size)
            arrived = (remaining <= wanted) & (stopping.tol > 0)
            result[going.samples] = going.past
            far = int(xp.sum(remaining > _FAR * wanted))
            count = int(xp.sum(~arrived))
            if count == 0:
                return result, 0
            if count <= _COMPACT * len(arrived):
                going = going.only(xp.nonzero(~arrived)[0])
    return result, far if stopping.tol > 0 else 0


@dataclass(frozen=True, eq=False)
class _Going:
    """Samples of a batch that have not arrived; each has its own extrapolation."""

    block: Block
    samples: Array  # (n,) array: their indices in the batch
    rows: Array  # (n, R) array: where the next step evaluates the objective
    size: Array  # (n,) array: reference of the tolerance
    ties: SampleTies | None
    past: Any = None  # (n, R) array: the last rows before extrapolation; their objective is at most that of the curve
    momentum: Any = None  # (n, 1) arrays: weight and bound, as in `Momentum`
    curve: tuple[Array, ...] = ()  # (n,) arrays: the objective after every step, never increasing
    state: Any = None

    def stepped(self, loss: Loss, rest: Sequence[Array], penalty: Penalty) -> _Going:
        """Evaluate the objective, and update the rows of samples whose objective did not rise; take others back."""
        backend, xp, ties, a = self.block.backend, self.block.backend.xp, self.ties, self.rows
        gradient = None if ties is None else GraphGradient(ties.weight, ties.neighbor_sum, ties.degree)
        moved, value, state = loss.sample_step(self.block, a, rest, gradient, penalty, self.state)
        if ties is not None:
            value = value + tie_penalty(backend, a, ties)
        if penalty.present:
            value = value + penalty.of_rows(xp, a)
        if self.past is None:
            start = Momentum(*(xp.full_like(a[:, :1], number) for number in Momentum(FIRST_WEIGHT)))
            return replace(self, rows=moved, past=moved, momentum=start, curve=(value,), state=state)
        before, (weight, bound) = self.curve[-1], self.momentum
        better = (value <= before)[:, None]
        old, past = self.past, xp.where(better, moved, self.past)
        rows = xp.where(better, extrapolated_ratio(xp, past, old, weight), past)
        momentum = Momentum(
            xp.where(better, -xp.maximum(-bound, -GROWTH * weight), weight / SHRINK),
            xp.where(better, xp.clip(BOUND_GROWTH * bound, None, loss.largest_momentum), weight),
        )
        curve = (*self.curve, xp.where(better[:, 0], value, before))
        return replace(self, rows=rows, past=past, momentum=momentum, curve=curve, state=state)

    def remaining(self, stopping: Stopping) -> Array:
        """Return `Stopping.remaining` of every sample."""
        xp, curve = self.block.backend.xp, self.curve
        last = len(curve) - 1
        if last < FIRST_TEST:
            return xp.full_like(curve[0], math.inf)
        first, second = curve[last // 4] - curve[last // 2], curve[last // 2] - curve[last]
        flat = first + second <= FLAT * stopping.tolerance(curve[last], self.size)
        slope = xp.where(first > second, first - second, xp.ones_like(first))
        rest = xp.where(first > second, second * second / slope, xp.full_like(first, math.inf))
        return xp.where(flat, second, rest)

    def only(self, kept: Array) -> _Going:
        """Return some of the samples."""
        return _Going(
            self.block.take(kept),
            self.samples[kept],
            self.rows[kept],
            self.size[kept],
            None if self.ties is None else self.ties.take(kept),
            self.past[kept],
            Momentum(*(part[kept] for part in self.momentum)),
            tuple(values[kept] for values in self.curve),
            self.block.taken_state(self.state, kept),
        )


def _start(block: Block, rest: Sequence[Array]) -> Array:
    """Return equal weights for all components of a sample, whose model has the mass of the sample."""
    xp = block.backend.xp
    weight = reduce(mul, (xp.sum(factor, axis=0, dtype=xp.float64) for factor in rest))
    share = weight.shape[0] * xp.where(weight > 0, weight, xp.ones_like(weight))
    return xp.astype(block.sums()[:, None] / share, rest[0].dtype)
