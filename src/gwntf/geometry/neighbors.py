"""Distances between rows, also with missing entries, and nearest neighbours.

"cosine" is 1 - cos and "euclidean" the Euclidean distance. If entries are missing, a pair of rows is compared on the
entries observed in both: the cosine of these parts, and the Euclidean distance scaled up to the full length. A pair
without common entries has the largest possible distance: 1, or the sum of the two norms.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, hstack, issparse
from sklearn.metrics.pairwise import nan_euclidean_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from threadpoolctl import ThreadpoolController, threadpool_limits

from gwntf.core import FloatArray
from gwntf.data import pieces

_log = logging.getLogger(__name__)

NOISE = 1e-7
"""Distances below this fraction of the rows' length are rounding errors of the fast formula and are set to zero."""

EXACT_LIMIT = 20_000
"""Number of rows above which pynndescent is used, if it is installed: comparing all pairs takes O(N^2) time."""

_ROWS, _BLOCK_ENTRIES = 2048, 2**24
"""Rows per batch of the exact search, and distances per batch of the search with missing entries."""


class ObservedRows(NamedTuple):
    """Rows in float64, zero where nothing was observed, and the mask of observed entries."""

    values: FloatArray
    observed: NDArray[np.bool_]

    def part(self, which: slice) -> ObservedRows:
        """Return a slice of the rows."""
        return ObservedRows(self.values[which], self.observed[which])


def near_one(rows: Any) -> Any:
    """Divide each row, dense or sparse, by the power of two that brings its largest entry near one.

    The division is exact, and prevents overflow and underflow of squares.
    """
    if isinstance(rows, np.ndarray):
        return np.ldexp(rows, -np.frexp(rows.max(axis=1))[1][:, None])
    exponent = np.frexp(rows.max(axis=1).toarray().ravel())[1]
    scaled = rows.copy()
    scaled.data = np.ldexp(rows.data, -np.repeat(exponent, np.diff(rows.indptr)))
    return scaled


def row_length(rows: FloatArray | csr_array) -> float:
    """Return the Euclidean length of the longest row."""
    if isinstance(rows, np.ndarray):
        return float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))
    return float(np.sqrt((rows**2).sum(axis=1).max()))


def distances_of(products: FloatArray, exponents: NDArray[np.int32], metric: str) -> FloatArray:
    """Return the distances between rows from the inner products of the rows divided by 2^e_i."""
    squares = np.diag(products)
    if metric == "cosine":
        sizes = np.sqrt(squares[:, None] * squares)
        cosines = np.divide(products, sizes, out=np.zeros_like(products), where=sizes > 0)
        distances: FloatArray = np.clip(1 - cosines, 0, 2)
    else:
        top = int(exponents.max())
        below = exponents - top
        squares = np.ldexp(squares, 2 * below)
        products = np.ldexp(products, below[:, None] + below)
        distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * products, 0))
        distances[distances < NOISE * np.sqrt(squares.max())] = 0
        distances = np.ldexp(distances, top)
    np.fill_diagonal(distances, 0)
    return distances


def shared_distances(some: ObservedRows, others: ObservedRows, metric: str) -> FloatArray:
    """Return the distances between two sets of rows over entries observed in both, in float64.

    Runs on one thread, since the rounding depends on the number of threads.
    """
    compare = _shared_cosine if metric == "cosine" else _shared_euclidean
    with threadpool_limits(1):
        return compare(some, others)


def _shared_euclidean(some: ObservedRows, others: ObservedRows) -> FloatArray:
    holed = [np.where(rows.observed, rows.values, np.nan) for rows in (some, others)]
    shared: FloatArray = nan_euclidean_distances(*holed)
    filled: FloatArray = np.where(np.isnan(shared), _full_norms(some)[:, None] + _full_norms(others), shared)
    filled[filled < NOISE * row_length(others.values)] = 0
    return filled


