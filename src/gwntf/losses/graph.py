"""The graph penalty (mu/4) sum_ij V_ij |a_i - a_j|^2 on the rows of the sample factor, and steps against it.

Its gradient is mu L A with L = D - V. A new sample is joined to training samples, whose rows a_j stay. The sum over ij
counts every edge twice, so its penalty is (mu/2) sum_j v_j |a - a_j|^2, with the gradient mu (d a - s), where d is the
sum of the v_j and s that of the v_j a_j.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from scipy.sparse import csr_array

from gwntf.backends import Backend
from gwntf.core import Array
from gwntf.data import Blocks, Kept, Parts, Sums
from gwntf.geometry import SampleGraph, SampleTies, cut_graph
from gwntf.transport import positive

_EDGES_AT_ONCE = 2**16


class Pull(NamedTuple):
    """What a graph does to some rows of A(1)."""

    weight: float  # mu
    pull: Array  # (n, R) array: V A, or s for new samples
    degree: Array  # (n, 1) array: Degrees d


class GraphTerm:
    """The graph of a fit, split as the samples are; without a graph it does nothing."""

    def __init__(self, blocks: Blocks, graph: csr_array | None, weight: float, dtype: Any) -> None:
        self._blocks = blocks
        self.present = graph is not None and weight > 0
        self.graphs: Parts = [None] * len(blocks.slices)  # A `SampleGraph` for every block, or None
        if graph is not None and weight > 0:
            graphs, self._wanted = cut_graph(graph, weight, blocks.slices, dtype)
            self.graphs = blocks.put(graphs)

    def halo(self, kept: Parts) -> Parts:
        """For every block the rows of A(1) of its neighbours in other blocks."""
        return self._blocks.neighbour_rows(self._wanted, kept) if self.present else self.graphs

    def penalty(self, kept: Parts, halo: Parts) -> Any:
        """Return the penalty of all edges, as ``sums["graph"]`` for `Blocks.collect`."""
        return self._blocks.apply(block_penalty, kept, self.graphs, halo)[1]


def block_penalty(backend: Backend, kept: Kept, graph: SampleGraph, halo: Sequence[Array]) -> tuple[None, Sums]:
    """Penalty of the edges that begin in a block."""
    return None, Sums(graph=penalty(backend, with_halo(backend, kept.rows, halo), graph))


def with_halo(backend: Backend, a: Array, halo: Sequence[Array]) -> Array:
    """Rows of a block, then those of its neighbours in other blocks."""
    return backend.xp.concat([a, *(backend.asarray(rows) for rows in halo)]) if halo else a


def pull_of(backend: Backend, a: Array, graph: SampleGraph | None, halo: Sequence[Array]) -> Pull | None:
    """Return what the graph does to the rows of a block."""
    if graph is None:
        return None
    return Pull(graph.weight, graph.matrix @ with_halo(backend, a, halo), graph.degree)


def penalty(backend: Backend, a: Array, graph: SampleGraph) -> Array:
    """(mu/4) sum_ij V_ij |a_i - a_j|^2, summed over edges in float64."""
    xp = backend.xp
    rows, columns, weights = graph.edges
    total = xp.sum(weights[:0])
    for start in range(0, rows.shape[0], _EDGES_AT_ONCE):
        part = slice(start, start + _EDGES_AT_ONCE)
        difference = xp.astype(a[rows[part]], xp.float64) - xp.astype(a[columns[part]], xp.float64)
        total = total + xp.sum(weights[part] * xp.sum(difference * difference, axis=1))
    return graph.weight / 2 * total


def ratio_terms(xp: Any, a: Array, down: Any, pull: Pull | None) -> tuple[Any, Array]:
    """Return mu V A, or None without a graph, and the denominator of the ratio, down + mu D A, made positive."""
    if pull is None:
        return None, positive(xp, down)
    return pull.weight * pull.pull, positive(xp, down + pull.weight * pull.degree * a)


def ratio(xp: Any, a: Array, up: Array, down: Array, pull: Pull | None, power: float = 1.0) -> Array:
    """Take a multiplicative step: a ((up + mu V A) / (down + mu D A))^power."""
    attraction, denominator = ratio_terms(xp, a, down, pull)
    up = up if attraction is None else up + attraction
    return a * up / denominator if power == 1 else a * (up / denominator) ** power


def mm_root(xp: Any, a: Array, w: Array, b: float, pull: Pull) -> Array:
    """Return the positive root of mu d a^2 + b a - c = 0, c = b w + mu a (V a): never raises F."""
    c = b * w + pull.weight * a * pull.pull
    return 2 * c / (b + xp.sqrt(b * b + 4 * pull.weight * pull.degree * c))


def classic_ratio(xp: Any, a: Array, w: Array, b: float, pull: Pull) -> Array:
    """Return the classic ratio (b w + mu a (V a)) / (b + mu d a): no guarantee beside a KL term."""
    attraction, denominator = ratio_terms(xp, a, b, pull)
    return (b * w + a * attraction) / denominator


RULES: dict[str, Callable[[Any, Array, Array, float, Pull], Array]] = {"mm": mm_root, "multiplicative": classic_ratio}
"""Steps of rows a against ``b * (sum(a) - sum(w log a)) + penalty(a)``, w the numerator of the data term."""


def tie_penalty(backend: Backend, a: Array, ties: SampleTies) -> Array:
    """(mu/2) sum_j v_j |a - a_j|^2 of every new sample, in float64."""
    xp = backend.xp
    apart = xp.astype(a, xp.float64) - ties.centre
    degree = xp.astype(ties.degree[:, 0], xp.float64)
    return ties.weight / 2 * (degree * xp.sum(apart * apart, axis=1) + ties.rest)


def tied_root(xp: Any, w: Array, b: float, masses: Array, pull: Pull) -> Array:
    """Return the positive root of mu d a^2 + q a - b w = 0, q = b m - mu s: it minimises the majorizer of a new sample.

    b (m a - w log a) majorizes the data term, m the mass of a component; s does not depend on a, so the root is exact
    and never raises the objective. Either form of it is used where it does not cancel; without ties it is w / m.
    """
    q = b * masses - pull.weight * pull.pull
    curvature = pull.weight * pull.degree
    size = xp.abs(q) + xp.sqrt(q * q + 4 * curvature * b * w)
    bent = xp.where(curvature > 0, 2 * curvature, xp.ones_like(curvature))
    return xp.where(q > 0, 2 * b * w / positive(xp, size), size / bent)
