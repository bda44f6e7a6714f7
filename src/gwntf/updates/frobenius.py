"""Factor updates for 1/2 |X - X^|^2: the classic multiplicative ratio.

Data term and graph penalty are both quadratic, so the ratio of the negative to the positive part of the
gradient is a true MM step for a factor with the others fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gwntf.core import Array
from gwntf.engines import Engine
from gwntf.geometry import SampleGraph, SampleTies


class Pull(NamedTuple):
    """What a graph does to some samples: mu, their rows of V A, and their degrees."""

    weight: float
    pull: Array
    degree: Array


def other_grams(factors: Sequence[Array], mode: int) -> Array:
    """G: the entrywise product of the Gram matrices of all factors but one, A(-n)' A(-n)."""
    product = None
    for other, factor in enumerate(factors):
        if other != mode:
            gram = factor.T @ factor
            product = gram if product is None else product * gram
    return product


def least_squares_factor(
    engine: Engine,
    a: Array,
    product: Array,
    grams: Array,
    graph: SampleGraph | SampleTies | Pull | None,
) -> Array:
    """Return A(n) * (X_(n) A(-n) [+ mu V A]) / (A(n) G [+ mu D A]), given X_(n) A(-n) and G of `other_grams`.

    For new samples V A is s, the sum over their ties to training samples, whose rows stay; for some of the samples
    it is known beforehand.
    """
    xp = engine.xp
    numerator, denominator = product, a @ grams
    if graph is not None:
        attraction = graph.matrix @ a if isinstance(graph, SampleGraph) else graph.pull
        numerator = numerator + graph.weight * attraction
        denominator = denominator + graph.weight * graph.degree * a
    return a * numerator / xp.clip(denominator, float(xp.finfo(a.dtype).smallest_normal), None)


def unit_columns(engine: Engine, factors: Sequence[Array]) -> list[Array]:
    """Scale columns to Euclidean length one, all scale moved to the first factor; empty ones stay."""
    xp = engine.xp
    samples, *rest = factors
    scaled = []
    for factor in rest:
        norms = xp.sqrt(xp.sum(factor * factor, axis=0))
        norms = xp.where(norms > 0, norms, xp.ones_like(norms))
        scaled.append(factor / norms)
        samples = samples * norms
    return [samples, *scaled]
