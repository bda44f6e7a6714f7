"""How much an edge between near samples counts."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.preprocessing import normalize

from gwntf.core import FloatArray
from gwntf.data import Block, DataTensor, pieces
from gwntf.geometry.pairwise import ObservedRows, near_one

GRAPH_WEIGHTS = ("binary", "cosine", "self-tuning")

SCALE_NEIGHBOR = 7
"""The neighbour whose distance is the scale of a sample."""

_BATCH = 4096


class Ends(NamedTuple):
    """The samples at one end of the edges, and the scale of each."""

    tensor: DataTensor
    scale: FloatArray


def edge_weights(weight: str, distance: FloatArray, index: NDArray[np.intp], own: Ends, other: Ends) -> FloatArray:
    """Weigh the edges from every sample of `own` to the samples of `other` at `index`, at these distances.

    "binary" is one, "cosine" the cosine of the two samples, "self-tuning" exp(-d_ij^2 / (s_i s_j)).
    """
    if weight == "self-tuning":
        return _self_tuning(distance, own.scale[:, None] * other.scale[index])
    if weight == "cosine":
        if own.tensor.complete and other.tensor.complete:
            return _cosines(own.tensor, other.tensor, index)
        return _shared_cosines(observed_rows(own.tensor), observed_rows(other.tensor), index)
    return np.ones_like(distance)


def _self_tuning(near: FloatArray, product: FloatArray) -> FloatArray:
    """exp(-d_ij^2 / (s_i s_j)); equal samples have weight one even where a scale is zero."""
    ratio = np.divide(near**2, product, out=np.full_like(near, np.inf), where=product > 0)
    return np.where(near == 0, 1.0, np.exp(-ratio))


def _cosines(own: DataTensor, other: DataTensor, index: NDArray[np.intp]) -> FloatArray:
    """Cosine of every sample with its neighbours; samples of zeros have none."""
    rows = own.stacked(_unit_rows)
    others = rows if other is own else other.stacked(_unit_rows)
    cosines = np.empty(index.shape)
    for part in pieces(len(index), _BATCH):
        for place, column in enumerate(index[part].T):
            near = others[column]
            product = rows[part].multiply(near) if issparse(near) else rows[part] * near
            cosines[part, place] = np.asarray(product.sum(axis=1)).ravel()
    return np.clip(cosines, 0, 1)


def _unit_rows(block: Block) -> Any:
    """Scale the samples of a block, as rows, dense or sparse, to length one; zeros stay zeros."""
    parts = [normalize(near_one(rows)) for _, rows in block.wide_rows()]
    return csr_array(parts[0]) if block.sparse else np.concatenate(parts)


def _shared_cosines(own: ObservedRows, other: ObservedRows, index: NDArray[np.intp]) -> FloatArray:
    """Cosine of every sample with its neighbours, over the entries that both have."""
    rows, others = near_one(own.values), near_one(other.values)
    cosines = np.zeros(index.shape)
    for place, column in enumerate(index.T):
        near, near_seen = others[column], other.observed[column]
        product = (rows * near).sum(axis=1)
        squares = (rows**2 * near_seen).sum(axis=1) * (near**2 * own.observed).sum(axis=1)
        np.divide(product, np.sqrt(squares), out=cosines[:, place], where=squares > 0)
    return np.clip(cosines, 0, 1)


def observed_rows(tensor: DataTensor) -> ObservedRows:
    """Return one row per sample in float64, and which entries of it were observed; data are dense and in memory."""
    block = tensor.dense_block
    if block is None:
        raise TypeError("samples with missing entries are compared in memory only")
    rows: FloatArray = block.host.rows.astype(np.float64)
    return ObservedRows(rows, np.ones_like(rows, bool) if block.host.seen is None else block.host.seen)
