"""The graph penalty (mu/4) sum_ij V_ij |a_i - a_j|^2 on the rows of the sample factor, and steps against it.

Its gradient is mu L A with L = D - V. A new sample is tied to training samples, whose rows a_j stay. The sum over ij
counts every edge twice, so its penalty is (mu/2) sum_j v_j |a - a_j|^2, with the gradient mu (d a - s), where d is the
sum of the v_j and s that of the v_j a_j.
"""

from __future__ import annotations

from typing import Protocol

from gwntf.core import Array
from gwntf.backends import Backend
from gwntf.geometry import SampleGraph, SampleTies

_EDGES_AT_ONCE = 2**16


class SampleRule(Protocol):
    """One step on the sample factor against ``b * (sum(a) - sum(w log a)) + penalty(a)``."""

    def __call__(self, backend: Backend, a: Array, w: Array, b: float, graph: SampleGraph) -> Array:
        """Return the next sample factor from the present one and the numerator of the data term."""
        ...


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


def mm_root(backend: Backend, a: Array, w: Array, b: float, graph: SampleGraph) -> Array:
    """Return the positive root of mu d a^2 + b a - c = 0, c = b w + mu a (V a): never raises F."""
    c = b * w + graph.weight * a * (graph.matrix @ a)
    return 2 * c / (b + backend.xp.sqrt(b * b + 4 * graph.weight * graph.degree * c))


def ratio(backend: Backend, a: Array, w: Array, b: float, graph: SampleGraph) -> Array:  # noqa: ARG001
    """Classic ratio (b w + mu a (V a)) / (b + mu d a): no guarantee beside a KL term."""
    attraction = graph.weight * a * (graph.matrix @ a)
    return (b * w + attraction) / (b + graph.weight * graph.degree * a)


RULES: dict[str, SampleRule] = {"mm": mm_root, "multiplicative": ratio}


def tie_penalty(backend: Backend, a: Array, ties: SampleTies) -> Array:
    """(mu/2) sum_j v_j |a - a_j|^2 of every new sample, in float64."""
    xp = backend.xp
    apart = xp.astype(a, xp.float64) - ties.centre
    degree = xp.astype(ties.degree[:, 0], xp.float64)
    return ties.weight / 2 * (degree * xp.sum(apart * apart, axis=1) + ties.rest)


def tied_root(backend: Backend, w: Array, b: float, masses: Array, ties: SampleTies) -> Array:
    """Return the positive root of mu d a^2 + q a - b w = 0, q = b m - mu s: it minimises the majorizer of a new sample.

    b (m a - w log a) majorizes the data term, m the mass of a component; s does not depend on a, so the root is exact
    and never raises the objective. Either form of it is used where it does not cancel; without ties it is w / m.
    """
    xp = backend.xp
    q = b * masses - ties.weight * ties.pull
    curvature = ties.weight * ties.degree
    size = xp.abs(q) + xp.sqrt(q * q + 4 * curvature * b * w)
    tiny = float(xp.finfo(w.dtype).smallest_normal)
    bent = xp.where(curvature > 0, 2 * curvature, xp.ones_like(curvature))
    return xp.where(q > 0, 2 * b * w / xp.clip(size, tiny, None), size / bent)
