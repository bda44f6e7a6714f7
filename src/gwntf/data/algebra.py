"""Tensor algebra for any order N >= 2, written so that NumPy arrays and torch tensors both fit.

Axis 0 holds the samples and is usually by far the longest. A matricised tensor times a Khatri-Rao product (MTTKRP) is
formed in two ways: for the samples as X_(1) A(-1), and for every other mode from X_(1)' A(1), which is as small as one
sample times the rank. Both are sums over blocks of the tensor, so that a tensor need never be there as a whole.
"""

import math
from collections.abc import Sequence

from gwntf.core import Array


def split_shape(shape: Sequence[int], mode: int) -> tuple[int, int, int]:
    """Return (before, length, after): the tensor seen as a stack of matrices whose rows run along `mode`."""
    return math.prod(shape[:mode]), shape[mode], math.prod(shape[mode + 1 :])


def unfold(tensor: Array, mode: int) -> Array:
    """Mode-n unfolding X_(n): its columns are the fibers of that mode, the other axes in their order."""
    before, length, after = split_shape(tensor.shape, mode)
    return tensor.reshape(before, length, after).swapaxes(0, 1).reshape(length, before * after)


def fold(matrix: Array, mode: int, shape: Sequence[int]) -> Array:
    """Inverse of `unfold`: the tensor of that shape whose mode-n unfolding is `matrix`."""
    before, length, after = split_shape(shape, mode)
    return matrix.reshape(length, before, after).swapaxes(0, 1).reshape(*shape)


def khatri_rao(matrices: Sequence[Array]) -> Array:
    """Column-wise Kronecker product; the last matrix varies fastest, as in `unfold`."""
    product = matrices[0]
    for matrix in matrices[1:]:
        product = (product[:, None, :] * matrix[None, :, :]).reshape(-1, matrix.shape[1])
    return product


def reconstruct(factors: Sequence[Array]) -> Array:
    """Kruskal tensor X^ = [[A(1), ..., A(N)]]."""
    first, *rest = factors
    return (first @ khatri_rao(rest).T).reshape(*(factor.shape[0] for factor in factors))


def other_mode_product(partial: Array, factors: Sequence[Array], mode: int) -> Array:
    """Return X_(n) A(-n) for one n but the first, given X_(1)' A(1): other modes are contracted column by column."""
    rank = partial.shape[-1]
    partial = partial.reshape(*(factor.shape[0] for factor in factors[1:]), rank)
    for other in reversed(range(1, len(factors))):
        if other == mode:
            continue
        before, length, after = split_shape(partial.shape[:-1], other - 1)
        weights = factors[other].reshape(1, length, 1, rank)
        partial = (partial.reshape(before, length, after, rank) * weights).sum(1)
        shape = [factors[m].shape[0] for m in range(1, len(factors)) if m < other or m == mode]
        partial = partial.reshape(*shape, rank)
    return partial
