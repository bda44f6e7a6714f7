"""The quasi-Newton method of transport and KL: steps in the square roots of the factors (L-BFGS).

With A(n) = T * T, entry by entry, factors stay nonnegative by themselves, columns on the simplex become columns of
Euclidean length one, and the majorizer b KL(Psi_bar | X^) of the data term has nearly constant curvature in T: 4 b for
the sample factor, and 4 b m for a column of another factor whose component has the mass m. The gradient of F costs
nothing beyond the numerators w_n of the factors: in the sample factor it is 2 b (T - w / T), plus
2 T (mu (D - V) A + l1 + l2 A) for the graph and the penalties. The inverse of the Hessian of F is estimated from the
last pairs of a step s and a change y of the gradient (J. Nocedal, *Updating quasi-Newton matrices with limited
storage*, Mathematics of Computation 35, 1980), starting from the inverse of P: the curvature of the majorizer, whose
data term is divided by a scale, with the graph term, which is solved for by `graph_solve`. Transport makes F flat where
mass only has to move, but not along the mass of a sample: without a graph, P has the curvature of that direction too.

Every factor keeps its history, a (2 m + 2, n, R) array of m steps, m changes, the gradient of the data term and the
gradient g of F. The next step is
-(r + sum_j c_j s_j) with r = P^-1 (g - sum_j a_j y_j), where the coefficients a and c follow from inner products alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import Backend
from gwntf.core import Array, FloatArray
from gwntf.data import Blocks, BlockState, PerBlock, Sums
from gwntf.geometry import SampleGraph
from gwntf.losses.base import FitState
from gwntf.losses.graph import GraphTerm, gradient_of
from gwntf.losses.graph_solve import System, graph_solve, solution, step_count
from gwntf.losses.held import without_held
from gwntf.losses.penalty import Penalties, Penalty
from gwntf.losses.scheme import Search
from gwntf.transport import positive

_PAIRS, _PAIR_BYTES = 6, 2**29
"""Number of pairs, and memory in bytes for those of the sample factor above which there are fewer, but at least one."""

_NOT_CURVED = 1e-8
"""Cosine between step and change at or below which a pair is not used."""

_SCALES = (0.1, 1e4)
"""Limits of the scale."""

_LIGHT = 1e-9
"""Least mass of a component for its curvature, in relation to the mass of all."""


class Point(NamedTuple):
    """A factor, or several of them one below the other, and the gradient of F in the square root."""

    root: Array  # (n, R) array: T
    data: Array  # (n, R) array: part of the gradient from the data term
    gradient: Array  # (n, R) array: the gradient, tangential to the sphere where columns have length one
    curvature: Any  # Number or (n, R) array: curvature of the majorizer of the data term

    @classmethod
    def of_history(cls, xp: Any, a: Array, history: Array) -> Point:
        """Return the point at which the history ends; its curvature is not kept."""
        return cls(xp.sqrt(a), history[-2], history[-1], None)


def row_point(
    backend: Backend,
    kept: BlockState,
    graph: SampleGraph | None,
    halo: Sequence[Array],
    weight: float,
    penalty: Penalty,
) -> Point:
    """Return the point of the rows of a block."""
    xp, a = backend.xp, kept.rows
    root = xp.sqrt(a)
    total = data = 2 * weight * (root - kept.own / positive(xp, root))
    near = gradient_of(backend, a, graph, halo)
    if near is not None:
        total = total + 2 * near.weight * root * (near.degree * a - near.neighbor_sum)
    if penalty.present:
        total = total + 2 * root * penalty.gradient(a)
    return Point(root, data, total, 4 * weight)


def column_point(
    xp: Any, factors: Sequence[Array], numerators: Sequence[Array], weight: float, l2: float, held: int
) -> Point:
    """Return the point of factors whose columns sum to one; held components have no gradient."""
    masses = [xp.sum(numerator, axis=0) for numerator in numerators]
    light = _LIGHT * xp.sum(masses[0])
    a, mass = xp.concat(factors), _below(xp, masses, factors)
    root = xp.sqrt(a)
    total = data = 2 * weight * (root * mass - xp.concat(numerators) / positive(xp, root))
    if l2 > 0:
        squares = _below(xp, [xp.sum(factor * factor, axis=0) for factor in factors], factors)
        total = total + 2 * l2 * root * (a - squares)
    data, total = (without_held(xp, part, held) for part in (data, total))
    return Point(root, data, total, positive(xp, 4 * weight * xp.maximum(mass, light)))


def _below(xp: Any, rows: Sequence[Array], factors: Sequence[Array]) -> Array:
    """Repeat one row for every factor in the shape of the factors, one below the other."""
    return xp.concat([xp.broadcast_to(row, factor.shape) for row, factor in zip(rows, factors, strict=True)])


def recorded(
    xp: Any,
    history: Array | None,
    points: Sequence[Point],
    slots: Sequence[int],
    pairs: int,
    *,
    by_mass: bool = False,
) -> tuple[Array, Sums]:
    """Write the pairs of the first point with each of the others to slots of the history, and the last gradients.

    Also return the inner products of what was written with the history, and two sums whose ratio is the scale; with
    `by_mass`, that of the directions which do not change the mass of a row.
    """
    start, *others = points
    last, written = points[-1], list[int]()
    if history is None:
        history = xp.stack([xp.zeros_like(start.root)] * (2 * pairs + 2))
    step, change = last.root - start.root, last.data - start.data  # before the history is written to
    for slot, point in zip(slots, others, strict=True):
        history[slot] = point.root - start.root
        history[pairs + slot] = point.gradient - start.gradient
        written += [slot, pairs + slot]
    history[-2], history[-1] = last.data, last.gradient
    flat = history.reshape(history.shape[0], -1)
    products = xp.stack([flat @ flat[k] for k in (*written, -1)])
    if by_mass:
        step, change = (part - _mass_part(xp, last.root, part) for part in (step, change))
    scale = [(part * change).reshape(-1).sum() for part in (step, change / last.curvature)]
    return history, Sums(products=xp.astype(products, xp.float64), scale=xp.astype(xp.stack(scale), xp.float64))


def _mass_part(xp: Any, root: Array, rows: Array) -> Array:
    """Return the projection of every row on the direction in which its mass changes fastest, that of the root."""
    squares = xp.sum(root * root, axis=1, keepdims=True)
    return root * (xp.sum(root * rows, axis=1, keepdims=True) / positive(xp, squares))


def right_side(backend: Backend, history: Array, first: FloatArray) -> Array:
    """Return g - sum_j a_j y_j."""
    weights = backend.asarray(np.concatenate([-first, [0.0, 1.0]]), backend.dtype(history))
    return _combined(history[len(first) :], weights)


def products_with(xp: Any, history: Array, step: Array) -> Array:
    """Return the inner products of the changes and of the gradient with r, in float64."""
    vectors = history[history.shape[0] // 2 - 1 :]
    return xp.astype(vectors.reshape(vectors.shape[0], -1) @ step.reshape(-1), xp.float64, copy=False)


def stepped(backend: Backend, a: Array, history: Array, step: Array, inputs: Array) -> Array:
    """Return a factor after the step; `inputs` are the length and the coefficients c of `Search`."""
    inputs = backend.asarray(inputs, backend.dtype(a))
    length, weights = inputs[0], inputs[1:]
    root = backend.xp.sqrt(a) - length * (step + _combined(history[: weights.shape[0]], weights))
    return root * root


def _combined(vectors: Array, weights: Array) -> Array:
    """Return the sum of m vectors, (m, n, R), multiplied by weights."""
    return (weights @ vectors.reshape(vectors.shape[0], -1)).reshape(*vectors.shape[1:])


def first_weights(gram: FloatArray, order: NDArray[np.int_]) -> FloatArray:
    """Return the coefficients a, given the inner products of the history and its slots, the oldest pair first."""
    pairs, products = len(order), gram.tolist()
    weights, newer = [0.0] * pairs, list[int]()
    for i in reversed(_used(products, order.tolist())):
        explained = sum(products[i][pairs + j] * weights[j] for j in newer)
        weights[i] = (products[i][-1] - explained) / products[i][pairs + i]
        newer.append(i)
    return np.array(weights)


def last_weights(gram: FloatArray, order: NDArray[np.int_], first: FloatArray, with_step: FloatArray) -> FloatArray:
    """Return the coefficients c, also from the inner products of the changes with r."""
    pairs, products = len(order), gram.tolist()
    weights, older = [0.0] * pairs, list[int]()
    for i in _used(products, order.tolist()):
        explained = float(with_step[i]) + sum(products[j][pairs + i] * weights[j] for j in older)
        weights[i] = float(first[i]) - explained / products[i][pairs + i]
        older.append(i)
    return np.array(weights)


def _used(products: list[list[float]], order: list[int]) -> list[int]:
    """Return the slots of the pairs with positive curvature, the oldest first; Python numbers are faster for so few."""
    pairs = len(order)
    squares = [products[i][i] * products[pairs + i][pairs + i] for i in range(pairs)]
    return [i for i in order if products[i][pairs + i] > _NOT_CURVED * math.sqrt(squares[i])]


# --- functions of one block, for `Blocks.apply` ---


def without_history(backend: Backend, kept: BlockState) -> tuple[BlockState, None]:  # noqa: ARG001
    """Return the state of a block without history."""
    return kept._replace(past=None), None


def learn_rows(
    backend: Backend,
    graph: SampleGraph | None,
    *states: Any,
    weight: float,
    penalty: Penalty,
    slots: Sequence[int],
    pairs: int,
    owned: bool,
    by_mass: bool,
) -> tuple[BlockState, Sums]:
    """Return the last of some states of a block with its history; each state is followed by its halo rows."""
    xp, kept, halos = backend.xp, states[::2], states[1::2]
    points = [
        row_point(backend, part, graph, halo, weight, penalty)
        for part, halo in zip(kept, halos, strict=True)
        if part is not kept[0] or part.past is None
    ]
    history = kept[0].past
    if history is not None:
        points.insert(0, Point.of_history(xp, kept[0].rows, history))
        history = history if owned else xp.asarray(history, copy=True)
    history, sums = recorded(xp, history, points, slots, pairs, by_mass=by_mass)
    return kept[-1]._replace(past=history), sums


def row_system(
    backend: Backend, kept: BlockState, *, first: FloatArray, curvature: float, penalty: Penalty
) -> tuple[Array, Array]:
    """Return the right side g - sum_j a_j y_j of a block, and the curvature of all terms but that of the graph."""
    base = 4 * (curvature + penalty.l1 + 2 * penalty.l2 * kept.rows)
    return right_side(backend, kept.past, first), base


def solve_rows(
    backend: Backend, kept: BlockState, system: System | Array | None, *, along_mass: float, **options: Any
) -> tuple[BlockState, Sums]:
    """Return the state of a block with r, which is the solution of the system if there is a graph.

    Without one, r solves (B + c t t') r = q for every row, with its unit vector t along the mass and the curvature
    c = `along_mass` (J. Sherman and W. J. Morrison, Annals of Mathematical Statistics 21, 1950).
    """
    xp = backend.xp
    if system is None:
        right, base = row_system(backend, kept, **options)
        step = right / base
        if along_mass > 0:
            squares, root = positive(xp, xp.sum(kept.rows, axis=1, keepdims=True)), xp.sqrt(kept.rows)
            own = along_mass * root / base
            products = [xp.sum(root * part, axis=1, keepdims=True) / squares for part in (step, own)]
            step = step - own * (products[0] / (1 + products[1]))
    else:
        step = backend.asarray(solution(system))
    return kept._replace(step=step), Sums(products=products_with(backend.xp, kept.past, step))


@dataclass(frozen=True, eq=False)
class QuasiNewton:
    """The method for one problem."""

    blocks: Blocks
    weight: float  # b
    graph: GraphTerm
    penalties: Penalties
    numerators: Callable[[FitState], list[Array]]  # w_n of all factors but the first
    held: int = 0  # Number of leading components for which these factors have no gradient
    mass: float = 0.0  # `SimplexLoss.mass_curvature`

    @property
    def by_mass(self) -> bool:
        """Whether P has the curvature along the mass of the samples."""
        return self.mass > 0 and not self.graph.present

    def started(self, at: FitState) -> FitState:
        """Return a fit state with its next step, without history."""
        samples, rank = self.blocks.slices[-1].stop, at.rest[0].shape[1]
        mean = float(self.blocks.backend.to_numpy(at.sums["masses"]).mean()) / samples
        pair_bytes = 2 * samples * rank * self.blocks.backend.dtype(at.rest[0]).itemsize
        pairs = min(_PAIRS, max(1, _PAIR_BYTES // pair_bytes))
        search = Search(np.zeros(pairs), np.zeros((2 * pairs + 2,) * 2), mean=mean)
        kept, _ = self.blocks.apply(without_history, at.kept)
        return self.continued([at._replace(kept=kept, past=None, acceleration=search)])

    def continued(self, tried: Sequence[FitState]) -> FitState:
        """Return the last of some fit states with its next step.

        The first is the state from which all others were evaluated: each of them makes a pair with it.
        """
        search: Search = tried[0].acceleration
        pairs, xp = len(search.weights), self.blocks.backend.xp
        slots = [(search.pairs + k) % pairs for k in range(len(tried) - 1)]
        parts = [part for state in tried for part in (state.kept, state.halo)]
        options = {"weight": self.weight, "penalty": self.penalties.samples, "slots": slots, "pairs": pairs}
        owned = self.blocks.in_place
        kept, row_sums = self.blocks.apply(
            learn_rows, self.graph.graphs, *parts, owned=owned, by_mass=self.by_mass, **options
        )
        l2 = self.penalties.others.l2
        first = tried[0].past is None
        points = [
            column_point(xp, at.rest, self.numerators(at), self.weight, l2, self.held)
            for at in tried[0 if first else 1 :]
        ]
        if not first:
            points.insert(0, Point.of_history(xp, xp.concat(tried[0].rest), tried[0].past))
        past, sums = recorded(xp, tried[0].past, points, slots, pairs)
        products, scales = self._totals(row_sums, sums, "products", "scale")
        gram = search.gram.copy()
        for k, row in zip([*(k for slot in slots for k in (slot, pairs + slot)), -1], products, strict=True):
            gram[k] = gram[:, k] = row
        if scales.min() > 0:
            search = search._replace(scale=float(np.clip(scales[0] / scales[1], *_SCALES)))
        search = search._replace(gram=gram, pairs=search.pairs + len(slots), length=1.0)
        return self._with_step(tried[-1]._replace(kept=kept, past=past, acceleration=search), points[-1])

    def _with_step(self, at: FitState, point: Point) -> FitState:
        """Return a fit state with its next step, given its history and the point of the other factors."""
        search: Search = at.acceleration
        order = (search.pairs + np.arange(len(search.weights))) % len(search.weights)
        first = first_weights(search.gram, order)
        options = {"first": first, "curvature": self.weight / search.scale, "penalty": self.penalties.samples}
        systems: PerBlock = list(repeat(None, len(self.blocks.slices)))
        if self.graph.present:
            count = step_count(self.graph, self.weight / search.scale, search.mean)
            rank, rounding = at.rest[0].shape[1], float(self.blocks.backend.xp.finfo(at.rest[0].dtype).eps)
            systems = graph_solve(self.blocks, self.graph, at.kept, row_system, count, rank, rounding, **options)
        along_mass = 4 * max(0.0, self.mass - 1 / search.scale) * self.weight if self.by_mass else 0.0
        kept, row_sums = self.blocks.apply(solve_rows, at.kept, systems, along_mass=along_mass, **options)
        base = point.curvature / search.scale + 8 * self.penalties.others.l2 * point.root * point.root
        step = right_side(self.blocks.backend, at.past, first) / base
        own = Sums(products=products_with(self.blocks.backend.xp, at.past, step))
        (products,) = self._totals(row_sums, own, "products")
        weights = last_weights(search.gram, order, first, products)
        slope = float(products[-1] + weights @ search.gram[: len(weights), -1])
        return at._replace(kept=kept, step=step, acceleration=search._replace(weights=weights, slope=slope))

    def _totals(self, row_sums: Any, own: Sums, *names: str) -> list[FloatArray]:
        """Return sums over the blocks plus those of the other factors, on the host."""
        (found,) = self.blocks.collect(row_sums)
        to_numpy = self.blocks.backend.to_numpy
        return [to_numpy(found[name]) + to_numpy(own[name]) for name in names]
