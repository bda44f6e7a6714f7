"""Nearest neighbours among rows, exact for as long as that is affordable."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, hstack, issparse
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from gwntf.core import FloatArray

_log = logging.getLogger(__name__)

EXACT_LIMIT = 20_000
"""Above so many rows pynndescent searches, where it is installed: all pairs take a time that grows as N^2."""


def nearest_rows(
    features: FloatArray | csr_array, count: int, metric: str = "euclidean"
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Distances and indices of the nearest other rows, in order; each row's own place left out.

    `metric` is "euclidean" or "manhattan".
    """
    size = features.shape[0]
    if size > EXACT_LIMIT and find_spec("pynndescent") is not None:
        return _approximate(features, count, metric)
    if size > EXACT_LIMIT:
        _log.info("comparing all pairs of %d samples; with pynndescent this takes less time", size)
    search = NearestNeighbors(n_neighbors=count, algorithm="brute", metric=metric).fit(features)
    distance, index = search.kneighbors()
    return distance, index


def directions(rows: FloatArray) -> FloatArray:
    """Rows scaled to length one, whose Euclidean distances order pairs as their cosines do.

    A row of zeros has no direction; an extra coordinate makes it orthogonal to all others.
    """
    empty = ~rows.any(axis=1)
    if empty.any():
        rows = np.column_stack([rows, empty.astype(rows.dtype)])
    scaled: FloatArray = normalize(rows)
    return scaled


def sparse_directions(rows: csr_array) -> csr_array:
    """`directions` of sparse rows."""
    empty = np.diff(rows.indptr) == 0
    if empty.any():
        rows = hstack([rows, csr_array(empty[:, None].astype(rows.dtype))], format="csr")
    return csr_array(normalize(rows))


def _old_type(rows: Any) -> Any:
    """Return sparse rows as the matrix type that pynndescent knows, sorted as it wants them."""
    parts: Any = (rows.data, rows.indices, rows.indptr)
    matrix = csr_matrix(parts, shape=rows.shape)
    matrix.sort_indices()
    return matrix


def _approximate(
    features: FloatArray | csr_array, count: int, metric: str
) -> tuple[FloatArray, NDArray[np.intp]]:
    from pynndescent import NNDescent

    size = features.shape[0]
    rows: Any = features.astype(np.float32, copy=False)
    if issparse(rows):
        rows = _old_type(rows)
    index = NNDescent(rows, metric=metric, n_neighbors=count + 1, random_state=0)
    neighbors, distances = index.neighbor_graph
    own = neighbors == np.arange(size)[:, None]
    own[~own.any(axis=1), -1] = True
    keep = ~own
    shape = (size, count)
    return distances[keep].reshape(shape).astype(np.float64), neighbors[keep].reshape(shape).astype(np.intp)
