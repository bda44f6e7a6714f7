"""Nearest neighbours among rows, exact for as long as that is affordable."""

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
from gwntf.data import pieces
from gwntf.geometry.pairwise import NOISE, ObservedRows, near_one, row_length, shared_distances

_log = logging.getLogger(__name__)

EXACT_LIMIT = 20_000
"""Above so many rows pynndescent searches, where it is installed: all pairs take a time that grows as N^2."""

_ROWS, _BLOCK_ENTRIES = 2048, 2**24
"""Rows that are compared with all others at a time, and distances that are held where entries are missing."""


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


def directions(rows: Any, always: bool = False) -> Any:
    """Rows, dense or sparse, scaled to length one: their Euclidean distances order pairs as their cosines do.

    A row of zeros has no direction; an extra coordinate, there if it is needed or `always`, makes it orthogonal to all
    others.
    """
    sparse = issparse(rows)
    empty = np.diff(rows.indptr) == 0 if sparse else ~rows.any(axis=1)
    if always or empty.any():
        extra = empty.astype(rows.dtype)[:, None]
        rows = hstack([rows, csr_array(extra)], format="csr") if sparse else np.hstack([rows, extra])
    scaled = normalize(near_one(rows))
    return csr_array(scaled) if sparse else scaled


def nearest_shared(
    rows: ObservedRows, others: ObservedRows | None, count: int, metric: str
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Distances and indices of those `others` that are nearest to each row on the entries that both have, in order.

    Without others they are compared with each other, each row's own place left out. All pairs are compared, a block of
    rows at a time; the distance of directions is that of "cosine".
    """
    against = rows if others is None else others
    distances, indices = [], []
    for block in pieces(len(rows.values), max(1, _BLOCK_ENTRIES // len(against.values))):
        distance = shared_distances(rows.part(block), against, metric)
        if metric == "cosine":
            distance = np.sqrt(2 * distance)
        if others is None:
            distance[np.arange(block.stop - block.start), np.arange(block.start, block.stop)] = np.inf
        order = np.argsort(distance, axis=1, kind="stable")[:, :count]
        distances.append(np.take_along_axis(distance, order, axis=1))
        indices.append(order)
    length = 1.0 if metric == "cosine" else row_length(against.values)
    near = np.concatenate(distances)
    return np.where(near < NOISE * length, 0, near), np.concatenate(indices)


def _old_type(rows: Any) -> Any:
    """Return sparse rows as the matrix type that pynndescent knows, sorted as it wants them."""
    parts: Any = (rows.data, rows.indices, rows.indptr)
    matrix = csr_matrix(parts, shape=rows.shape)
    matrix.sort_indices()
    return matrix


def _approximate(features: FloatArray | csr_array, count: int, metric: str) -> tuple[FloatArray, NDArray[np.intp]]:
    from pynndescent import NNDescent

    rows: Any = features.astype(np.float32, copy=False)
    if issparse(rows):
        rows = _old_type(rows)
    index = NNDescent(rows, metric=metric, n_neighbors=count + 1, random_state=0)
    neighbors, distances = index.neighbor_graph
    near, found = _without_own(distances, neighbors)
    return near.astype(np.float64), found.astype(np.intp)
