"""The graph penalty (mu/4) sum_ij V_ij |a_i - a_j|^2 on the rows of the sample factor, and steps against it.

Its gradient is mu L A with L = D - V.
"""

from __future__ import annotations

from typing import Protocol

from gwntf.core import Array
from gwntf.engines import Engine
from gwntf.geometry import SampleGraph

_EDGES_AT_ONCE = 2**16


class SampleRule(Protocol):
    """One step on the sample factor against ``b * (sum(a) - sum(w log a)) + penalty(a)``."""

    def __call__(self, engine: Engine, a: Array, w: Array, b: float, graph: SampleGraph) -> Array:
        """Return the next sample factor from the present one and the numerator of the data term."""
        ...


def penalty(engine: Engine, a: Array, graph: SampleGraph) -> Array:
    """(mu/4) sum_ij V_ij |a_i - a_j|^2, summed over edges in float64."""
    xp = engine.xp
    rows, columns, weights = graph.edges
    total = xp.sum(weights[:0])
    for start in range(0, rows.shape[0], _EDGES_AT_ONCE):
        part = slice(start, start + _EDGES_AT_ONCE)
        difference = xp.astype(a[rows[part]], xp.float64) - xp.astype(a[columns[part]], xp.float64)
        total = total + xp.sum(weights[part] * xp.sum(difference * difference, axis=1))
    return graph.weight / 2 * total


def mm_root(engine: Engine, a: Array, w: Array, b: float, graph: SampleGraph) -> Array:
    """Return the positive root of mu d a^2 + b a - c = 0, c = b w + mu a (V a): never raises F."""
    c = b * w + graph.weight * a * (graph.matrix @ a)
    return 2 * c / (b + engine.xp.sqrt(b * b + 4 * graph.weight * graph.degree * c))


def ratio(engine: Engine, a: Array, w: Array, b: float, graph: SampleGraph) -> Array:  # noqa: ARG001
    """Classic ratio (b w + mu a (V a)) / (b + mu d a): no guarantee beside a KL term."""
    attraction = graph.weight * a * (graph.matrix @ a)
    return (b * w + attraction) / (b + graph.weight * graph.degree * a)


RULES: dict[str, SampleRule] = {"mm": mm_root, "multiplicative": ratio}
