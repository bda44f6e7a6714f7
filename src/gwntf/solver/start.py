"""Initial factors, computed in NumPy so that every backend starts from the same ones."""

import math
from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from gwntf.core import FloatArray
from gwntf.data import DataTensor, as_factors, khatri_rao, rank_one, to_simplex

INITS = ("random", "nndsvd")

_FLOOR = 1e-2

_EXTRA = 10
"""Random directions in addition to the requested singular pairs."""


def start_factors(
    tensor: DataTensor, rank: int, init: object, rng: np.random.RandomState, held: Sequence[FloatArray] = ()
) -> list[FloatArray]:
    """Return factors on the simplex whose model has the mass of the data; see `hold` for the held components."""
    shape = tensor.shape
    if not isinstance(init, str):
        given = to_simplex(as_factors(init, shape, rank))
        return hold(given, held) if held else given
    factors = random_factors(shape, rank, rng) if init == "random" else nndsvd_factors(tensor, rank, rng)
    return with_mass_of(tensor, hold(to_simplex(factors), held) if held else factors)


def hold(factors: list[FloatArray], held: Sequence[FloatArray]) -> list[FloatArray]:
    """Return factors on the simplex with the first components replaced by the held ones, also on the simplex.

    If all components are held, one factor for all axes of a sample may stand for several.
    """
    samples, *rest = factors
    if len(held) < len(rest):
        return [samples, *held]
    return [samples, *(np.hstack([own, old[:, own.shape[1] :]]) for own, old in zip(held, rest, strict=True))]


def with_mass_of(tensor: DataTensor, factors: list[FloatArray]) -> list[FloatArray]:
    """Scale factors to the simplex, and their model to the mass of the data over the observed entries."""
    samples, *rest = to_simplex(factors)
    observed = samples
    if not tensor.complete:
        observed = samples * tensor.backend.to_numpy(tensor.observed_sums(khatri_rao(rest)))
    return [samples * (tensor.mass / float(observed.sum())), *rest]


def random_factors(shape: tuple[int, ...], rank: int, rng: np.random.RandomState) -> list[FloatArray]:
    """Return factors with uniform random entries, bounded away from zero."""
    return [rng.random_sample((size, rank)) + 1e-3 for size in shape]


def nndsvd_factors(tensor: DataTensor, rank: int, rng: np.random.RandomState) -> list[FloatArray]:
    """Return initial factors from the SVD of the sample unfolding.

    Of each singular pair the sign with the larger norm is kept; the feature side is folded and replaced by its best
    nonnegative rank-one approximation. Zeros are replaced by a hundredth of the column's mean, and components beyond
    the rank of the unfolding are random, with the average mass of the others. Runs on one thread, since the rounding
    depends on the number of threads.
    """
    shape = tensor.shape
    unfolded = shape[0], math.prod(shape[1:])
    with threadpool_limits(1):
        left, singular, right = leading_pairs(tensor, unfolded, min(rank, *unfolded), rng)
    factors = random_factors(shape, rank, rng)
    usable = int((singular > singular[0] * np.finfo(np.float64).eps).sum())
    for component in range(usable):
        samples, features = _heavier_sign(left[:, component], right[component])
        vectors, weight = rank_one(features.reshape(shape[1:]))
        columns = [samples * (singular[component] * weight), *vectors]
        for factor, column in zip(factors, columns, strict=True):
            factor[:, component] = np.maximum(column, _FLOOR * column.mean())
    masses = np.prod([factor.sum(axis=0) for factor in factors], axis=0)
    if usable:
        factors[0][:, usable:] *= masses[:usable].mean() / masses[usable:]
    return factors


def leading_pairs(
    tensor: DataTensor, shape: tuple[int, int], count: int, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the leading left singular vectors (columns), values and right vectors (rows) of X_(1), of this shape.

    Computed by subspace iteration from random directions (N. Halko, P. G. Martinsson and J. A. Tropp, *Finding
    structure with randomness*, SIAM Review 53, 2011, algorithms 4.4 and 5.1), starting on the shorter side.
    """
    forth, back = tensor.times, tensor.transposed_times
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


def _heavier_sign(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the positive or the negative parts of a singular pair, whichever have the larger norm, as in NNDSVD."""
    pairs = [(np.maximum(s * left, 0), np.maximum(s * right, 0)) for s in (1, -1)]
    return max(pairs, key=lambda pair: np.linalg.norm(pair[0]) * np.linalg.norm(pair[1]))
