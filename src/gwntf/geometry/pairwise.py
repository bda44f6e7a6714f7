"""Distances between rows, also where entries are missing.

"cosine" is 1 - cos and "euclidean" the Euclidean distance. Where entries are missing a pair is compared on what both
rows have: the cosine of the shared parts, and the Euclidean distance scaled up to the full length. A pair that shares
nothing is as far apart as can be: 1, or the sum of the two norms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import nan_euclidean_distances
from threadpoolctl import threadpool_limits

from gwntf.core import FloatArray

NOISE = 1e-7
"""Distances below this part of the rows' length are rounding errors of the fast formula, and count as zero."""


class ObservedRows(NamedTuple):
    """Rows in float64, zero where nothing was observed, and which of their entries were."""

    values: FloatArray
    observed: NDArray[np.bool_]

    def part(self, which: slice) -> ObservedRows:
        """Return some of the rows."""
        return ObservedRows(self.values[which], self.observed[which])


def near_one(rows: Any) -> Any:
    """Divide each row, dense or sparse, by the power of two that brings its largest entry near one.

    That is exact, and no square leaves the range of the numbers.
    """
    if isinstance(rows, np.ndarray):
        return np.ldexp(rows, -np.frexp(rows.max(axis=1))[1][:, None])
    exponent = np.frexp(rows.max(axis=1).toarray().ravel())[1]
    scaled = rows.copy()
    scaled.data = np.ldexp(rows.data, -np.repeat(exponent, np.diff(rows.indptr)))
    return scaled


def row_length(rows: FloatArray | csr_array) -> float:
    """Length of the longest row."""
    if isinstance(rows, np.ndarray):
        return float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))
    return float(np.sqrt((rows**2).sum(axis=1).max()))


def distances_of(products: FloatArray, exponents: NDArray[np.int32], metric: str) -> FloatArray:
    """Distances between rows of which only inner products are known, of row i divided by 2^e_i."""
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
    """Distances of some rows from others on what both have, in float64. One thread: several would round otherwise."""
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
    """Norms as if the missing entries were like those observed."""
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
