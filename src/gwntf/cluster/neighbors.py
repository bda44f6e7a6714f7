"""What the workers do with the graph: the rows of a block, and those that other blocks have lent it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gwntf.cluster.work import Place
from gwntf.core import Array, FloatArray
from gwntf.engines import Engine
from gwntf.geometry import SampleGraph
from gwntf.updates import penalty


class WithNeighbors:
    """V of a block: its product with the rows of the block, those of their neighbours in other blocks at hand."""

    def __init__(self, matrix: Array, rows: Array, engine: Engine) -> None:
        self._matrix, self._rows, self._engine = matrix, rows, engine

    def __matmul__(self, a: Array) -> Array:
        """V A."""
        return self._matrix @ self._engine.xp.concat([a, self._rows])


def _neighbors(engine: Engine, a: FloatArray, lent: Sequence[FloatArray]) -> Array:
    """Rows that other blocks have lent, in the order of the columns of the graph of this one."""
    return engine.asarray(np.concatenate(lent) if lent else a[:0])


def with_neighbors(
    engine: Engine, graph: SampleGraph, a: FloatArray, lent: Sequence[FloatArray]
) -> SampleGraph:
    """Place the graph of a block; the rows of neighbours are those at the present step."""
    matrix = engine.sparse(graph.matrix, a.dtype)
    degree = engine.asarray(graph.degree, a.dtype)
    lines = WithNeighbors(matrix, _neighbors(engine, a, lent), engine)
    return replace(graph, matrix=lines, degree=degree)


def smoothness(place: Place, a: FloatArray, graph: SampleGraph, lent: Sequence[FloatArray]) -> float:
    """Return the penalty of the edges that begin in a block."""
    engine = place.engine
    with engine.session(None):
        edges = tuple(engine.asarray(part) for part in graph.edges)
        rows = engine.xp.concat([engine.asarray(a), _neighbors(engine, a, lent)])
        return float(penalty(engine, rows, replace(graph, edges=edges)))
