"""Factor updates for 1/2 |X - X^|^2: the classic multiplicative ratio.

Data term and graph penalty are both quadratic, so the ratio of the negative to the positive part of the
gradient is a true MM step for a factor with the others fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import NamedTuple

from gwntf.core import Array
from gwntf.backends import Backend
from gwntf.geometry import SampleGraph, SampleTies


class Pull(NamedTuple):
    """What a graph does to some samples: mu, their rows of V A, and their degrees."""

    weight: float
    pull: Array
    degree: Array


def gram_of(backend: Backend, factor: Array) -> Array:
    """Return A(n)' A(n), in float64."""
    wide = backend.xp.astype(factor, backend.xp.float64, copy=False)
    return wide.T @ wide


def other_grams(grams: Sequence[Array], mode: int) -> Array:
    """G: the entrywise product of the Gram matrices of all factors but one, A(-n)' A(-n)."""
    return reduce(mul, (gram for other, gram in enumerate(grams) if other != mode))


def ratio_parts(
    backend: Backend, a: Array, grams: Array, graph: SampleGraph | SampleTies | Pull | None
) -> tuple[Array | None, Array]:
    """Return mu V A, or None without a graph, and A(n) G + mu D A, made positive, given G of `other_grams`.

    For new samples V A is s, the sum over their ties to training samples, whose rows stay; for some of the samples
    it is known beforehand.
    """
    xp = backend.xp
    attraction, denominator = None, a @ xp.astype(grams, a.dtype, copy=False)
    if graph is not None:
        attraction = graph.weight * (graph.matrix @ a if isinstance(graph, SampleGraph) else graph.pull)
        denominator = denominator + graph.weight * graph.degree * a
    return attraction, xp.clip(denominator, float(xp.finfo(a.dtype).smallest_normal), None)


def ratio_step(a: Array, product: Array, attraction: Array | None, denominator: Array) -> Array:
    """Return A(n) * (X_(n) A(-n) [+ mu V A]) / (A(n) G [+ mu D A]) from X_(n) A(-n) and `ratio_parts`."""
    return a * (product if attraction is None else product + attraction) / denominator


def least_squares_factor(
    backend: Backend,
    a: Array,
    product: Array,
    grams: Array,
    graph: SampleGraph | SampleTies | Pull | None,
) -> Array:
    """Return the next A(n), given X_(n) A(-n) and G of `other_grams`."""
    return ratio_step(a, product, *ratio_parts(backend, a, grams, graph))


def unit_columns(backend: Backend, factors: Sequence[Array]) -> list[Array]:
    """Scale columns to Euclidean length one, all scale moved to the first factor; empty ones stay."""
    xp = backend.xp
    samples, *rest = factors
    scaled = []
    for factor in rest:
        norms = xp.sqrt(xp.sum(factor * factor, axis=0))
        norms = xp.where(norms > 0, norms, xp.ones_like(norms))
        scaled.append(factor / norms)
        samples = samples * norms
    return [samples, *scaled]
