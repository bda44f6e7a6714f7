"""A cost between many elements without an N x N matrix: exact for near pairs, expanded for far pairs.

The elements are grouped into clusters with centres m. Between an element i of cluster c and j of cluster d the cost is
expanded around the centres,

    c_ij ~ c(x_i, m_d) + c(m_c, x_j) - c(m_c, m_d) = H[i, d] + H[j, c];

for near pairs, found by a neighbour search, the exact cost is stored. `docs/mathematics.md` derives the error and the
kernel.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits

from gwntf.core import FloatArray
from gwntf.data import pieces
from gwntf.geometry.neighbors import directions, nearest_rows

N_NEAR = 40
"""Number of neighbours of each element with exact costs."""

_SUBSET, _CLUSTERED, _ROUNDS = 2048, 20_000, 10
_BATCH, _PAIRS = 4096, 256


@dataclass(frozen=True, eq=False)
class NearFarCost:
    """A cost built by `near_far_parts`. All arrays but `order` are sorted by cluster.

    Attributes
    ----------
    order : (N,) array
        Index of the k-th element in sorted order.
    bounds : (C + 1,) array
        Index at which each cluster begins.
    half : (N, C) array
        H: the cost between elements i and j of clusters c and d is H[i, d] + H[j, c] unless they are near.
    near : csr_array
        Exact costs of near pairs, including the diagonal; symmetric.
    error : float
        Estimate of the relative error of the model marginal due to the expansion; NaN before it is measured.
    """

    order: NDArray[np.int64]
    bounds: NDArray[np.int64]
    half: FloatArray
    near: csr_array
    error: float = float("nan")

    @property
    def size(self) -> int:
        """Number of elements."""
        return len(self.order)

    @cached_property
    def cluster(self) -> NDArray[np.int64]:
        """Cluster of each element, in sorted order."""
        return np.repeat(np.arange(self.n_clusters), np.diff(self.bounds))

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.bounds) - 1

    def far(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> FloatArray:
        """Return the expanded costs between some elements in sorted order, also for near pairs."""
        left = self.half[np.ix_(rows, self.cluster[columns])]
        right = self.half[np.ix_(columns, self.cluster[rows])].T
        expanded: FloatArray = left.astype(np.float64) + right
        return expanded

    def between(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> FloatArray:
        """Return the costs between some elements in sorted order."""
        costs = self.far(rows, columns)
        part = self.near[rows][:, columns].tocoo()
        costs[part.row, part.col] = part.data
        return costs

    def to_matrix(self) -> FloatArray:
        """Return the full cost matrix in the original order, for solvers that need one."""
        everywhere = np.arange(self.size)
        matrix = np.empty((self.size, self.size))
        matrix[np.ix_(self.order, self.order)] = self.between(everywhere, everywhere)
        return matrix


class Points:
    """Elements as feature vectors, with a cost between any two of them or between one and a centre.

    `features`, (N, M), in memory or in a file, are directions for "cosine" (1 - cos) and the elements themselves for
    "euclidean" (the distance divided by the largest distance in a seeded subset). `elements` is a function that returns
    the elements with given indices as rows of the data.
    """

    def __init__(self, features: FloatArray, metric: str, elements: Callable[[NDArray[np.intp]], FloatArray]) -> None:
        self.features, self.metric, self.elements, self._scale = features, metric, elements, 1.0
        if metric == "euclidean":
            subset = np.random.default_rng(0).permutation(len(features))[:_SUBSET]
            largest = float(euclidean_distances(features[subset]).max())
            self._scale = 1 / largest if largest > 0 else 1.0

    @classmethod
    def of_rows(cls, rows: FloatArray, metric: str) -> Points:
        """Return the points of the rows of a matrix."""
        return cls(directions(rows) if metric == "cosine" else rows, metric, rows.__getitem__)

    def __len__(self) -> int:
        return len(self.features)

    def cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the costs between features or centres of features."""
        if self.metric == "cosine":
            product: FloatArray = 1 - left.astype(np.float64) @ right.T
            return product
        distances: FloatArray = self._scale * euclidean_distances(left, right)
        return distances

    def pairs(self, left: NDArray[np.intp], right: NDArray[np.intp]) -> FloatArray:
        """Return the exact costs of pairs of elements; for the cosine, between zero and one."""
        costs = np.empty(left.shape)
        for part in pieces(len(left), _PAIRS):
            a, b = self.features[left[part]].astype(np.float64), self.features[right[part]]
            if self.metric == "cosine":
                costs[part] = 1 - np.einsum("ij,ij->i", a, b)
            else:
                costs[part] = self._scale * np.sqrt(np.einsum("ij,ij->i", a - b, a - b))
        return np.where(left == right, 0.0, np.clip(costs, 0, 1 if self.metric == "cosine" else None))


def near_pairs(points: Points, count: int) -> csr_array:
    """Return the exact costs between every element and its nearest neighbours, and the diagonal; symmetric."""
    size = len(points)
    count = min(count, size - 1)
    _, index = nearest_rows(points.features, count)
    i, j = np.repeat(np.arange(size), count), index.ravel()
    joined = coo_array((np.ones(len(i), bool), (i, j)), shape=(size, size)).tocsr()
    joined = (joined + joined.T).tocoo()
    away = joined.row < joined.col
    i, j = joined.row[away].astype(np.int64), joined.col[away].astype(np.int64)
    costs = points.pairs(i, j)
    own = np.arange(size)
    rows, columns = np.concatenate([i, j, own]), np.concatenate([j, i, own])
    values = np.concatenate([costs, costs, np.zeros(size)])
    return csr_array((values, (rows, columns)), shape=(size, size))


def near_far_parts(points: Points, near: csr_array, n_clusters: int) -> NearFarCost:
    """Cluster the elements and expand the costs around the centres.

    Runs on one thread, since the rounding depends on the number of threads.
    """
    subset = np.random.default_rng(0).permutation(len(points))[:_CLUSTERED]
    search = KMeans(n_clusters, n_init=1, max_iter=_ROUNDS, random_state=0)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(points.features[subset].astype(np.float64))
    found = search.cluster_centers_.astype(points.features.dtype)
    _, labels = np.unique(pairwise_distances_argmin(points.features, found), return_inverse=True)
    order = np.argsort(labels, kind="stable").astype(np.int64)
    cluster = labels[order].astype(np.int64)
    bounds = np.searchsorted(cluster, np.arange(cluster[-1] + 2)).astype(np.int64)
    centres = _sums_by(labels, points.features) / np.diff(bounds)[:, None]
    half = np.empty((len(points), len(centres)), points.features.dtype)
    with threadpool_limits(1):
        between = points.cost(centres, centres)
        for part in pieces(len(points), _BATCH):
            half[part] = points.cost(points.features[order[part]], centres) - 0.5 * between[cluster[part]]
    sorted_near = near[order][:, order].tocsr()
    sorted_near.sort_indices()
    return NearFarCost(order, bounds, half, sorted_near)


def _sums_by(labels: NDArray[np.intp], rows: FloatArray) -> FloatArray:
    """Return the sum of the rows with each label, in float64, computed in batches."""
    sums = np.zeros((int(labels.max()) + 1, rows.shape[1]))
    for part in pieces(len(rows), _BATCH):
        size = part.stop - part.start
        joins = csr_array((np.ones(size), (labels[part], np.arange(size))), shape=(len(sums), size))
        sums += joins @ rows[part].astype(np.float64)
    return sums
