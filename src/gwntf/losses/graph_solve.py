"""Conjugate gradients for the curvature of the graph term in the square roots T of the rows of the sample factor.

Solves (B + 4 mu T (D - V) T) x = q for every component, where B and T are diagonal: B is the curvature of the data term
and of the penalties. With E the diagonal of the matrix and S = 2 T (mu / E)^(1/2), the system is
(I - S V S) y = E^(-1/2) q for y = E^(1/2) x. Inner products are summed over the blocks, and products with V need the
halo rows of S times the direction. The number of steps is fixed, so that nothing waits for the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gwntf.backends import Backend
from gwntf.core import Array
from gwntf.data import Blocks, BlockState, PerBlock, Sums
from gwntf.geometry import SampleGraph
from gwntf.losses.graph import GraphTerm, with_halo
from gwntf.transport import positive

Begin = Callable[..., tuple[Array, Array]]

_STEPS, _FEWEST, _MOST = 2.0, 4, 40
"""Number of steps in relation to the square root of the condition number, and its limits."""

_GATHERED_ENTRIES = 2**22
"""Size of the sample factor up to which blocks in other processes are solved for in this one."""


class System(NamedTuple):
    """The rows of a block in the middle of the solution."""

    rows: Array  # (n, 2 R) array: S r and S p, of which neighbours in other blocks need rows; None for a single block
    scaling: Array  # (n, R) array: S
    root: Array  # (n, R) array: E^(1/2)
    residual: Array  # (n, R) array: r
    direction: Array  # (n, R) array: p
    product: Array  # (n, R) array: p - S V S p
    solution: Array  # (n, R) array: y

    def on(self, backend: Backend) -> System:
        """Return the same arrays on a backend."""
        return System(*(None if part is None else backend.asarray(part) for part in self))


def step_count(graph: GraphTerm, curvature: float, mean: float) -> int:
    """Return the number of steps for rows with a mean entry, where B is about 4 times a curvature."""
    condition = 1 + graph.weight * graph.mean_degree * mean / curvature
    return math.ceil(min(_MOST, max(_FEWEST, _STEPS * math.sqrt(condition))))


def graph_solve(
    blocks: Blocks,
    graph: GraphTerm,
    kept: PerBlock,
    begin: Begin,
    steps: int,
    rank: int,
    rounding: float,
    **options: Any,
) -> PerBlock:
    """Return the `System` of every block after the last step; `begin` returns q and B of a block, given its state.

    A component stays as it is once the residual is `rounding` times that at the start. Blocks in other processes would
    have to wait for each other twice in every step: if the rows are few enough, all of them are solved for in this one.
    """
    if blocks.remote and blocks.slices[-1].stop * rank <= _GATHERED_ENTRIES:
        return _solved_here(blocks, graph, kept, begin, steps, rounding, **options)
    shared = len(blocks.slices) > 1
    systems, sums = blocks.apply(_begun, kept, graph.graphs, begin=begin, shared=shared, **options)
    (found,) = blocks.collect(sums)
    pace = _Pace(blocks.backend.xp, found["size"], rounding)
    for step in range(steps):
        systems, sums = blocks.apply(_multiplied, systems, graph.graphs, graph.halo(systems), ratio=pace.ratio)
        (found,) = blocks.collect(sums)
        systems, sums = blocks.apply(_moved, systems, length=pace.length(found["size"]))
        if step + 1 < steps:
            (found,) = blocks.collect(sums)
            pace.next(found["size"])
    return systems


def _solved_here(
    blocks: Blocks, graph: GraphTerm, kept: PerBlock, begin: Begin, steps: int, rounding: float, **options: Any
) -> PerBlock:
    """Return the same, computed in this process from the rows of all blocks."""
    backend = blocks.backend
    parts = blocks.take(blocks.apply(_given, kept, begin=begin, **options)[0])
    rows, right, base = (
        backend.xp.concat(list(one)) for one in zip(*((p.rows, p.own, p.step) for p in parts), strict=True)
    )
    all_rows = BlockState(rows, own=right, step=base)
    system, sums = _begun(backend, all_rows, graph.whole, begin=_taken, shared=False)
    pace = _Pace(backend.xp, sums["size"], rounding)
    for _ in range(steps):
        system, sums = _multiplied(backend, system, graph.whole, (), ratio=pace.ratio)
        system, sums = _moved(backend, system, length=pace.length(sums["size"]))
        pace.next(sums["size"])
    found = solution(system)
    return blocks.put([found[part] for part in blocks.slices])


def _given(backend: Backend, kept: BlockState, *, begin: Begin, **options: Any) -> tuple[BlockState, None]:
    """Return the rows of a block with q and B."""
    right, base = begin(backend, kept, **options)
    return BlockState(kept.rows, own=right, step=base), None


def _taken(backend: Backend, kept: BlockState) -> tuple[Array, Array]:  # noqa: ARG001
    """Return the q and B of `_given`."""
    return kept.own, kept.step


class _Pace:
    """Lengths of the steps of conjugate gradients, from the squared residuals."""

    def __init__(self, xp: Any, size: Array, rounding: float) -> None:
        self._xp, self._size, self._solved = xp, size, size * rounding**2
        self.ratio = size * 0  # By which the last direction is multiplied

    def length(self, curvature: Array) -> Array:
        """Return the length of the step along a direction of this curvature; zero where rounding would be enlarged."""
        xp, size = self._xp, self._size
        moving = (size > self._solved) & (curvature > 0)
        return xp.where(moving, size / positive(xp, curvature), xp.zeros_like(size))

    def next(self, size: Array) -> None:
        """Take the squared residuals after the step."""
        self.ratio, self._size = size / positive(self._xp, self._size), size


def solution(system: System | Array) -> Array:
    """Return x, from the result of `graph_solve` for a block."""
    return system.solution / system.root if isinstance(system, System) else system


def _begun(
    backend: Backend, kept: BlockState, graph: SampleGraph, *, begin: Begin, shared: bool, **options: Any
) -> tuple[System, Sums]:
    xp = backend.xp
    right, base = begin(backend, kept, **options)
    root = xp.sqrt(base + 4 * graph.weight * kept.rows * graph.degree)
    scaling, residual = 2 * math.sqrt(graph.weight) * xp.sqrt(kept.rows) / root, right / root
    none = xp.zeros_like(residual)
    rows = xp.concat([scaling * residual, none], axis=1) if shared else None
    return System(rows, scaling, root, residual, none, none, none), Sums(size=_dot(xp, residual, residual))


def _multiplied(
    backend: Backend, system: System, graph: SampleGraph, halo: Sequence[Array], *, ratio: Array
) -> tuple[System, Sums]:
    """Update the direction, p = r + ratio p, and multiply it with the matrix."""
    xp, count = backend.xp, system.residual.shape[1]
    ratio = backend.asarray(ratio, backend.dtype(system.residual))
    direction = system.residual + ratio * system.direction
    near = [backend.asarray(rows) for rows in halo]
    near = [rows[:, :count] + ratio * rows[:, count:] for rows in near]
    product = direction - system.scaling * (graph.matrix @ with_halo(backend, system.scaling * direction, near))
    return system._replace(direction=direction, product=product), Sums(size=_dot(xp, direction, product))


def _moved(backend: Backend, system: System, *, length: Array) -> tuple[System, Sums]:
    """Move along the direction."""
    xp, length = backend.xp, backend.asarray(length, backend.dtype(system.residual))
    found = system.solution + length * system.direction
    residual = system.residual - length * system.product
    rows = system.rows
    if rows is not None:
        rows = xp.concat([system.scaling * residual, system.scaling * system.direction], axis=1)
    return system._replace(rows=rows, residual=residual, solution=found), Sums(size=_dot(xp, residual, residual))


def _dot(xp: Any, a: Array, b: Array) -> Array:
    """Return the inner products of the columns, in float64."""
    return xp.sum(a * b, axis=0, dtype=xp.float64)
