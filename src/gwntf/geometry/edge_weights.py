"""How much an edge between near samples counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from gwntf.core import FloatArray
from gwntf.geometry.pairwise import near_one
from gwntf.geometry.stored import neighbor_cosines
from gwntf.data import ChunkedTensor, DataTensor, NonnegativeTensor, SparseTensor

GRAPH_WEIGHTS = ("binary", "cosine", "self-tuning")

SCALE_NEIGHBOR = 7
"""The neighbour whose distance is the scale of a sample."""


class Ends(NamedTuple):
    """The samples at one end of the edges, and the scale of each."""

    tensor: DataTensor
    scale: FloatArray


def edge_weights(
    weight: str, distance: FloatArray, index: NDArray[np.intp], own: Ends, other: Ends
) -> FloatArray:
    """Weigh the edges from every sample of `own` to the samples of `other` at `index`, at these distances.

    "binary" is one, "cosine" the cosine of the two samples, "self-tuning" exp(-d_ij^2 / (s_i s_j)).
    """
    if weight == "self-tuning":
        return _self_tuning(distance, own.scale[:, None] * other.scale[index])
    if weight == "cosine":
        if isinstance(own.tensor, ChunkedTensor) or isinstance(other.tensor, ChunkedTensor):
            return _chunked_cosines(own.tensor, index)
        if isinstance(own.tensor, SparseTensor) or isinstance(other.tensor, SparseTensor):
            return _sparse_cosines(own.tensor, index)
        return _cosines(own.tensor, other.tensor, index)
    return np.ones_like(distance)


def _self_tuning(near: FloatArray, product: FloatArray) -> FloatArray:
    """exp(-d_ij^2 / (s_i s_j)); equal samples have weight one even where a scale is zero."""
    ratio = np.divide(near**2, product, out=np.full_like(near, np.inf), where=product > 0)
    return np.where(near == 0, 1.0, np.exp(-ratio))


def _cosines(own: NonnegativeTensor, other: NonnegativeTensor, index: NDArray[np.intp]) -> FloatArray:
    """Cosine of every sample with its neighbours, over the entries that both have."""
    (rows, seen), (others, others_seen) = observed_rows(own), observed_rows(other)
    rows, others = near_one(rows), near_one(others)
    cosines = np.zeros(index.shape)
    for place, column in enumerate(index.T):
        near, near_seen = others[column], others_seen[column]
        product = (rows * near).sum(axis=1)
        squares = (rows**2 * near_seen).sum(axis=1) * (near**2 * seen).sum(axis=1)
        np.divide(product, np.sqrt(squares), out=cosines[:, place], where=squares > 0)
    return np.clip(cosines, 0, 1)


def _sparse_cosines(tensor: DataTensor, index: NDArray[np.intp]) -> FloatArray:
    """Cosine of every sample of a sparse tensor with its neighbours among them; zeros have none with each other."""
    if not isinstance(tensor, SparseTensor):
        raise TypeError("sparse samples are compared with each other only")
    rows = normalize(near_one(tensor.slices(0).astype(np.float64)))
    shared = [rows.multiply(rows[column]).sum(axis=1) for column in index.T]
    cosines: FloatArray = np.clip(np.stack(shared, axis=1), 0, 1)
    return cosines


def _chunked_cosines(tensor: DataTensor, index: NDArray[np.intp]) -> FloatArray:
    """Cosine of every sample of a chunked tensor with its neighbours among them."""
    if not isinstance(tensor, ChunkedTensor):
        raise TypeError("samples that go by in blocks are compared with each other only")
    return neighbor_cosines(tensor, index)


def observed_rows(tensor: NonnegativeTensor) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return one row per sample in float64, and which entries of it were observed."""
    rows: FloatArray = tensor.values.reshape(len(tensor.values), -1).astype(np.float64)
    seen = np.ones_like(rows, bool) if tensor.observed is None else tensor.observed.reshape(rows.shape)
    return rows, seen
