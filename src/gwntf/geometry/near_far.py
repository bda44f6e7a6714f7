"""A cost between many elements that needs no N x N matrix: exact between near pairs, expanded between far ones.

The elements are put into clusters with centres m. Between an element i of cluster c and j of cluster d the cost is
expanded around the centres,

    c_ij ~ c(x_i, m_d) + c(m_c, x_j) - c(m_c, m_d) = H[i, d] + H[j, c];

near pairs, found by a neighbour search, have their exact costs. `docs/mathematics.md` has the error and the kernel.
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
"""Neighbours of each element whose costs are exact."""

_SUBSET, _CLUSTERED, _ROUNDS = 2048, 20_000, 10
_BATCH, _PAIRS = 4096, 256


@dataclass(frozen=True, eq=False)
class NearFarCost:
    """A cost as `near_far_parts` builds it; elements are sorted by cluster.

    Attributes
    ----------
    order : (N,) array
        Which element is at the k-th place; all else is by place.
    bounds : (C + 1,) array
        Where each cluster begins.
    half : (N, C) array
        H: the cost between places i and j of clusters c and d is H[i, d] + H[j, c] unless they are near.
    near : csr_array
        Exact costs of near pairs, each place with itself among them; symmetric.
    error : float
        Estimate of the relative error that the expansion makes in the model marginal; NaN before it is measured.
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
        """Cluster of each place."""
        return np.repeat(np.arange(self.n_clusters), np.diff(self.bounds))

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.bounds) - 1

    def far(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> FloatArray:
        """Return the expanded costs between places, near or not."""
        left = self.half[np.ix_(rows, self.cluster[columns])]
        right = self.half[np.ix_(columns, self.cluster[rows])].T
        expanded: FloatArray = left.astype(np.float64) + right
        return expanded

    def places(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> FloatArray:
        """Costs between places."""
        costs = self.far(rows, columns)
        part = self.near[rows][:, columns].tocoo()
        costs[part.row, part.col] = part.data
        return costs

    def to_matrix(self) -> FloatArray:
        """Return the full cost matrix, for solvers that need one; elements in their own order."""
        everywhere = np.arange(self.size)
        matrix = np.empty((self.size, self.size))
        matrix[np.ix_(self.order, self.order)] = self.places(everywhere, everywhere)
        return matrix


class Points:
    """Elements as rows of numbers, with a cost between any two of them or between one and a centre.

    `features`, (N, M), in memory or in a file, are directions for "cosine" (1 - cos) and the elements themselves for
    "euclidean" (the distance divided by the largest one in a seeded subset). `elements` is a function that returns some
    elements, by their indices, as rows of the data.
    """

    def __init__(self, features: FloatArray, metric: str, elements: Callable[[NDArray[np.intp]], FloatArray]) -> None:
        self.features, self.metric, self.elements, self._scale = features, metric, elements, 1.0
        if metric == "euclidean":
            subset = np.random.default_rng(0).permutation(len(features))[:_SUBSET]
            largest = float(euclidean_distances(features[subset]).max())
            self._scale = 1 / largest if largest > 0 else 1.0

    @classmethod
    def of_rows(cls, rows: FloatArray, metric: str) -> Points:
        """Return the rows of a matrix."""
        return cls(directions(rows) if metric == "cosine" else rows, metric, rows.__getitem__)

    def __len__(self) -> int:
        return len(self.features)

    def cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Costs between features or centres of features."""
        if self.metric == "cosine":
            product: FloatArray = 1 - left.astype(np.float64) @ right.T
            return product
        distances: FloatArray = self._scale * euclidean_distances(left, right)
        return distances

    def pairs(self, left: NDArray[np.intp], right: NDArray[np.intp]) -> FloatArray:
        """Costs of pairs of elements, exact and between zero and one for the cosine."""
        costs = np.empty(left.shape)
        for part in pieces(len(left), _PAIRS):
            a, b = self.features[left[part]].astype(np.float64), self.features[right[part]]
            if self.metric == "cosine":
                costs[part] = 1 - np.einsum("ij,ij->i", a, b)
            else:
                costs[part] = self._scale * np.sqrt(np.einsum("ij,ij->i", a - b, a - b))
        return np.where(left == right, 0.0, np.clip(costs, 0, 1 if self.metric == "cosine" else None))


def near_pairs(points: Points, count: int) -> csr_array:
    """Exact costs between every element, itself and its nearest others; symmetric."""
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
    """Cluster the elements, on one thread as several would round otherwise, and expand costs around the centres."""
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
    """Sum the rows with each label, in float64, a batch of rows at a time."""
    sums = np.zeros((int(labels.max()) + 1, rows.shape[1]))
    for part in pieces(len(rows), _BATCH):
        size = part.stop - part.start
        joins = csr_array((np.ones(size), (labels[part], np.arange(size))), shape=(len(sums), size))
        sums += joins @ rows[part].astype(np.float64)
    return sums
