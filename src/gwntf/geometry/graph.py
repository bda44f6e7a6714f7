"""The p-nearest-neighbour graph on the samples: symmetric, sparse, full CSR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse
from sklearn.preprocessing import normalize

from gwntf.backends import Backend
from gwntf.core import Array, FloatArray, InputError
from gwntf.data import Block, DataTensor, as_real_array, pieces, stacked_alike
from gwntf.geometry.features import GraphMetric, check_metric, sample_features
from gwntf.geometry.neighbors import NOISE, ObservedRows, near_one, nearest_rows, nearest_shared, row_length

GRAPH_WEIGHTS = ("binary", "cosine", "self-tuning")

SCALE_NEIGHBOR = 7
"""Weight "self-tuning" scales distances by the distance of a sample to this neighbour."""

_BATCH = 4096


@dataclass(frozen=True)
class SampleGraph:
    """The graph of one block of samples and their neighbours, with its weight mu in the objective."""

    weight: float  # mu, `graph_reg` of the public classes
    matrix: Array  # rows of V, sparse, (n, n + h): columns are these samples, then h neighbours in other blocks
    degree: Array  # (n, 1) array: d_i = sum_j V_ij
    edges: tuple[Array, Array, Array]  # (i, j, V_ij) for edges whose first end is in this block; each edge once

    def __sizeof__(self) -> int:
        return int(self.degree.nbytes + 2 * sum(part.nbytes for part in self.edges))

    def on(self, backend: Backend) -> SampleGraph:
        """Return a copy on a backend."""
        first, second, weights = (backend.asarray(part) for part in self.edges)
        matrix: Any = self.matrix
        matrix = backend.sparse(matrix, self.degree.dtype) if issparse(matrix) else matrix
        return SampleGraph(self.weight, matrix, backend.asarray(self.degree), (first, second, weights))


def split_graph(
    graph: csr_array, weight: float, slices: Sequence[slice], dtype: Any
) -> tuple[list[SampleGraph], list[dict[int, NDArray[np.intp]]]]:
    """Split a graph by blocks of samples; return the graph of each block, on the host, and its halo.

    The halo of a block maps other blocks to those of their rows that are neighbours, in the order of the columns.
    """
    starts = np.array([part.start for part in slices])
    graphs, halos = [], []
    for part in slices:
        rows = graph[part].tocoo()
        size = part.stop - part.start
        outside = (rows.col < part.start) | (rows.col >= part.stop)
        others = np.unique(rows.col[outside]).astype(np.intp)
        column = np.where(outside, size + np.searchsorted(others, rows.col), rows.col - part.start)
        matrix = coo_array((rows.data, (rows.row, column)), shape=(size, size + len(others))).tocsr()
        upper = rows.col > rows.row + part.start
        edges = (rows.row[upper].astype(np.int64), column[upper].astype(np.int64), rows.data[upper])
        degree = np.asarray(graph[part].sum(axis=1)).reshape(-1, 1)
        graphs.append(SampleGraph(float(weight), matrix.astype(dtype), degree.astype(dtype), edges))
        source = np.searchsorted(starts, others, side="right") - 1
        halos.append({int(k): others[source == k] - starts[k] for k in np.unique(source)})
    return graphs, halos


def neighbor_graph(
    tensor: DataTensor, n_neighbors: int = 5, *, weight: str = "binary", metric: GraphMetric = "cosine"
) -> csr_array:
    """Join every sample to its nearest neighbours and symmetrise by the maximum; parameters as in `KNNGraph`."""
    size = tensor.shape[0]
    count = min(n_neighbors, size - 1)
    if count < 1:
        return csr_array((size, size), dtype=np.float64)
    nearest = nearest_samples(tensor, max(count, min(SCALE_NEIGHBOR, size - 1)), metric)
    directed = weighted_edges(weight, *nearest, count, tensor)
    return _tidy(directed.maximum(directed.T))


def check_graph(graph: Any, n_samples: int) -> csr_array:
    """Check a precomputed graph: square, symmetric, nonnegative, one vertex per sample."""
    allowed = "a sparse matrix or a square array of real numbers"
    given: Any = graph if issparse(graph) else as_real_array(graph, "graph", allowed)
    if given.dtype.kind not in "fiub" or given.ndim != 2:
        raise InputError("graph", f"type {given.dtype} with {given.ndim} dimension(s)", allowed)
    matrix = csr_array(given, dtype=np.float64)
    if matrix.shape != (n_samples, n_samples):
        raise InputError("graph", f"shape {matrix.shape}", f"shape {(n_samples, n_samples)}")
    if not np.isfinite(matrix.data).all() or (matrix.nnz and matrix.data.min() < 0):
        raise InputError("graph", "negative or non-finite weights", "finite nonnegative weights")
    if abs(matrix - matrix.T).sum() > 1e-10 * matrix.sum():
        raise InputError("graph", "an asymmetric matrix", "a symmetric matrix, e.g. graph.maximum(graph.T)")
    return _tidy(matrix)


def _tidy(graph: csr_array) -> csr_array:
    """Drop self-loops (they add nothing to the penalty) and stored zeros; use int32 indices if possible."""
    coo = graph.tocoo()
    keep = (coo.row != coo.col) & (coo.data != 0)
    short = np.int32 if max(coo.nnz, *graph.shape) < 2**31 else np.int64
    coords = (coo.row[keep].astype(short), coo.col[keep].astype(short))
    tidy = csr_array((coo.data[keep], coords), shape=graph.shape)
    tidy.sort_indices()
    return tidy


def nearest_samples(tensor: DataTensor, count: int, metric: GraphMetric) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return distances and indices of the nearest other samples, nearest first; a sample is not its own neighbour."""
    check_metric(tensor, metric)
    if not tensor.complete:
        return nearest_shared(observed_rows(tensor), None, count, str(metric))
    rows, compared = sample_features(tensor, metric)
    distance, index = nearest_rows(rows, count, compared)
    return np.where(distance < NOISE * row_length(rows), 0, distance), index


