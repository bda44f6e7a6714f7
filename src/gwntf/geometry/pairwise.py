"""Distances between rows, also where entries are missing.

"cosine" is 1 - cos and "euclidean" the Euclidean distance. Where entries are missing a pair is compared on what both
rows have: the cosine of the shared parts, and the Euclidean distance scaled up to the full length. A pair that shares
nothing is as far apart as can be: 1, or the sum of the two norms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.metrics.pairwise import cosine_distances, euclidean_distances, nan_euclidean_distances
from threadpoolctl import threadpool_limits

from gwntf.core import FloatArray

Mask = NDArray[np.bool_]

NOISE = 1e-7
"""Distances below this part of the rows' length are rounding errors of the fast formula, and count as zero."""


def pairwise_distances(
    rows: FloatArray | csr_array, observed: Mask | None, metric: str, block: slice | None = None
) -> FloatArray:
    """Distances of the rows in `block` (all, by default) from all rows, in float64; zero from themselves.

    One thread: several would round otherwise.
    """
    block = slice(*(slice(None) if block is None else block).indices(rows.shape[0]))
    rows = rows.astype(np.float64)
    if metric == "cosine":
        rows = near_one(rows)
        whole, shared = cosine_distances, _shared_cosine
    else:
        whole, shared = euclidean_distances, _shared_euclidean
    with threadpool_limits(1):
        if observed is None or issparse(rows):
            distances = whole(rows[block], rows)
        else:
            distances = shared(np.asarray(rows), observed, block)
    here = np.arange(block.stop - block.start)
    distances[here, here + block.start] = 0
    if metric == "euclidean":
        distances[distances < NOISE * row_length(rows)] = 0
    result: FloatArray = distances
    return result


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


def distances_of(products: FloatArray, metric: str) -> FloatArray:
    """Distances between rows of which only the inner products are known."""
    squares = np.diag(products)
    if metric == "cosine":
        sizes = np.sqrt(squares[:, None] * squares)
        cosines = np.divide(products, sizes, out=np.zeros_like(products), where=sizes > 0)
        distances: FloatArray = np.clip(1 - cosines, 0, 2)
    else:
        distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * products, 0))
        distances[distances < NOISE * np.sqrt(squares.max())] = 0
    np.fill_diagonal(distances, 0)
    return distances


def _shared_euclidean(rows: FloatArray, observed: Mask, block: slice) -> FloatArray:
    holed = np.where(observed, rows, np.nan)
    shared: FloatArray = nan_euclidean_distances(holed[block], holed)
    norms = np.sqrt((rows**2).sum(axis=1) / np.maximum(observed.mean(axis=1), 1 / rows.shape[1]))
    filled: FloatArray = np.where(np.isnan(shared), norms[block, None] + norms, shared)
    return filled


def _shared_cosine(rows: FloatArray, observed: Mask, block: slice) -> FloatArray:
    mask = observed.astype(np.float64)
    squares = rows**2
    product = rows[block] @ rows.T
    own, other = squares[block] @ mask.T, mask[block] @ squares.T
    size = np.sqrt(own * other)
    cosine = np.divide(product, size, out=np.zeros_like(product), where=size > 0)
    distances: FloatArray = np.clip(1 - cosine, 0, 1)
    return distances
