"""The p-nearest-neighbour graph on the samples: symmetric, sparse, full CSR."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse, triu

from gwntf.core import Array, FloatArray, InputError
from gwntf.backends import Backend, get_backend
from gwntf.geometry.edge_weights import GRAPH_WEIGHTS, SCALE_NEIGHBOR, Ends, edge_weights
from gwntf.geometry.features import (
    GRAPH_METRICS,
    GraphMetric,
    check_complete,
    graph_features,
    sparse_features,
)
from gwntf.geometry.neighbors import nearest_rows
from gwntf.geometry.pairwise import NOISE, pairwise_distances, row_length
from gwntf.geometry.stored import stored_features
from gwntf.data import (
    ChunkedTensor,
    DataTensor,
    NonnegativeTensor,
    SparseTensor,
    as_chunked_tensor,
    as_real_array,
    as_sparse_tensor,
    as_tensor,
    is_sparse,
    whole_or_streamed,
)

_BLOCK_ENTRIES = 2**24


@dataclass(frozen=True)
class SampleGraph:
    """A graph on the backend, with its weight mu in the objective.

    Attributes
    ----------
    weight : float
        mu, `graph_reg` of the public classes.
    matrix : the backend's sparse matrix
        V, symmetric; ``matrix @ A`` is the only product needed.
    degree : (N, 1) array
        d_i = sum_j V_ij.
    edges : tuple of arrays
        (i, j, V_ij) for i < j.
    """

    weight: float
    matrix: Array
    degree: Array
    edges: tuple[Array, Array, Array]

    def __sizeof__(self) -> int:
        return int(self.degree.nbytes + 2 * sum(part.nbytes for part in self.edges))


def neighbor_graph(
    X: Any,
    n_neighbors: int = 5,
    *,
    weight: str = "binary",
    metric: GraphMetric = "cosine",
    missing: str = "error",
) -> csr_array:
    """Join every sample to its nearest others and symmetrise by the maximum.

    The graph that the estimators build; made beforehand it goes into their `graph`, so that one graph can serve many
    fits, or the filled data of one fit can give the graph of the next.

    Parameters
    ----------
    X : array-like, sparse array or chunked array of shape (n_samples, I_1, ..., I_{N-1})
        Nonnegative data, samples first. Samples of a sparse array are compared by "cosine" or "euclidean"; a
        `numpy.memmap`, zarr or Dask array is read a block at a time.
    n_neighbors : int
        p; at most the number of other samples is used.
    weight : {"binary", "cosine", "self-tuning"}
        1; the cosine of the two samples; exp(-d_ij^2 / (s_i s_j)) with s_i the distance to the 7th
        neighbour.
    metric : one of `GRAPH_METRICS`, or callable
        Which samples are near: see `features`. Estimators scale samples first (`sample_norm`), which matters to
        "euclidean" and to callables.
    missing : {"error", "ignore"}
        Whether NaN, or the mask of a masked array, is an error or says that an entry was not observed; pairs are
        then compared on what both have.

    Returns
    -------
    csr_array of shape (N, N)

    Examples
    --------
    >>> from gwntf import neighbor_graph
    >>> neighbor_graph([[1.0, 0.0], [2.0, 0.1], [0.0, 3.0], [0.1, 1.0]], 1).toarray().astype(int)
    array([[0, 1, 0, 0],
           [1, 0, 0, 0],
           [0, 0, 0, 1],
           [0, 0, 1, 0]])
    """
    _check_choices(n_neighbors, weight, metric, missing)
    tensor = _as_samples(X, missing)
    size = tensor.shape[0]
    count = min(n_neighbors, size - 1)
    if count < 1:
        return csr_array((size, size), dtype=np.float64)
    scale = min(SCALE_NEIGHBOR, size - 1)
    distance, index = nearest_samples(tensor, max(count, scale), metric)
    ends = Ends(tensor, distance[:, scale - 1])
    neighbor = index[:, :count]
    values = edge_weights(weight, distance[:, :count], neighbor, ends, ends)
    row = np.repeat(np.arange(size), count)
    directed = coo_array((values.ravel(), (row, neighbor.ravel())), shape=(size, size)).tocsr()
    return _tidy(directed.maximum(directed.T))


def _as_samples(X: Any, missing: str) -> DataTensor:
    """Check data, dense, sparse or chunked, unless they have been."""
    if isinstance(X, NonnegativeTensor | SparseTensor | ChunkedTensor):
        return X
    if is_sparse(X):
        return as_sparse_tensor(X)
    whole, streamed = whole_or_streamed(X)
    if streamed:
        return as_chunked_tensor(X, get_backend("numpy"), missing=missing)
    return as_tensor(whole, missing=missing)


def _check_choices(n_neighbors: Any, weight: Any, metric: Any, missing: Any) -> None:
    """Refuse what is not offered, before any work."""
    if not isinstance(n_neighbors, numbers.Integral) or n_neighbors < 1:
        raise InputError("n_neighbors", repr(n_neighbors), "a whole number of at least 1")
    for name, given, choices in (
        ("weight", weight, GRAPH_WEIGHTS),
        ("metric", metric, GRAPH_METRICS),
        ("missing", missing, ("error", "ignore")),
    ):
        if given not in choices and not (name == "metric" and callable(given)):
            raise InputError(name, repr(given), f"one of {', '.join(map(repr, choices))}")


def check_graph(graph: Any, n_samples: int) -> csr_array:
    """Check a ready graph: square, symmetric, nonnegative, one vertex per sample."""
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
        raise InputError("graph", "an asymmetric matrix", "a symmetric one, e.g. graph.maximum(graph.T)")
    return _tidy(matrix)


def place_graph(graph: csr_array, weight: float, backend: Backend, dtype: Any) -> SampleGraph:
    """Bring a graph to the backend, with degrees and edges ready for the updates."""
    upper = triu(graph, k=1).tocoo()
    degree = np.asarray(graph.sum(axis=1)).reshape(-1, 1)
    edges = (
        backend.asarray(upper.row.astype(np.int64)),
        backend.asarray(upper.col.astype(np.int64)),
        backend.asarray(upper.data, np.float64),
    )
    return SampleGraph(float(weight), backend.sparse(graph, dtype), backend.asarray(degree, dtype), edges)


def _tidy(graph: csr_array) -> csr_array:
    """Drop self-loops (they add nothing to the penalty) and stored zeros; short indices, as scikit-learn wants."""
    coo = graph.tocoo()
    keep = (coo.row != coo.col) & (coo.data != 0)
    short = np.int32 if max(coo.nnz, *graph.shape) < 2**31 else np.int64
    places = (coo.row[keep].astype(short), coo.col[keep].astype(short))
    tidy = csr_array((coo.data[keep], places), shape=graph.shape)
    tidy.sort_indices()
    return tidy


def nearest_samples(
    tensor: DataTensor, count: int, metric: GraphMetric
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Distances d and indices of the nearest other samples, in order; each sample's own row left out."""
    check_complete(tensor, metric)
    if isinstance(tensor, SparseTensor):
        rows = sparse_features(tensor, metric)
        distance, index = nearest_rows(rows, count)
        length = row_length(rows)
    elif isinstance(tensor, ChunkedTensor):
        stored, compared = stored_features(tensor, metric)
        distance, index = nearest_rows(stored, count, compared)
        length = row_length(stored)
    elif tensor.observed is None:
        features, compared = graph_features(tensor, metric)
        distance, index = nearest_rows(features, count, compared)
        length = row_length(features)
    else:
        distance, index = _nearest_observed(tensor, count, str(metric))
        length = 1.0 if metric == "cosine" else row_length(tensor.values.reshape(len(tensor.values), -1))
    return np.where(distance < NOISE * length, 0, distance), index


def _nearest_observed(
    tensor: NonnegativeTensor, count: int, metric: str
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Neighbours on the shared entries of each pair, a block of rows at a time."""
    size = len(tensor.values)
    rows = tensor.values.reshape(size, -1)
    observed = tensor.observed.reshape(size, -1) if tensor.observed is not None else None
    step = max(1, _BLOCK_ENTRIES // size)
    distances, indices = [], []
    for start in range(0, size, step):
        block = slice(start, min(start + step, size))
        distance = pairwise_distances(rows, observed, metric, block)
        if metric == "cosine":
            distance = np.sqrt(2 * distance)
        distance[np.arange(block.stop - start), np.arange(start, block.stop)] = np.inf
        order = np.argsort(distance, axis=1, kind="stable")[:, :count]
        distances.append(np.take_along_axis(distance, order, axis=1))
        indices.append(order)
    return np.concatenate(distances), np.concatenate(indices)