def _full_norms(rows: ObservedRows) -> FloatArray:
    """Return the norms, extrapolated to the full length of the rows."""
    part = np.maximum(rows.observed.mean(axis=1), 1 / rows.values.shape[1])
    norms: FloatArray = np.sqrt((rows.values**2).sum(axis=1) / part)
    return norms


def _shared_cosine(some: ObservedRows, others: ObservedRows) -> FloatArray:
    (rows, seen), (against, against_seen) = ((near_one(part.values), part.observed) for part in (some, others))
    sizes = np.sqrt((rows**2 @ against_seen.T) * (seen @ (against**2).T))
    product = rows @ against.T
    cosine = np.divide(product, sizes, out=np.zeros_like(product), where=sizes > 0)
    distances: FloatArray = np.clip(1 - cosine, 0, 1)
    return distances


def nearest_rows(
    features: FloatArray | csr_array, count: int, metric: str = "euclidean"
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return distances and indices of the nearest other rows, nearest first; a row is not its own neighbour.

    `metric` is "euclidean" or "manhattan".
    """
    size = features.shape[0]
    if size > EXACT_LIMIT and find_spec("pynndescent") is not None:
        return _approximate(features, count, metric)
    if size > EXACT_LIMIT:
        _log.info("comparing all pairs of %d samples; install pynndescent for a faster approximate search", size)
    distance, index = nearest_of(features, features, count + 1, metric)
    return _without_own(distance, index)


def nearest_of(
    rows: FloatArray | csr_array, others: FloatArray | csr_array, count: int, metric: str = "euclidean"
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return distances and indices of the `others` nearest to each row, nearest first, by comparing all pairs.

    Threads process batches of rows. Ties between equal distances may be broken differently in other batches, so the
    batches do not depend on the number of threads.
    """
    search = NearestNeighbors(n_neighbors=count, algorithm="brute", metric=metric).fit(others)
    libraries = ThreadpoolController()
    openmp = libraries.select(user_api="openmp")

    def visit(block: slice) -> tuple[FloatArray, NDArray[np.intp]]:
        with openmp.limit(limits=1):  # the OpenMP limit is per thread
            distance, index = search.kneighbors(rows[block])
        return distance, index

    workers = max(library.num_threads for library in libraries.lib_controllers)
    with libraries.limit(limits=1), ThreadPoolExecutor(workers) as pool:
        distances, indices = zip(*pool.map(visit, pieces(rows.shape[0], _ROWS)), strict=True)
    return np.concatenate(distances), np.concatenate(indices)


def _without_own(distance: FloatArray, index: NDArray[np.intp]) -> tuple[FloatArray, NDArray[np.intp]]:
    """Remove each row from its own neighbours, or the last neighbour where the row is not among them."""
    other = index != np.arange(len(index))[:, None]
    other[other.all(axis=1), -1] = False
    shape = (len(index), index.shape[1] - 1)
    return distance[other].reshape(shape), index[other].reshape(shape)


def directions(rows: Any, always: bool = False) -> Any:
    """Scale rows, dense or sparse, to length one, so that Euclidean distances order pairs as cosines do.

    A row of zeros has no direction. An extra coordinate, added if there is such a row or `always`, makes it orthogonal
    to all other rows.
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
    """Return distances and indices of the `others` nearest to each row over entries observed in both, nearest first.

    Without `others` the rows are compared with each other; a row is not its own neighbour. All pairs are compared, in
    batches. For "cosine" the distance is the Euclidean distance between directions.
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


def _approximate(features: FloatArray | csr_array, count: int, metric: str) -> tuple[FloatArray, NDArray[np.intp]]:
    from pynndescent import NNDescent

    rows: Any = features.astype(np.float32, copy=False)
    if issparse(features):  # pynndescent requires a csr_matrix with sorted indices
        rows = csr_matrix((rows.data, rows.indices, rows.indptr), shape=rows.shape)
        rows.sort_indices()
    index = NNDescent(rows, metric=metric, n_neighbors=count + 1, random_state=0)
    neighbors, distances = index.neighbor_graph
    near, found = _without_own(distances, neighbors)
    return near.astype(np.float64), found.astype(np.intp)
