"""Losses whose factors are updated as in the KL-CP problem b KL(Psi_bar | X^): transport, and KL with Psi_bar = X.

The columns of every factor but the sample factor sum to one, so sum(X^) = sum(A(samples)) and the EM majorizer
separates over the factors: all of them are updated at once from one pass over the data. The numerators are
w_n = A(n) * ((Psi_bar / X^)_(n) A(-n)).

Penalties: L1 and L2 apply to the sample factor. On the other factors, whose columns sum to one, |A|_1 is constant, so
only L2 applies and L1 is part of neither the update nor the objective.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import mul
from typing import Any

from gwntf.backends import Backend
from gwntf.core import Array
from gwntf.data import Block, Blocks, BlockState, PerBlock, Sums, SweepResult, mode_product
from gwntf.geometry import SampleGraph
from gwntf.losses.base import FitState, Loss
from gwntf.losses.graph import RULES, GraphGradient, GraphTerm, gradient_of, tied_root
from gwntf.losses.penalty import NO_PENALTY, Penalties, Penalty, l2_on_simplex
from gwntf.transport import positive


@dataclass(frozen=True, eq=False, kw_only=True)
class SimplexLoss(Loss):
    """A data term that is b KL(Psi_bar | X^) as a function of the factors."""

    update: str = "mm"  # Update rule of the factors; "mm" never raises F
    inner_iter: int = 1  # Updates of the sample factor per pass, with its numerator fixed, if there is a graph

    @property
    @abstractmethod
    def weight(self) -> float:
        """b: beta times the number of transported modes; 1 for the KL loss."""

    def for_new_samples(self) -> SimplexLoss:
        return self

    def effective_penalties(self, penalties: Penalties) -> Penalties:
        """Return the penalties without L1 on factors whose columns sum to one, where it is constant."""
        return replace(penalties, others=replace(penalties.others, l1=0.0))

    @abstractmethod
    def compare(
        self, block: Block, a: Array, rest: Sequence[Array], state: Any, effort: int, /
    ) -> tuple[SweepResult, Any]:
        """Compare a block with the model; return products of Psi_bar / X^, costs by sample, and the next state."""

    def sizes(self, block: Block) -> Array:
        return block.sums()  # mass of every sample

    # --- methods of one block, run where it is stored ---

    def visit(
        self,
        block: Block,
        rest: Sequence[Array],
        kept: BlockState,
        graph: SampleGraph | None = None,
        halo: Sequence[Array] = (),
        *,
        effort: int,
        move: bool,
        penalty: Penalty = NO_PENALTY,
    ) -> tuple[BlockState, Sums]:
        """Update the rows of a block if `move` is true, then compare it with the model."""
        xp = block.backend.xp
        a = self._moved(block.backend, kept, graph, halo, penalty) if move else kept.rows
        swept, state = self.compare(block, a, rest, kept.state, effort)
        costs, masses = xp.sum(swept.costs, axis=1), xp.sum(a, axis=0)
        return BlockState(a, a * swept.rows[0], state), Sums(rows=costs, masses=masses, product=swept.sums[0])

    def move_rows(
        self, backend: Backend, kept: BlockState, graph: SampleGraph | None, halo: Sequence[Array], *, penalty: Penalty
    ) -> tuple[BlockState, None]:
        """Update the rows of a block with the same numerator."""
        return kept._replace(rows=self._moved(backend, kept, graph, halo, penalty)), None

    def _moved(
        self, backend: Backend, kept: BlockState, graph: SampleGraph | None, halo: Sequence[Array], penalty: Penalty
    ) -> Array:
        """Return the updated rows; without graph and penalty they are the numerator of the last pass."""
        gradient = gradient_of(backend, kept.rows, graph, halo)
        if gradient is None and not penalty.present:
            return kept.own
        return RULES[self.update](backend.xp, kept.rows, kept.own, self.weight, gradient, penalty)

    def sample_step(
        self,
        block: Block,
        a: Array,
        rest: Sequence[Array],
        gradient: GraphGradient | None,
        penalty: Penalty,
        state: Any,
    ) -> tuple[Array, Array, Any]:
        """Return the numerator divided by the mass of the components, or `tied_root` with ties or a penalty."""
        xp = block.backend.xp
        swept, state = self.compare(block, a, rest, state, self.last_effort)
        w, masses = a * swept.rows[0], column_masses(xp, rest)
        plain = gradient is None and not penalty.present
        moved = w / masses if plain else tied_root(xp, w, self.weight, masses, gradient, penalty)
        return moved, xp.sum(swept.costs, axis=0), state

    # --- methods of all blocks, run in the process of the fit ---

    @property
    def last_effort(self) -> int:
        """Final `FitState.effort`; zero if the data term is exact."""
        return 0

    def first(self, blocks: Blocks, at: FitState) -> FitState:
        return self.measured(blocks, at)

    def advance(self, blocks: Blocks, at: FitState, graph: GraphTerm, penalties: Penalties) -> FitState:
        """Update all factors at once, and compare the data with the new model."""
        moved = at._replace(rest=self.moved_rest(blocks, at, penalties.others))
        for _ in range(self.inner_iter - 1 if graph.present else 0):
            kept, _ = blocks.apply(self.move_rows, moved.kept, graph.graphs, moved.halo, penalty=penalties.samples)
            moved = moved._replace(kept=kept, halo=graph.halo(kept))
        return self.measured(blocks, moved, graph.graphs, penalty=penalties.samples)

    def measured(
        self, blocks: Blocks, at: FitState, graphs: PerBlock | None = None, penalty: Penalty = NO_PENALTY
    ) -> FitState:
        """Run one pass; if `graphs` are given (one or None per block), the rows are updated first."""
        neighbors = () if graphs is None else (graphs, at.halo)
        options = {"effort": at.effort, "move": graphs is not None, "penalty": penalty}
        kept, sums = blocks.run(self.visit, at.rest, at.kept, *neighbors, **options)
        return at._replace(kept=kept, sums=sums)

    def moved_rest(self, blocks: Blocks, at: FitState, penalty: Penalty = NO_PENALTY) -> list[Array]:
        """Return all other factors updated: their numerators with columns divided by their sums, or with L2."""
        xp, factors = blocks.backend.xp, [at.rest[0][:0], *at.rest]
        numerators = [old * mode_product(at.sums["product"], factors, mode) for mode, old in enumerate(at.rest, 1)]
        if penalty.l2 == 0:
            return [_on_simplex(xp, w, old) for w, old in zip(numerators, at.rest, strict=True)]
        if self.update == "mm":
            return [l2_on_simplex(xp, self.weight * w, penalty.l2) for w in numerators]
        return [
            _ratio_on_simplex(xp, self.weight * w, old, penalty.l2) for w, old in zip(numerators, at.rest, strict=True)
        ]

    def numbers(self, blocks: Blocks, at: FitState, size: float) -> Array:  # noqa: ARG002
        return at.sums["rows"]

    def scaled(self, blocks: Blocks, rest: Sequence[Array]) -> tuple[list[Array], None]:  # noqa: ARG002
        return list(rest), None  # the rules keep the scale

    @property
    def transported(self) -> tuple[int, ...]:
        """Modes with a transport term."""
        return ()


def column_masses(xp: Any, factors: Sequence[Array]) -> Any:
    """Return the product of the column sums of some factors, for every component; 1.0 without factors."""
    return reduce(mul, (xp.sum(factor, axis=0) for factor in factors), 1.0)


def zero_mass(block: Block, swept: SweepResult, a: Array, rest: Sequence[Array]) -> Array:
    """Return the mass of the model outside of the compared entries, by mode and sample, in float64."""
    xp = block.backend.xp
    wide = [xp.astype(factor, xp.float64, copy=False) for factor in (a, *rest)]
    return xp.clip(wide[0] @ column_masses(xp, wide[1:]) - swept.mass, 0.0, None)


def _on_simplex(xp: Any, new: Array, old: Array) -> Array:
    """Divide columns by their sums; a component without mass keeps its old column."""
    sums = xp.sum(new, axis=0)
    safe = xp.where(sums > 0, sums, xp.ones_like(sums))
    return xp.where(sums > 0, new / safe, old)


def _ratio_on_simplex(xp: Any, c: Array, old: Array, l2: float) -> Array:
    """Return the multiplicative update for -sum(c log a) + (l2/2) |a|^2, with columns divided by their sums.

    The multiplier at a stationary point is sum(c) - l2 |a|^2. The fixed points of
    a <- (c + l2 |a|^2 a) / (sum(c) + l2 a) are stationary.
    """
    up = c + l2 * xp.sum(old * old, axis=0) * old
    return _on_simplex(xp, up / positive(xp, xp.sum(c, axis=0) + l2 * old), old)
