"""Losses whose factors are updated as in the KL-CP problem b KL(Psi_bar | X^): transport, and KL with Psi_bar = X.

The columns of every factor but the sample factor sum to one, so sum(X^) = sum(A(samples)) and the EM majorizer
separates over the factors: all of them are updated at once from one pass over the data. The numerators are
w_n = A(n) * ((Psi_bar / X^)_(n) A(-n)).

Penalties: L1 and L2 apply to the sample factor. On the other factors, whose columns sum to one, |A|_1 is constant, so
only L2 applies and L1 is part of neither the update nor the objective.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
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
from gwntf.losses.held import all_with_held, with_held
from gwntf.losses.penalty import NO_PENALTY, Penalties, Penalty, l2_on_simplex
from gwntf.losses.quasi_newton import QuasiNewton, stepped
from gwntf.losses.scheme import Plain, Search
from gwntf.transport import positive

_RETREAT = Plain("mm", row_steps=5)
"""The update where no step of the quasi-Newton method lowers F."""

_RETREAT_EFFORT = 4
"""Multiple of the effort with which the data term is evaluated there, because warm starts belong to other factors."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SimplexLoss(Loss):
    """A data term that is b KL(Psi_bar | X^) as a function of the factors."""

    acceleration = Search
    plain: Plain | None = None  # The scheme of the papers
    held: int = 0

    @property
    @abstractmethod
    def weight(self) -> float:
        """b: beta times the number of transported modes; 1 for the KL loss."""

    @property
    def mass_curvature(self) -> float:
        """Curvature of the data term along the mass of a sample, in relation to that of the majorizer.

        It is zero where F is no flatter in other directions.
        """
        return 0.0

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

    def compare_target(self, block: Block, a: Array, rest: Sequence[Array], state: Any) -> SweepResult:
        """Compare the Psi_bar of the last `compare` of new samples with another model; only rows are computed."""
        raise NotImplementedError

    @property
    def inner_steps(self) -> int:
        """Updates of new samples for every `compare`; with more than one, Psi_bar is kept for `compare_target`."""
        return 1

    def sizes(self, block: Block) -> Array:
        return block.sums()  # mass of every sample

    # --- methods of one block, run where it is stored ---

    def visit(self, block: Block, rest: Sequence[Array], kept: BlockState, *, effort: int) -> tuple[BlockState, Sums]:
        """Compare a block with the model; keep the numerators of its rows, and return the sums over the block."""
        xp, a = block.backend.xp, kept.rows
        swept, state = self.compare(block, a, rest, kept.state, effort)
        costs, masses = xp.sum(swept.costs, axis=1), xp.sum(a, axis=0)
        sums = Sums(rows=costs, masses=masses, product=swept.sums[0])
        return kept._replace(own=a * swept.rows[0], state=state), sums

    def visit_updated(
        self,
        block: Block,
        rest: Sequence[Array],
        kept: BlockState,
        graph: SampleGraph | None,
        halo: Sequence[Array],
        *,
        effort: int,
        rule: str,
        penalty: Penalty,
    ) -> tuple[BlockState, Sums]:
        """Update the rows of a block by a rule, and return the result of `visit`."""
        moved, _ = self.move_rows(block.backend, kept, graph, halo, rule=rule, penalty=penalty)
        return self.visit(block, rest, moved, effort=effort)

    def visit_stepped(
        self, block: Block, rest: Sequence[Array], kept: BlockState, *, effort: int, inputs: Array
    ) -> tuple[BlockState, Sums]:
        """Take a step of the quasi-Newton method, and return the result of `visit`."""
        rows = stepped(block.backend, kept.rows, kept.past, kept.step, inputs)
        return self.visit(block, rest, kept._replace(rows=rows), effort=effort)

    def move_rows(
        self,
        backend: Backend,
        kept: BlockState,
        graph: SampleGraph | None,
        halo: Sequence[Array],
        *,
        rule: str,
        penalty: Penalty,
    ) -> tuple[BlockState, None]:
        """Update the rows of a block; without graph and penalty they become the numerators of the last pass."""
        gradient, rows = gradient_of(backend, kept.rows, graph, halo), kept.own
        if gradient is not None or penalty.present:
            rows = RULES[rule](backend.xp, kept.rows, kept.own, self.weight, gradient, penalty)
        return kept._replace(rows=rows), None

    def sample_step(
        self,
        block: Block,
        a: Array,
        rest: Sequence[Array],
        gradient: GraphGradient | None,
        penalty: Penalty,
        state: Any,
    ) -> tuple[Array, Array, Any]:
        """Return the numerator divided by the mass of the components, or `tied_root` with ties or a penalty.

        Both are repeated with the same Psi_bar, if it is kept.
        """
        xp, masses = block.backend.xp, column_masses(block.backend.xp, rest)
        free = gradient is None and not penalty.present
        swept, state = self.compare(block, a, rest, state, self.last_effort)
        costs = xp.sum(swept.costs, axis=0)
        for step in range(self.inner_steps):
            if step > 0:
                swept = self.compare_target(block, a, rest, state)
            w = a * swept.rows[0]
            a = w / masses if free else tied_root(xp, w, self.weight, masses, gradient, penalty)
        return a, costs, state

    # --- methods of all blocks, run in the process of the fit ---

    @property
    def last_effort(self) -> int:
        """Final `FitState.effort`; zero if the data term is exact."""
        return 0

    def first(self, blocks: Blocks, at: FitState) -> FitState:
        return self.evaluated(blocks, at, self.visit)

    def advance(self, blocks: Blocks, at: FitState, graph: GraphTerm, penalties: Penalties, inputs: Array) -> FitState:
        """Take a step of the quasi-Newton method; or update all factors at once, by the plain scheme."""
        if self.plain:
            return self._updated(blocks, at, graph, penalties, self.plain)
        xp, start, rest = blocks.backend.xp, 0, []
        moved = stepped(blocks.backend, xp.concat(at.rest), at.past, at.step, inputs)
        for old in at.rest:
            stop = start + old.shape[0]
            rest.append(with_held(xp, _on_simplex(xp, moved[start:stop], old), old, self.held))
            start = stop
        return self.evaluated(blocks, at._replace(rest=rest), self.visit_stepped, inputs=inputs)

    def shorter(self, at: FitState, rise: float) -> FitState | None:
        search: Search = at.acceleration
        return at._replace(acceleration=search.shortened(rise)) if search.length == 1 else None

    def retreat(
        self,
        blocks: Blocks,
        at: FitState,
        moved: FitState,  # noqa: ARG002
        graph: GraphTerm,
        penalties: Penalties,
    ) -> FitState:
        """Update all factors at once by the majorizer, which never raises F."""
        back = self._updated(blocks, at._replace(effort=_RETREAT_EFFORT * at.effort), graph, penalties, _RETREAT)
        return back._replace(effort=at.effort, acceleration=None)

    def prepared_step(
        self, blocks: Blocks, tried: Sequence[FitState], graph: GraphTerm, penalties: Penalties
    ) -> FitState:
        method = QuasiNewton(blocks, self.weight, graph, penalties, numerators, self.held, self.mass_curvature)
        return method.started(tried[0]) if len(tried) == 1 else method.continued(tried)

    def _updated(self, blocks: Blocks, at: FitState, graph: GraphTerm, penalties: Penalties, plain: Plain) -> FitState:
        """Update all factors at once from the numerators of the last pass, and run the next one."""
        options = {"rule": plain.update, "penalty": penalties.samples}
        moved = at._replace(rest=self.moved_rest(blocks, at, penalties.others, plain.update))
        for _ in range(plain.row_steps - 1 if graph.present else 0):
            kept, _ = blocks.apply(self.move_rows, moved.kept, graph.graphs, moved.halo, **options)
            moved = moved._replace(kept=kept, halo=graph.halo(kept))
        return self.evaluated(blocks, moved, self.visit_updated, graph.graphs, moved.halo, **options)

    def evaluated(
        self, blocks: Blocks, at: FitState, function: Callable[..., Any], *parts: PerBlock, **options: Any
    ) -> FitState:
        """Run one pass: a function of one block, such as `visit`, for every block."""
        kept, sums = blocks.run(function, at.rest, at.kept, *parts, effort=at.effort, **options)
        return at._replace(kept=kept, sums=sums)

    def moved_rest(
        self, blocks: Blocks, at: FitState, penalty: Penalty = NO_PENALTY, update: str = "mm"
    ) -> list[Array]:
        """Return all other factors updated: their numerators with columns divided by their sums, or with L2."""
        xp, found = blocks.backend.xp, numerators(at)
        if penalty.l2 == 0:
            moved = [_on_simplex(xp, w, old) for w, old in zip(found, at.rest, strict=True)]
        elif update == "mm":
            moved = [l2_on_simplex(xp, self.weight * w, penalty.l2) for w in found]
        else:
            pairs = zip(found, at.rest, strict=True)
            moved = [_ratio_on_simplex(xp, self.weight * w, old, penalty.l2) for w, old in pairs]
        return all_with_held(xp, moved, at.rest, self.held)

    def numbers(self, blocks: Blocks, at: FitState, size: float) -> Array:  # noqa: ARG002
        return at.sums["rows"]

    def scaled(self, blocks: Blocks, rest: Sequence[Array]) -> tuple[list[Array], None]:  # noqa: ARG002
        return list(rest), None  # the rules keep the scale

    @property
    def transported(self) -> tuple[int, ...]:
        """Modes with a transport term."""
        return ()


def numerators(at: FitState) -> list[Array]:
    """Return the numerators w_n of all factors but the first."""
    factors = [at.rest[0][:0], *at.rest]
    return [old * mode_product(at.sums["product"], factors, mode) for mode, old in enumerate(at.rest, 1)]


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
