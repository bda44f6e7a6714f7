"""What the workers do with the graph: the rows of a block, and those that other blocks have lent it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gwntf.cluster.work import Place
from gwntf.core import Array, FloatArray
from gwntf.backends import Backend
from gwntf.geometry import SampleGraph
from gwntf.updates import penalty


class WithNeighbors:
    """V of a block: its product with the rows of the block, those of their neighbours in other blocks at hand."""

    def __init__(self, matrix: Array, rows: Array, backend: Backend) -> None:
        self._matrix, self._rows, self._engine = matrix, rows, backend

    def __matmul__(self, a: Array) -> Array:
        """V A."""
        return self._matrix @ self._engine.xp.concat([a, self._rows])


def _neighbors(backend: Backend, a: FloatArray, lent: Sequence[FloatArray]) -> Array:
    """Rows that other blocks have lent, in the order of the columns of the graph of this one."""
    return backend.asarray(np.concatenate(lent) if lent else a[:0])


def with_neighbors(
    backend: Backend, graph: SampleGraph, a: FloatArray, lent: Sequence[FloatArray]
) -> SampleGraph:
    """Place the graph of a block; the rows of neighbours are those at the present step."""
    matrix = backend.sparse(graph.matrix, a.dtype)
    degree = backend.asarray(graph.degree, a.dtype)
    lines = WithNeighbors(matrix, _neighbors(backend, a, lent), backend)
    return replace(graph, matrix=lines, degree=degree)


def smoothness(place: Place, a: FloatArray, graph: SampleGraph, lent: Sequence[FloatArray]) -> float:
    """Return the penalty of the edges that begin in a block."""
    backend = place.backend
    with backend.session(None):
        edges = tuple(backend.asarray(part) for part in graph.edges)
        rows = backend.xp.concat([backend.asarray(a), _neighbors(backend, a, lent)])
        return float(penalty(backend, rows, replace(graph, edges=edges)))
