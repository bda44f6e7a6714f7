"""Leading singular pairs of the sample unfolding, from products with it alone."""

from typing import Protocol

import numpy as np

from gwntf.core import FloatArray

_EXTRA = 10
"""Random directions beyond the pairs that are wanted."""


class Matrix(Protocol):
    """A matrix by its products in float64, such as X_(1) of a `DataTensor`."""

    def times(self, matrix: FloatArray) -> FloatArray:
        """Multiply another matrix."""

    def transposed_times(self, matrix: FloatArray) -> FloatArray:
        """Multiply another matrix by the transpose."""


def leading_pairs(
    matrix: Matrix, shape: tuple[int, int], count: int, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Leading singular vectors (left ones as columns, right ones as rows) and values of a matrix of that shape.

    Subspace iteration from random directions (N. Halko, P. G. Martinsson and J. A. Tropp, *Finding structure with
    randomness*, SIAM Review 53, 2011, algorithms 4.4 and 5.1), begun on the shorter side.
    """
    forth, back = matrix.times, matrix.transposed_times
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
