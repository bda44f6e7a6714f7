"""The least-squares loss 1/2 |X - X^|^2, over the observed entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import mul
from typing import Any

from gwntf.backends import Backend
from gwntf.core import Array
from gwntf.data import Block, Blocks, BlockState, DataTensor, Sums, Tile, TileResult, mode_product
from gwntf.geometry import SampleGraph
from gwntf.losses.base import FitState, Loss
from gwntf.losses.graph import GraphGradient, GraphTerm, gradient_of, ratio
from gwntf.losses.held import all_with_held, with_held
from gwntf.losses.penalty import Penalties, Penalty
from gwntf.losses.scheme import Plain, extrapolated_line
from gwntf.losses.sweeps import sweep_rows, sweep_unit_columns, unit_columns

_SWEEPS, _NEW_SAMPLE_SWEEPS = 3, 10
"""Sweeps over a factor for every product with the data; new samples need one product only."""


@dataclass(frozen=True, eq=False)
class LeastSquares(Loss):
    """1/2 |X - X^|^2, over the observed entries.

    Factors are updated by sweeps (`sweeps`). Columns of factors without a penalty have length one, except those of the
    samples: otherwise scale could be moved out of the sample factor, and its graph term and penalties would vanish.
    """

    largest_momentum = 1.0
    complete: bool = True  # Whether every entry was observed
    plain: Plain | None = None  # Multiplicative updates instead, without a constraint on the columns
    held: int = 0

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
        grams, gradient = backend.asarray(grams, block.dtype), gradient_of(backend, a, graph, halo)
        update = partial(self._updated, backend, a, grams, gradient, penalty)
        if not self.complete:
            moved = update(slice(None), block.sweep(fill, a, rest, sums=False).rows[0])
            return BlockState(moved), self._measured_filled(block, rest, moved)
        moved, data, cross = block.row_step(rest, update)
        return BlockState(moved), Sums(data=data, gram=gram_of(xp, moved), cross=cross)

    def _updated(
        self,
        backend: Backend,
        a: Array,
        grams: Array,
        gradient: GraphGradient | None,
        penalty: Penalty,
        rows: slice,
        product: Array,
    ) -> Array:
        """Update some rows, given their X_(1) A(-1).

        The sweeps minimise a majorizer of the graph term: since D + V is positive semidefinite,
        -a'Va <= -2 (V a0)'a + (a - a0)'D(a - a0) + const, with equality at the current a0.
        """
        own = None if gradient is None else gradient.of(rows)
        if self.plain:
            return ratio(backend.xp, a[rows], product, a[rows] @ grams, own, penalty)
        if own is not None:
            own = GraphGradient(own.weight, own.neighbor_sum + own.degree * a[rows], 2 * own.degree)
        return swept_rows(backend, a[rows], product, grams, own, penalty, _SWEEPS)

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
        backend, xp = block.backend, block.backend.xp
        grams = reduce(mul, (gram_of(xp, factor) for factor in rest))
        if self.complete:
            product, sizes = state or (block.row_product(rest), self.sizes(block))
            wide = xp.astype(a, xp.float64, copy=False)
            values = sizes + xp.sum(wide * (0.5 * (wide @ grams) - xp.astype(product, xp.float64, copy=False)), axis=1)
            values, state = xp.clip(values, 0.0, None), (product, sizes)
        else:
            found = block.sweep(fill, a, rest, sums=False)
            product, values = found.rows[0], found.costs[0]
        grams = xp.astype(grams, a.dtype, copy=False)
        return swept_rows(backend, a, product, grams, gradient, penalty, _NEW_SAMPLE_SWEEPS), values, state

    # --- methods of all blocks, run in the process of the fit ---

    def first(self, blocks: Blocks, at: FitState) -> FitState:
        kept, sums = blocks.run(self.measure, at.rest, at.kept)
        grams = tuple(gram_of(blocks.backend.xp, factor) for factor in at.rest)
        return at._replace(kept=kept, sums=sums, carried=grams)

    def started(self, blocks: Blocks, at: FitState, penalties: Penalties) -> FitState:
        """Scale the columns of the other factors to length one, unless they have a penalty."""
        if self.plain or penalties.others.present:
            return super().started(blocks, at, penalties)
        rest, scale = self.scaled(blocks, at.rest)
        kept, _ = blocks.apply(scale_rows, at.kept, scale=blocks.backend.to_numpy(scale))
        return at._replace(kept=kept, rest=rest, past=list(rest))

    def advance(self, blocks: Blocks, at: FitState, graph: GraphTerm, penalties: Penalties, inputs: Array) -> FitState:
        xp, past = blocks.backend.xp, self._updated_rest(blocks, at, penalties.others)
        if self.plain:
            return self._rows_updated(blocks, at._replace(rest=past), graph, penalties)
        weight = blocks.backend.asarray(inputs, blocks.backend.dtype(past[0]))[0]
        rest = [extrapolated_line(xp, new, old, weight) for new, old in zip(past, at.past, strict=True)]
        if not penalties.others.present:
            rest = all_with_held(xp, [unit_columns(xp, factor)[0] for factor in rest], at.rest, self.held)
        return self._rows_updated(blocks, at._replace(rest=rest, past=past), graph, penalties)

    def retreat(
        self, blocks: Blocks, at: FitState, moved: FitState, graph: GraphTerm, penalties: Penalties
    ) -> FitState:
        """Update the rows again, with the other factors not extrapolated."""
        back = at._replace(rest=list(moved.past), past=list(moved.past), acceleration=at.acceleration.rejected())
        return self._rows_updated(blocks, back, graph, penalties)

    def _rows_updated(self, blocks: Blocks, at: FitState, graph: GraphTerm, penalties: Penalties) -> FitState:
        """Update the sample factor, given all others, and measure."""
        grams = [at.sums["gram"], *(gram_of(blocks.backend.xp, factor) for factor in at.rest)]
        options = {"grams": other_grams(grams, 0), "penalty": penalties.samples}
        kept, sums = blocks.run(self.step, at.rest, at.kept, graph.graphs, at.halo, **options)
        return at._replace(kept=kept, sums=sums, carried=tuple(grams[1:]))

    def _updated_rest(self, blocks: Blocks, at: FitState, penalty: Penalty) -> list[Array]:
        """Return all other factors, updated in turn from the products of the data with the sample factor.

        The products of dense data serve all modes, those of sparse data one mode.
        """
        xp, rest, data = blocks.backend.xp, list(at.rest), at.sums["data"]
        if self.held == rest[0].shape[1]:
            return rest
        grams = [at.sums["gram"], *at.carried]
        for mode in range(1, 1 + len(rest)):
            if 0 not in data and mode not in data:
                (found,) = blocks.collect(blocks.run(self.products, rest, at.kept, mode=mode)[1])
                data = found["data"]
            product = mode_product(data, [rest[0][:0], *rest], mode)
            others = xp.astype(other_grams(grams, mode), product.dtype, copy=False)
            rest[mode - 1] = self._updated_factor(blocks.backend, rest[mode - 1], product, others, penalty)
            grams[mode] = gram_of(xp, rest[mode - 1])
        return rest

    def _updated_factor(self, backend: Backend, old: Array, product: Array, grams: Array, penalty: Penalty) -> Array:
        """Update the columns of a factor that are not held; the others enter the linear term of their sweeps."""
        held, xp = self.held, backend.xp
        if self.plain:
            return with_held(xp, ratio(xp, old, product, old @ grams, None, penalty), old, held)
        free = old
        if held:
            free, product = old[:, held:], product[:, held:] - old[:, :held] @ grams[:held, held:]
            grams = grams[held:, held:]
        if penalty.present:
            moved = swept_rows(backend, free, product, grams, None, penalty, _SWEEPS)
        else:
            moved = sweep_unit_columns(backend, free, product, grams, _SWEEPS)
        return xp.concat([old[:, :held], moved], axis=1) if held else moved

    def numbers(self, blocks: Blocks, at: FitState, size: float) -> Array:
        """Return the value, computed from Gram matrices if no entries are missing."""
        xp, sums = blocks.backend.xp, at.sums
        if not self.complete:
            return sums["value"].reshape(1)
        gram = sums["gram"]
        value = size + 0.5 * xp.sum(gram * other_grams([gram, *at.carried], 0)) - sums["cross"]
        return xp.clip(value, 0.0, None).reshape(1)


def scale_rows(backend: Any, kept: BlockState, *, scale: Array) -> tuple[BlockState, None]:
    """Multiply the columns of the rows of a block, for `Blocks.apply`."""
    rows = kept.rows * backend.asarray(scale, backend.dtype(kept.rows))
    return kept._replace(rows=rows), None


def swept_rows(
    backend: Backend,
    a: Array,
    product: Array,
    grams: Array,
    gradient: GraphGradient | None,
    penalty: Penalty,
    count: int,
) -> Array:
    """Sweep over rows with the quadratic penalties mu (d/2 |a|^2 - s a') and l1 |a|_1 + l2/2 |a|^2."""
    linear, curvature = product - penalty.l1, penalty.l2
    if gradient is not None:
        linear = linear + gradient.weight * gradient.neighbor_sum
        curvature = gradient.weight * gradient.degree + curvature
    return sweep_rows(backend, a, linear, grams, curvature, count)


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
