"""The graph penalty (mu/4) sum_ij V_ij |a_i - a_j|^2 on the rows of the sample factor, and the updates with it.

Its gradient is mu L A with L = D - V. A new sample has edges to training samples with fixed rows a_j. The sum over
ij counts every edge twice, so its penalty is (mu/2) sum_j v_j |a - a_j|^2, with the gradient mu (d a - s), where d is
the sum of the v_j and s that of the v_j a_j. The updates include the penalty l1 |A|_1 + (l2/2) |A|_F^2 of `penalty`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from scipy.sparse import csr_array

from gwntf.backends import Backend
from gwntf.core import Array
from gwntf.data import Blocks, BlockState, PerBlock, Sums
from gwntf.geometry import SampleGraph, SampleTies, split_graph
from gwntf.losses.penalty import NO_PENALTY, Penalty
from gwntf.transport import positive

_EDGES_AT_ONCE = 2**16


class GraphGradient(NamedTuple):
    """Gradient mu (d a - s) of the graph penalty in some rows a of A(1)."""

    weight: float  # mu
    neighbor_sum: Array  # (n, R) array: V A, or s for new samples
    degree: Array  # (n, 1) array: degrees d

    def of(self, rows: slice) -> GraphGradient:
        """Return the gradient in some of the rows."""
        return GraphGradient(self.weight, self.neighbor_sum[rows], self.degree[rows])


class GraphTerm:
    """The graph penalty of a fit, with the graph split by blocks of samples; without a graph it does nothing."""

    def __init__(self, blocks: Blocks, graph: csr_array | None, weight: float, dtype: Any) -> None:
        self._blocks = blocks
        self.present = graph is not None and weight > 0
        self.weight = weight
        self.mean_degree = 0.0 if graph is None else float(graph.sum() / graph.shape[0])
        self.graphs: PerBlock = [None] * len(blocks.slices)  # `SampleGraph` of every block, or None
        if graph is not None and weight > 0:
            graphs, self._halos = split_graph(graph, weight, blocks.slices, dtype)
            self.graphs = blocks.put(graphs)
            self._whole, self._dtype = graph, dtype

    @cached_property
    def whole(self) -> SampleGraph:
        """The graph of all samples in this process."""
        (graph,), _ = split_graph(self._whole, self.weight, [slice(0, self._whole.shape[0])], self._dtype)
        return graph.on(self._blocks.backend)

    def halo(self, kept: PerBlock) -> PerBlock:
        """Return the halo rows of every block: rows of A(1) of its neighbours in other blocks."""
        return self._blocks.halo_rows(self._halos, kept) if self.present else self.graphs

    def penalty(self, kept: PerBlock, halo: PerBlock) -> Any:
        """Return the penalty of all edges, as ``sums["graph"]`` for `Blocks.collect`."""
        return self._blocks.apply(block_penalty, kept, self.graphs, halo)[1]


def block_penalty(backend: Backend, kept: BlockState, graph: SampleGraph, halo: Sequence[Array]) -> tuple[None, Sums]:
    """Return the penalty of the edges of a block, each edge counted in one block only."""
    return None, Sums(graph=penalty(backend, with_halo(backend, kept.rows, halo), graph))


def with_halo(backend: Backend, a: Array, halo: Sequence[Array]) -> Array:
    """Return the rows of a block followed by its halo rows."""
    return backend.xp.concat([a, *(backend.asarray(rows) for rows in halo)]) if halo else a


def gradient_of(backend: Backend, a: Array, graph: SampleGraph | None, halo: Sequence[Array]) -> GraphGradient | None:
    """Return the gradient of the graph penalty in the rows of a block, or None without a graph."""
    if graph is None:
        return None
    return GraphGradient(graph.weight, graph.matrix @ with_halo(backend, a, halo), graph.degree)


def penalty(backend: Backend, a: Array, graph: SampleGraph) -> Array:
    """Return (mu/4) sum_ij V_ij |a_i - a_j|^2, summed over edges in float64."""
    xp = backend.xp
    rows, columns, weights = graph.edges
    total = xp.sum(weights[:0])
    for start in range(0, rows.shape[0], _EDGES_AT_ONCE):
        part = slice(start, start + _EDGES_AT_ONCE)
        difference = xp.astype(a[rows[part]], xp.float64) - xp.astype(a[columns[part]], xp.float64)
        total = total + xp.sum(weights[part] * xp.sum(difference * difference, axis=1))
    return graph.weight / 2 * total


def ratio_terms(
    xp: Any, a: Array, down: Any, gradient: GraphGradient | None, penalty: Penalty = NO_PENALTY
) -> tuple[Any, Array]:
    """Return mu V A, or None without a graph, and the denominator down + mu D A + l1 + l2 A, made positive."""
    attraction = None
    if gradient is not None:
        attraction, down = gradient.weight * gradient.neighbor_sum, down + gradient.weight * gradient.degree * a
    if penalty.present:
        down = down + penalty.gradient(a)
    return attraction, positive(xp, down)


def ratio(
    xp: Any,
    a: Array,
    up: Array,
    down: Array,
    gradient: GraphGradient | None,
    penalty: Penalty = NO_PENALTY,
    power: float = 1.0,
) -> Array:
    """Return the multiplicative update a ((up + mu V A) / (down + mu D A + l1 + l2 A))^power."""
    attraction, denominator = ratio_terms(xp, a, down, gradient, penalty)
    up = up if attraction is None else up + attraction
    return a * up / denominator if power == 1 else a * (up / denominator) ** power


def mm_root(
    xp: Any, a: Array, w: Array, b: float, gradient: GraphGradient | None, penalty: Penalty = NO_PENALTY
) -> Array:
    """Return the MM update, which never raises F.

    It is the positive root of (mu d + l2) a^2 + (b + l1) a - c = 0 with c = b w + mu a (V a).
    """
    c, linear, curvature = b * w, b + penalty.l1, penalty.l2
    if gradient is not None:
        c = c + gradient.weight * a * gradient.neighbor_sum
        curvature = gradient.weight * gradient.degree + curvature
    return 2 * c / (linear + xp.sqrt(linear * linear + 4 * curvature * c))


def classic_ratio(
    xp: Any, a: Array, w: Array, b: float, gradient: GraphGradient | None, penalty: Penalty = NO_PENALTY
) -> Array:
    """Return the multiplicative update (b w + mu a (V a)) / (b + mu d a + l1 + l2 a), which may raise F."""
    attraction, denominator = ratio_terms(xp, a, b, gradient, penalty)
    return (b * w if attraction is None else b * w + a * attraction) / denominator


RULES: dict[str, Callable[[Any, Array, Array, float, GraphGradient | None, Penalty], Array]] = {
    "mm": mm_root,
    "multiplicative": classic_ratio,
}
"""Updates of rows a for ``b * (sum(a) - sum(w log a))``, w the numerator of the data term, plus the penalties."""


def tie_penalty(backend: Backend, a: Array, ties: SampleTies) -> Array:
    """Return (mu/2) sum_j v_j |a - a_j|^2 for every new sample, in float64."""
    xp = backend.xp
    apart = xp.astype(a, xp.float64) - ties.centre
    degree = xp.astype(ties.degree[:, 0], xp.float64)
    return ties.weight / 2 * (degree * xp.sum(apart * apart, axis=1) + ties.rest)


def tied_root(
    xp: Any, w: Array, b: float, masses: Array, gradient: GraphGradient | None, penalty: Penalty = NO_PENALTY
) -> Array:
    """Return the minimum of the majorizer of a new sample: the positive root of k a^2 + q a - b w = 0.

    With k = mu d + l2 and q = b m + l1 - mu s, where b (m a - w log a) majorizes the data term and m is the mass of a
    component. s does not depend on a, so the root is exact and never raises the objective. It is computed by the
    formula without cancellation; without ties and penalty it is w / m.
    """
    q, curvature = b * masses, xp.zeros_like(w[:, :1])
    if gradient is not None:
        q, curvature = q - gradient.weight * gradient.neighbor_sum, gradient.weight * gradient.degree
    if penalty.present:
        q, curvature = q + penalty.l1, curvature + penalty.l2
    size = xp.abs(q) + xp.sqrt(q * q + 4 * curvature * b * w)
    bent = xp.where(curvature > 0, 2 * curvature, xp.ones_like(curvature))
    return xp.where(q > 0, 2 * b * w / positive(xp, size), size / bent)
