"""Distances between rows, also where entries are missing.

"cosine" is 1 - cos and "euclidean" the Euclidean distance. Where entries are missing a pair is compared on
what both rows have: the cosine of the shared parts, and the Euclidean distance scaled up to the full length.
A pair that shares nothing is at the largest distance: 1, or the largest one found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import cosine_distances, euclidean_distances, nan_euclidean_distances

from gwntf.core import FloatArray

Mask = NDArray[np.bool_]


def pairwise_distances(
    rows: FloatArray, observed: Mask | None, metric: str, block: slice | None = None
) -> FloatArray:
    """Distances of the rows in `block` (all, by default) from all rows, in float64."""
    block = slice(None) if block is None else block
    rows = rows.astype(np.float64)
    if observed is None:
        between = cosine_distances if metric == "cosine" else euclidean_distances
        distances: FloatArray = between(rows[block], rows)
        return distances
    if metric == "cosine":
        return _shared_cosine(rows, observed, block)
    holed = np.where(observed, rows, np.nan)
    shared: FloatArray = nan_euclidean_distances(holed[block], holed)
    filled: FloatArray = np.where(np.isnan(shared), np.nanmax(shared), shared)
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
