"""Tensor algebra for any order N >= 2, written so that NumPy arrays and torch tensors both fit.

Axis 0 holds the samples and is usually by far the longest. Nothing longer than one slice of the tensor
times the rank is formed: reconstruction and MTTKRP go through the Khatri-Rao product of the *other* factors
only.
"""

from __future__ import annotations

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


def mttkrp(tensor: Array, factors: Sequence[Array], mode: int) -> Array:
    """Matricised tensor times Khatri-Rao product, X_(n) A(-n)."""
    if mode == 0:
        return _contract_rest(tensor, factors)
    return _contract_others(_contract_first(tensor, factors[0]), factors, mode)


def mttkrp_all(tensor: Array, factors: Sequence[Array]) -> list[Array]:
    """Return X_(n) A(-n) for every n, from two passes over the tensor whatever its order."""
    partial = _contract_first(tensor, factors[0])
    others = [_contract_others(partial, factors, mode) for mode in range(1, len(factors))]
    return [_contract_rest(tensor, factors), *others]


def _contract_rest(tensor: Array, factors: Sequence[Array]) -> Array:
    """Contract every mode but the first."""
    return tensor.reshape(tensor.shape[0], -1) @ khatri_rao(factors[1:])


def _contract_first(tensor: Array, factor: Array) -> Array:
    """Contract the first mode: an array over the other modes with the rank as last axis."""
    partial = tensor.reshape(tensor.shape[0], -1).T @ factor
    return partial.reshape(*tensor.shape[1:], factor.shape[1])


def _contract_others(partial: Array, factors: Sequence[Array], mode: int) -> Array:
    """Contract all modes but `mode` out of `partial`, column by column of the factors."""
    rank = partial.shape[-1]
    for other in reversed(range(1, len(factors))):
        if other == mode:
            continue
        before, length, after = split_shape(partial.shape[:-1], other - 1)
        weights = factors[other].reshape(1, length, 1, rank)
        partial = (partial.reshape(before, length, after, rank) * weights).sum(1)
        shape = [factors[m].shape[0] for m in range(1, len(factors)) if m < other or m == mode]
        partial = partial.reshape(*shape, rank)
    return partial
