"""Nearest neighbours among rows, exact for as long as that is affordable."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, hstack, issparse
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from threadpoolctl import ThreadpoolController

from gwntf.core import FloatArray
from gwntf.geometry.pairwise import near_one
from gwntf.data import pieces

_log = logging.getLogger(__name__)

EXACT_LIMIT = 20_000
"""Above so many rows pynndescent searches, where it is installed: all pairs take a time that grows as N^2."""


_ROWS = 2048
"""Rows that are compared with all others at a time."""


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
    distance, index = nearest_of(features, features, count + 1, metric)
    return _without_own(distance, index)


def nearest_of(
    rows: FloatArray | csr_array, others: FloatArray | csr_array, count: int, metric: str = "euclidean"
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Distances and indices of those `others` that are nearest to each row, in order: all pairs are compared.

    Every thread takes a block of rows at a time. Which of several others at one distance is found depends on the
    blocks, so these are the same for any number of threads.
    """
    search = NearestNeighbors(n_neighbors=count, algorithm="brute", metric=metric).fit(others)
    libraries = ThreadpoolController()
    openmp = libraries.select(user_api="openmp")

    def visit(block: slice) -> tuple[FloatArray, NDArray[np.intp]]:
        with openmp.limit(limits=1):  # each thread has a limit of its own
            distance, index = search.kneighbors(rows[block])
        return distance, index

    workers = max(library.num_threads for library in libraries.lib_controllers)
    with libraries.limit(limits=1), ThreadPoolExecutor(workers) as pool:
        distances, indices = zip(*pool.map(visit, pieces(rows.shape[0], _ROWS)), strict=True)
    return np.concatenate(distances), np.concatenate(indices)


def _without_own(distance: FloatArray, index: NDArray[np.intp]) -> tuple[FloatArray, NDArray[np.intp]]:
    """Leave each row's own place out; where it was not found, the last one."""
    other = index != np.arange(len(index))[:, None]
    other[other.all(axis=1), -1] = False
    shape = (len(index), index.shape[1] - 1)
    return distance[other].reshape(shape), index[other].reshape(shape)


def directions(rows: FloatArray) -> FloatArray:
    """Rows scaled to length one, whose Euclidean distances order pairs as their cosines do.

    A row of zeros has no direction; an extra coordinate makes it orthogonal to all others.
    """
    empty = ~rows.any(axis=1)
    if empty.any():
        rows = np.column_stack([rows, empty.astype(rows.dtype)])
    scaled: FloatArray = normalize(near_one(rows))
    return scaled


def sparse_directions(rows: csr_array) -> csr_array:
    """`directions` of sparse rows."""
    empty = np.diff(rows.indptr) == 0
    if empty.any():
        rows = hstack([rows, csr_array(empty[:, None].astype(rows.dtype))], format="csr")
    return csr_array(normalize(near_one(rows)))


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

    rows: Any = features.astype(np.float32, copy=False)
    if issparse(rows):
        rows = _old_type(rows)
    index = NNDescent(rows, metric=metric, n_neighbors=count + 1, random_state=0)
    neighbors, distances = index.neighbor_graph
    near, found = _without_own(distances, neighbors)
    return near.astype(np.float64), found.astype(np.intp)
