"""Tensor algebra against literal loops, einsum and TensorLy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorly as tl
from hypothesis import given
from hypothesis import strategies as st
from tensorly.cp_tensor import unfolding_dot_khatri_rao
from tensorly.tenalg import khatri_rao as tl_khatri_rao

from gwntf.data import fold, khatri_rao, other_mode_product, reconstruct, to_simplex, unfold
from tests import oracles

SHAPES = [(4, 3), (4, 1), (3, 4, 2), (1, 5, 3), (2, 3, 2, 4), (3, 2, 2, 2, 3)]


def problem(shape, rank=3, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random(shape).astype(dtype), [rng.random((size, rank)).astype(dtype) for size in shape]


def mttkrp_all(tensor, factors):
    """X_(n) A(-n) for every n, in the two ways that the library has."""
    rows = unfold(tensor, 0)
    partial = rows.T @ factors[0]
    others = [other_mode_product(partial, factors, mode) for mode in range(1, len(factors))]
    return [rows @ khatri_rao(factors[1:]), *others]


@pytest.mark.parametrize("shape", SHAPES)
def test_unfolding_matches_tensorly_and_folds_back(shape):
    tensor, _ = problem(shape)
    for mode in range(len(shape)):
        np.testing.assert_array_equal(unfold(tensor, mode), tl.unfold(tensor, mode))
        np.testing.assert_array_equal(fold(unfold(tensor, mode), mode, shape), tensor)


def test_columns_of_an_unfolding_are_the_fibers():
    tensor, _ = problem((3, 4, 2))
    columns = {tuple(column) for column in unfold(tensor, 1).T}
    assert columns == {tuple(tensor[index]) for index in oracles.fibers(tensor.shape, 1)}


@pytest.mark.parametrize("shape", SHAPES)
def test_products_match_tensorly_and_loops(shape):
    tensor, factors = problem(shape)
    np.testing.assert_allclose(khatri_rao(factors), tl_khatri_rao(factors))
    np.testing.assert_allclose(reconstruct(factors), oracles.kruskal(factors))
    expected = [unfolding_dot_khatri_rao(tensor, (None, factors), mode) for mode in range(len(shape))]
    for mode, found in enumerate(mttkrp_all(tensor, factors)):
        np.testing.assert_allclose(found, expected[mode])


@given(
    shape=st.lists(st.integers(1, 4), min_size=2, max_size=5).map(tuple),
    rank=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_mttkrp_is_the_gradient_of_the_inner_product(shape, rank, seed):
    tensor, factors = problem(shape, rank, seed=seed)
    total = (tensor * reconstruct(factors)).sum()
    for mode, product in enumerate(mttkrp_all(tensor, factors)):
        assert math.isclose((product * factors[mode]).sum(), total, rel_tol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(dtype):
    tensor, factors = problem((3, 4, 2), dtype=dtype)
    assert reconstruct(factors).dtype == dtype
    assert {product.dtype for product in mttkrp_all(tensor, factors)} == {np.dtype(dtype)}


def test_to_simplex_moves_scale_to_the_samples_and_keeps_the_model():
    _, factors = problem((3, 4, 2))
    scaled = to_simplex(factors)
    np.testing.assert_allclose(reconstruct(scaled), reconstruct(factors))
    for factor in scaled[1:]:
        np.testing.assert_allclose(factor.sum(axis=0), 1)
