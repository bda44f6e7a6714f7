"""Leading singular pairs of the sample unfolding, from products with it alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gwntf.core import FloatArray
from gwntf.data import ChunkedTensor, DataTensor

_EXTRA = 10
"""Random directions beyond the pairs that are wanted."""


class Unfolding(Protocol):
    """X_(1), by its products in float64."""

    def times(self, matrix: FloatArray) -> FloatArray:
        """X_(1) times a matrix."""
        ...

    def transposed_times(self, matrix: FloatArray) -> FloatArray:
        """X_(1)' times a matrix."""
        ...


@dataclass(frozen=True)
class _InMemory:
    matrix: Any

    def times(self, matrix: FloatArray) -> FloatArray:
        product: FloatArray = self.matrix @ matrix
        return product

    def transposed_times(self, matrix: FloatArray) -> FloatArray:
        product: FloatArray = self.matrix.T @ matrix
        return product


def sample_unfolding(tensor: DataTensor) -> Unfolding:
    """Return X_(1): as a matrix, dense or sparse, or by the blocks of the tensor."""
    if isinstance(tensor, ChunkedTensor):
        return tensor
    return _InMemory(tensor.on_host.rows.astype(np.float64))


def leading_pairs(
    unfolding: Unfolding, shape: tuple[int, int], count: int, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Leading singular vectors (left ones as columns, right ones as rows) and values of a matrix of that shape.

    Subspace iteration from random directions (N. Halko, P. G. Martinsson and J. A. Tropp, *Finding structure with
    randomness*, SIAM Review 53, 2011, algorithms 4.4 and 5.1), begun on the shorter side.
    """
    forth, back = unfolding.times, unfolding.transposed_times
    wide = shape[0] < shape[1]
    if wide:
        forth, back = back, forth
    basis: FloatArray = rng.normal(size=(min(shape), count + _EXTRA))
    for _ in range(7 if count < 0.1 * min(shape) else 4):
        basis = np.linalg.qr(forth(basis))[0]
        basis = np.linalg.qr(back(basis))[0]
    basis = np.linalg.qr(forth(basis))[0]
    small = back(basis).T
    left, values, right = np.linalg.svd(small, full_matrices=False)
    left, values, right = (basis @ left)[:, :count], values[:count], right[:count]
    return (right.T, values, left.T) if wide else (left, values, right)
