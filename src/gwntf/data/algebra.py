"""Tensor algebra and CP factors for any order N >= 2, for NumPy arrays and torch tensors.

Axis 0 is that of the samples and usually by far the longest. A matricised tensor times a Khatri-Rao product (MTTKRP) is
formed in two ways: for the samples as X_(1) A(-1), and for every other mode from X_(1)' A(1), which is as small as one
sample times the rank. Both are sums over blocks of the tensor, so that it need not fit in memory.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gwntf.core import Array, FloatArray, InputError
from gwntf.data.checks import as_real_array

_POWER_STEPS = 30
"""Steps of the power method."""


def split_shape(shape: Sequence[int], mode: int) -> tuple[int, int, int]:
    """Return (before, length, after): the shape of the tensor as a stack of matrices whose first axis is `mode`."""
    return math.prod(shape[:mode]), shape[mode], math.prod(shape[mode + 1 :])


def unfold(tensor: Array, mode: int) -> Array:
    """Mode-n unfolding X_(n): its columns are the fibers of that mode, in C order of the other axes."""
    before, length, after = split_shape(tensor.shape, mode)
    return tensor.reshape(before, length, after).swapaxes(0, 1).reshape(length, before * after)


def fold(matrix: Array, mode: int, shape: Sequence[int]) -> Array:
    """Inverse of `unfold`: the tensor of that shape whose mode-n unfolding is `matrix`."""
    before, length, after = split_shape(shape, mode)
    return matrix.reshape(length, before, after).swapaxes(0, 1).reshape(*shape)


def khatri_rao(matrices: Sequence[Array]) -> Array:
    """Column-wise Kronecker product; the index of the last matrix varies fastest, as in `unfold`."""
    product = matrices[0]
    for matrix in matrices[1:]:
        product = (product[:, None, :] * matrix[None, :, :]).reshape(-1, matrix.shape[1])
    return product


def reconstruct(factors: Sequence[Array]) -> Array:
    """Kruskal tensor X^ = [[A(1), ..., A(N)]]."""
    first, *rest = factors
    return (first @ khatri_rao(rest).T).reshape(*(factor.shape[0] for factor in factors))


def other_mode_product(partial: Array, factors: Sequence[Array], mode: int) -> Array:
    """Return X_(n) A(-n) for a mode n other than the samples from X_(1)' A(1), by contracting all other modes."""
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


def as_factors(factors: Any, shape: Sequence[int], rank: int, *, name: str = "init") -> list[FloatArray]:
    """Check factors given by the user: one nonnegative (I_n, R) matrix per mode, without empty columns."""
    if not isinstance(factors, Sequence) or len(factors) != len(shape):
        given = f"{len(factors)} factors" if isinstance(factors, Sequence) else f"a {type(factors).__name__}"
        raise InputError(name, given, f"a sequence of {len(shape)} factors, one per axis of X")
    checked: list[FloatArray] = []
    for mode, (factor, length) in enumerate(zip(factors, shape, strict=True)):
        label = f"{name}[{mode}]"
        matrix = as_real_array(factor, label).astype(np.float64)
        if matrix.shape != (length, rank):
            raise InputError(label, f"shape {matrix.shape}", f"shape {(length, rank)}")
        if not np.isfinite(matrix).all() or matrix.min() < 0:
            raise InputError(label, "negative or non-finite entries", "finite nonnegative numbers")
        empty = np.flatnonzero(matrix.sum(axis=0) == 0)
        if empty.size:
            raise InputError(label, f"only zeros in column {empty[0]}", "a positive sum in every column")
        checked.append(matrix)
    return checked


def to_simplex(factors: Sequence[FloatArray]) -> list[FloatArray]:
    """Scale the columns of every factor but the first to sum to one, and those of the first accordingly."""
    samples, *rest = factors
    for factor in rest:
        samples = samples * factor.sum(axis=0)
    return [samples, *(factor / factor.sum(axis=0) for factor in rest)]


class KruskalRows:
    """The Kruskal tensor of factors; blocks of its samples are computed on demand."""

    def __init__(self, factors: Sequence[Array]) -> None:
        self.factors = list(factors)

    @cached_property
    def _others(self) -> Array:
        return khatri_rao(self.factors[1:])

    def __getitem__(self, rows: slice, /) -> Array:
        """Return a block of samples."""
        block = self.factors[0][rows] @ self._others.T
        return block.reshape(block.shape[0], *(factor.shape[0] for factor in self.factors[1:]))


def rank_one(tensor: FloatArray) -> tuple[list[FloatArray], float]:
    """Return the best nonnegative rank-one approximation, by the alternating power method: unit vectors and weight."""
    axes = range(tensor.ndim)
    vectors = [np.sqrt((tensor**2).sum(axis=tuple(a for a in axes if a != axis))) for axis in axes]
    vectors = [vector / np.linalg.norm(vector) for vector in vectors]
    weight = 0.0
    for _ in range(_POWER_STEPS):
        for axis in axes:
            image = np.moveaxis(tensor, axis, 0)
            for other in reversed([a for a in axes if a != axis]):
                image = image @ vectors[other]
            weight = float(np.linalg.norm(image))
            vectors[axis] = image / weight
    return vectors, weight