def weighted_edges(
    weight: str,
    distance: FloatArray,
    index: NDArray[np.intp],
    count: int,
    own: DataTensor,
    other: DataTensor | None = None,
    other_scale: FloatArray | None = None,
) -> csr_array:
    """Return the weights of the edges from every sample of `own` to its `count` nearest samples in `other`.

    `distance` and `index` are those of its nearest samples in `other` (by default `own`), nearest first, including the
    neighbour that defines the scale s_i. Weights are one ("binary"), the cosine of the two samples ("cosine") or
    exp(-d_ij^2 / (s_i s_j)) ("self-tuning").
    """
    other = own if other is None else other
    scale = distance[:, min(SCALE_NEIGHBOR, distance.shape[1]) - 1]
    near, index = distance[:, :count], index[:, :count]
    if weight == "self-tuning":
        values = _self_tuning(near, scale[:, None] * (scale if other_scale is None else other_scale)[index])
    elif weight == "cosine" and own.complete and other.complete:
        values = _cosines(own, other, index)
    elif weight == "cosine":
        values = _shared_cosines(observed_rows(own), observed_rows(other), index)
    else:
        values = np.ones_like(near)
    row = np.repeat(np.arange(len(index)), count)
    return csr_array((values.ravel(), (row, index.ravel())), shape=(len(index), len(other)))


def _self_tuning(near: FloatArray, product: FloatArray) -> FloatArray:
    """Return exp(-d_ij^2 / (s_i s_j)); equal samples have weight one even if a scale is zero."""
    ratio = np.divide(near**2, product, out=np.full_like(near, np.inf), where=product > 0)
    return np.where(near == 0, 1.0, np.exp(-ratio))


def _cosines(own: DataTensor, other: DataTensor, index: NDArray[np.intp]) -> FloatArray:
    """Return the cosine of every sample with each of its neighbours; zero for samples of zeros."""
    rows = others = own.stacked(_unit_rows)
    if other is not own:
        rows, others = stacked_alike(own, other, _unit_rows)
    cosines = np.empty(index.shape)
    for part in pieces(len(index), _BATCH):
        for rank, column in enumerate(index[part].T):
            near = others[column]
            product = rows[part].multiply(near) if issparse(near) else rows[part] * near
            cosines[part, rank] = np.asarray(product.sum(axis=1)).ravel()
    return np.clip(cosines, 0, 1)


def _unit_rows(block: Block) -> Any:
    """Return the samples of a block as rows of length one, dense or sparse; rows of zeros stay zero."""
    parts = [normalize(near_one(rows)) for _, rows in block.float64_rows()]
    return csr_array(parts[0]) if block.sparse else np.concatenate(parts)


def _shared_cosines(own: ObservedRows, other: ObservedRows, index: NDArray[np.intp]) -> FloatArray:
    """Return the cosine of every sample with each of its neighbours, over entries observed in both."""
    rows, others = near_one(own.values), near_one(other.values)
    cosines = np.zeros(index.shape)
    for rank, column in enumerate(index.T):
        near, near_seen = others[column], other.observed[column]
        product = (rows * near).sum(axis=1)
        squares = (rows**2 * near_seen).sum(axis=1) * (near**2 * own.observed).sum(axis=1)
        np.divide(product, np.sqrt(squares), out=cosines[:, rank], where=squares > 0)
    return np.clip(cosines, 0, 1)


def observed_rows(tensor: DataTensor) -> ObservedRows:
    """Return one row per sample in float64, and the mask of observed entries; data must be dense and in memory."""
    block = tensor.dense_block
    if block is None:
        raise TypeError("samples with missing entries must be dense and in memory")
    rows: FloatArray = block.host.rows.astype(np.float64)
    return ObservedRows(rows, np.ones_like(rows, bool) if block.host.seen is None else block.host.seen)
