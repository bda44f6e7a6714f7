"""Losses that are sums over entries, defined by three functions of an entry: the base of custom losses and of KL."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from gwntf.backends import Backend
from gwntf.core import Array
from gwntf.data import Block, Blocks, BlockState, Sums, SweepResult, Tile, TileResult, mode_product
from gwntf.geometry import SampleGraph
from gwntf.losses.base import FitState, Loss
from gwntf.losses.graph import GraphGradient, GraphTerm, gradient_of, ratio
from gwntf.losses.held import all_with_held, with_held
from gwntf.losses.penalty import Penalties, Penalty
from gwntf.losses.scheme import extrapolated_ratio
from gwntf.losses.simplex import SimplexLoss, column_masses, zero_mass
from gwntf.transport import positive, ratio_and_kl


class Entrywise(Loss):
    """Sum of d(x, x^) over the observed entries, minimised by multiplicative updates.

    With d' = repulsion - attraction, both nonnegative, the factors are updated in turn, samples last:

        A(n) <- A(n) * ((attraction_(n) A(-n) [+ mu V A]) / (repulsion_(n) A(-n) [+ mu D A] + l1 + l2 A(n))) ** power

    Data may be dense or sparse, in memory, streamed or on a cluster, of any order, and have missing entries.
    """

    # With a power that makes this an MM step the data term never rises; with a graph or penalties there is no guarantee
    power: ClassVar[float] = 1.0
    # Whether the repulsion is one everywhere and the attraction is zero where x is zero, as for KL. Then d(0, x^) = x^
    # and only the nonzero entries of sparse data are compared; otherwise sparse samples are made dense in batches.
    unit_repulsion: ClassVar[bool] = False

    @abstractmethod
    def value(self, xp: Any, x: Array, model: Array) -> Array:
        """Return d(x, x^) of every entry; x^ is positive."""

    @abstractmethod
    def attraction(self, xp: Any, x: Array, model: Array) -> Array:
        """Return the attraction of every entry: minus the negative part of the derivative of d in x^."""

    @abstractmethod
    def repulsion(self, xp: Any, x: Array, model: Array) -> Array:
        """Return the repulsion of every entry: the positive part of the derivative of d in x^."""

    def look(self, tile: Tile) -> TileResult:
        """Return the attraction of a tile, its repulsion unless that is one, and the loss of every sample.

        At missing entries both are one if the repulsion is one everywhere, as for a perfect model; otherwise zero.
        """
        xp, x, mask = tile.backend.xp, tile.x, tile.mask
        model = positive(xp, tile.y)
        values = self.value(xp, x, model)
        parts = [self.attraction(xp, x, model)]
        if not self.unit_repulsion:
            parts.append(self.repulsion(xp, x, model))
        if mask is not None:
            values = xp.where(mask, values, xp.zeros_like(values))
            parts = [xp.where(mask, part, xp.full_like(part, float(self.unit_repulsion))) for part in parts]
        costs = xp.sum(values.reshape(x.shape[0], -1), axis=1, dtype=xp.float64)
        return TileResult(tuple(parts), costs[None])

    def swept(
        self, block: Block, a: Array, rest: Sequence[Array], *, rows: bool = True, sums: bool = True
    ) -> SweepResult:
        """Compare a block with the model."""
        found = block.sweep(self.look, a, rest, rows=rows, sums=sums, zeros=not self.unit_repulsion)
        if found.mass is None:
            return found
        return found._replace(costs=found.costs + zero_mass(block, found, a, rest), mass=None)

    # --- methods of one block, run where it is stored ---

    def sizes(self, block: Block) -> Array:
        """Return the loss of every sample for the model that is constant at its mean."""
        xp, shape = block.backend.xp, block.shape[1:]
        ones = [block.backend.asarray([[1.0]] * size, block.dtype) for size in shape]
        mean = xp.astype(block.sums() / math.prod(shape), ones[0].dtype)[:, None]
        return self.swept(block, mean, ones, rows=False, sums=False).costs[0]

    def measure(self, block: Block, rest: Sequence[Array], kept: BlockState) -> tuple[BlockState, Sums]:
        """Return the loss of a block, and its attraction and repulsion summed over samples, for the other factors."""
        found = self.swept(block, kept.rows, rest, rows=False)
        xp = block.backend.xp
        sums = Sums(value=xp.sum(found.costs, axis=1), masses=xp.sum(kept.rows, axis=0), up=found.sums[0])
        if not self.unit_repulsion:
            sums["down"] = found.sums[1]
        return kept, sums

    def step(
        self,
        block: Block,
        rest: Sequence[Array],
        kept: BlockState,
        graph: SampleGraph | None,
        halo: Sequence[Array],
        *,
        penalty: Penalty,
        momentum: Any = None,
    ) -> tuple[BlockState, Sums]:
        """Update the rows of a block, extrapolate them, and measure the block there."""
        gradient = gradient_of(block.backend, kept.rows, graph, halo)
        past = rows = self.sample_step(block, kept.rows, rest, gradient, penalty, None)[0]
        if momentum is not None:
            rows = extrapolated_ratio(block.backend.xp, rows, kept.past, momentum)
        return self.measure(block, rest, BlockState(rows, past=past))

    def sample_step(
        self,
        block: Block,
        a: Array,
        rest: Sequence[Array],
        gradient: GraphGradient | None,
        penalty: Penalty,
        state: Any,
    ) -> tuple[Array, Array, Any]:
        xp, found = block.backend.xp, self.swept(block, a, rest, sums=False)
        down = column_masses(xp, rest) + xp.zeros_like(a) if self.unit_repulsion else found.rows[1]
        return ratio(xp, a, found.rows[0], down, gradient, penalty, self.power), found.costs[0], state

    # --- methods of all blocks, run in the process of the fit ---

    def started(self, blocks: Blocks, at: FitState, penalties: Penalties) -> FitState:
        found = super().started(blocks, at, penalties)
        return found._replace(kept=blocks.apply(remember_rows, at.kept)[0])

    def first(self, blocks: Blocks, at: FitState) -> FitState:
        kept, sums = blocks.run(self.measure, at.rest, at.kept)
        return at._replace(kept=kept, sums=sums)

    def advance(self, blocks: Blocks, at: FitState, graph: GraphTerm, penalties: Penalties, inputs: Array) -> FitState:
        """Update the factors in turn, samples last; the last pass also measures for the next iteration."""
        xp, rest, sums = blocks.backend.xp, list(at.rest), at.sums
        for mode in range(1, 1 if self.held == rest[0].shape[1] else 1 + len(rest)):
            if mode > 1:
                (sums,) = blocks.collect(blocks.run(self.measure, rest, at.kept)[1])
            old, factors = rest[mode - 1], [rest[0][:0], *rest]
            up = mode_product(sums["up"], factors, mode)
            if self.unit_repulsion:
                others = [factor for other, factor in enumerate(rest, start=1) if other != mode]
                down = sums["masses"] * column_masses(xp, others) + xp.zeros_like(old)
            else:
                down = mode_product(sums["down"], factors, mode)
            moved = ratio(xp, old, up, down, None, penalties.others, self.power)
            rest[mode - 1] = with_held(xp, moved, old, self.held)
        if self.plain:
            return self._rows_updated(blocks, at._replace(rest=rest), graph, penalties)
        momentum = blocks.backend.asarray(inputs, blocks.backend.dtype(rest[0]))[0]
        moved = [extrapolated_ratio(xp, new, old, momentum) for new, old in zip(rest, at.past, strict=True)]
        moved = all_with_held(xp, moved, rest, self.held)
        return self._rows_updated(blocks, at._replace(rest=moved, past=rest), graph, penalties, momentum=momentum)

    def retreat(
        self, blocks: Blocks, at: FitState, moved: FitState, graph: GraphTerm, penalties: Penalties
    ) -> FitState:
        """Update the rows again, with the other factors not extrapolated."""
        back = at._replace(rest=list(moved.past), past=list(moved.past), acceleration=at.acceleration.rejected())
        return self._rows_updated(blocks, back, graph, penalties)

    def _rows_updated(
        self, blocks: Blocks, at: FitState, graph: GraphTerm, penalties: Penalties, **options: Any
    ) -> FitState:
        """Update the sample factor, given all others, and measure."""
        options["penalty"] = penalties.samples
        kept, sums = blocks.run(self.step, at.rest, at.kept, graph.graphs, at.halo, **options)
        return at._replace(kept=kept, sums=sums)

    def numbers(self, blocks: Blocks, at: FitState, size: float) -> Array:  # noqa: ARG002
        return at.sums["value"]


def remember_rows(backend: Backend, kept: BlockState) -> tuple[BlockState, None]:  # noqa: ARG001
    """Return the state of a block with its rows as those to extrapolate from, for `Blocks.apply`."""
    return kept._replace(past=kept.rows), None


@dataclass(frozen=True, eq=False, kw_only=True)
class KullbackLeibler(SimplexLoss, Entrywise):
    """KL(X | X^); all factors are updated at once, since its majorizer separates over them."""

    unit_repulsion = True
    weight: float = 1.0  # b

    def value(self, xp: Any, x: Array, model: Array) -> Array:
        return xp.where(x > 0, x * xp.log(x / model), xp.zeros_like(x)) - x + model

    def attraction(self, xp: Any, x: Array, model: Array) -> Array:  # noqa: ARG002
        return x / model

    def repulsion(self, xp: Any, x: Array, model: Array) -> Array:  # noqa: ARG002
        return xp.ones_like(model)

    def look(self, tile: Tile) -> TileResult:
        """Return the attraction and the loss of a tile in one pass over it."""
        xp, mask, shape = tile.backend.xp, tile.mask, (tile.x.shape[0], -1)
        x, y = tile.x.reshape(*shape), (tile.y if mask is None else tile.y * mask).reshape(*shape)
        fused = tile.backend.fused_kl
        found, kl = ratio_and_kl(xp, x, y, axis=1) if fused is None else fused(x, y)
        found = found.reshape(*tile.x.shape)
        if mask is not None:
            found = xp.where(mask, found, xp.ones_like(found))
        return TileResult((found,), kl[None])

    def numbers(self, blocks: Blocks, at: FitState, size: float) -> Array:  # noqa: ARG002
        return self.weight * at.sums["rows"]

    def compare(self, block: Block, a: Array, rest: Sequence[Array], state: Any, *_: Any) -> tuple[SweepResult, Any]:
        return self.swept(block, a, rest), state
