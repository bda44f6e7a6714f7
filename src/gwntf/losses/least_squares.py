"""The least-squares loss 1/2 |X - X^|^2 of NMF, GNMF, NCP and GNCP, minimised by multiplicative updates.

In one factor the data term and the penalties are quadratic or linear, so the ratio of the negative to the positive part
of the gradient is an MM step for a factor with the others fixed. Without missing entries the model is never formed:
|x - x^|^2 = |x|^2 - 2 <a, X_(1) A(-1)> + a G a', and the update of the rows uses the same product, so both need one
pass over the data. Missing entries are filled in from the current model (the E step of an EM algorithm), and the value
counts observed entries only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import mul
from typing import Any

from gwntf.core import Array
from gwntf.data import Block, Blocks, BlockState, DataTensor, Sums, Tile, TileResult, mode_product
from gwntf.geometry import SampleGraph
from gwntf.losses.base import FitState, Loss
from gwntf.losses.graph import GraphGradient, GraphTerm, gradient_of, ratio, ratio_terms
from gwntf.losses.penalty import Penalties, Penalty


@dataclass(frozen=True, eq=False)
class LeastSquares(Loss):
    """1/2 |X - X^|^2, over the observed entries."""

    complete: bool = True  # Whether every entry was observed

    def prepared(self, data: DataTensor) -> LeastSquares:
        return replace(self, complete=data.complete)

    # --- methods of one block, run where it is stored ---

    def sizes(self, block: Block) -> Array:
        return block.half_squares()

    def measure(self, block: Block, rest: Sequence[Array], kept: BlockState) -> tuple[BlockState, Sums]:
        """Return the sums over a block for the value and for the next update of the other factors."""
        backend, a = block.backend, kept.rows
        if not self.complete:
            return kept, self._measured_filled(block, rest, a)
        product = block.row_product(rest)
        cross = backend.xp.sum(a * product, dtype=backend.xp.float64)
        return kept, Sums(data=block.sum_products(a, rest, 1), gram=gram_of(backend.xp, a), cross=cross)

    def _measured_filled(self, block: Block, rest: Sequence[Array], a: Array) -> Sums:
        xp = block.backend.xp
        found = block.sweep(fill, a, rest, rows=False)
        return Sums(data=found.sums[0], gram=gram_of(xp, a), value=xp.sum(found.costs))

    def products(self, block: Block, rest: Sequence[Array], kept: BlockState, *, mode: int) -> tuple[BlockState, Sums]:
        return kept, Sums(data=block.sum_products(kept.rows, rest, mode))

    def step(
        self,
        block: Block,
        rest: Sequence[Array],
        kept: BlockState,
        graph: SampleGraph | None,
        halo: Sequence[Array],
        *,
        grams: Array,
        penalty: Penalty,
    ) -> tuple[BlockState, Sums]:
        """Update the rows of a block, given G, and return the result of `measure` at the new rows, in one pass."""
        backend, xp, a = block.backend, block.backend.xp, kept.rows
        down = a @ backend.asarray(grams, block.dtype)
        gradient = gradient_of(backend, a, graph, halo)
        if not self.complete:
            found = block.sweep(fill, a, rest, sums=False)
            moved = ratio(xp, a, found.rows[0], down, gradient, penalty)
            return BlockState(moved), self._measured_filled(block, rest, moved)
        moved, data, cross = block.ratio_step(a, rest, *ratio_terms(xp, a, down, gradient, penalty))
        return BlockState(moved), Sums(data=data, gram=gram_of(xp, moved), cross=cross)

    def sample_step(
        self,
        block: Block,
        a: Array,
        rest: Sequence[Array],
        gradient: GraphGradient | None,
        penalty: Penalty,
        state: Any,
    ) -> tuple[Array, Array, Any]:
        """Update new samples; without missing entries X_(1) A(-1) is constant and kept in the state."""
        xp = block.backend.xp
        grams = reduce(mul, (gram_of(xp, factor) for factor in rest))
        if self.complete:
            product, sizes = state or (block.row_product(rest), self.sizes(block))
            wide = xp.astype(a, xp.float64, copy=False)
            values = sizes + xp.sum(wide * (0.5 * (wide @ grams) - xp.astype(product, xp.float64, copy=False)), axis=1)
            values, state = xp.clip(values, 0.0, None), (product, sizes)
        else:
            found = block.sweep(fill, a, rest, sums=False)
            product, values = found.rows[0], found.costs[0]
        down = a @ xp.astype(grams, a.dtype, copy=False)
        return ratio(xp, a, product, down, gradient, penalty), values, state

    # --- methods of all blocks, run in the process of the fit ---

    def first(self, blocks: Blocks, at: FitState) -> FitState:
        kept, sums = blocks.run(self.measure, at.rest, at.kept)
        grams = tuple(gram_of(blocks.backend.xp, factor) for factor in at.rest)
        return at._replace(kept=kept, sums=sums, carried=grams)

    def advance(self, blocks: Blocks, at: FitState, graph: GraphTerm, penalties: Penalties) -> FitState:
        xp, rest, data = blocks.backend.xp, list(at.rest), at.sums["data"]
        grams = [at.sums["gram"], *at.carried]
        for mode in range(1, 1 + len(rest)):
            if 0 not in data and mode not in data:
                (found,) = blocks.collect(blocks.run(self.products, rest, at.kept, mode=mode)[1])
                data = found["data"]
            old = rest[mode - 1]
            product = mode_product(data, [old[:0], *rest], mode)
            others = xp.astype(other_grams(grams, mode), old.dtype, copy=False)
            rest[mode - 1] = ratio(xp, old, product, old @ others, None, penalties.others)
            grams[mode] = gram_of(xp, rest[mode - 1])
        options = {"grams": other_grams(grams, 0), "penalty": penalties.samples}
        kept, sums = blocks.run(self.step, rest, at.kept, graph.graphs, at.halo, **options)
        return at._replace(kept=kept, rest=rest, sums=sums, carried=tuple(grams[1:]))

    def numbers(self, blocks: Blocks, at: FitState, size: float) -> Array:
        """Return the value, computed from Gram matrices if no entries are missing."""
        xp, sums = blocks.backend.xp, at.sums
        if not self.complete:
            return sums["value"].reshape(1)
        gram = sums["gram"]
        value = size + 0.5 * xp.sum(gram * other_grams([gram, *at.carried], 0)) - sums["cross"]
        return xp.clip(value, 0.0, None).reshape(1)


def fill(tile: Tile) -> TileResult:
    """Fill the missing entries of a tile from the model; its costs are 1/2 |x - x^|^2 of every sample."""
    xp = tile.backend.xp
    filled = tile.x if tile.mask is None else xp.where(tile.mask, tile.x, tile.y)
    residual = (filled - tile.y).reshape(tile.x.shape[0], -1)
    return TileResult((filled,), 0.5 * xp.sum(residual * residual, axis=1, dtype=xp.float64)[None])


def gram_of(xp: Any, factor: Array) -> Array:
    """Return A(n)' A(n), in float64."""
    wide = xp.astype(factor, xp.float64, copy=False)
    return wide.T @ wide


def other_grams(grams: Sequence[Array], mode: int) -> Array:
    """Return G = A(-n)' A(-n), the entrywise product of the Gram matrices of all factors but one."""
    return reduce(mul, (gram for other, gram in enumerate(grams) if other != mode))
