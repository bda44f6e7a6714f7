"""Symmetries that the updates must respect, and the matrix case against an independent literal program."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gwntf import GWNTF
from gwntf.core import Relaxation
from gwntf.data import DataTensor
from gwntf.geometry import SeparableCost
from gwntf.losses import Plain
from gwntf.transport import TransportLimits
from tests import oracles
from tests.problems import fit, random_problem, with_loss


@pytest.mark.parametrize("order", [(0, 2, 1), (0, 3, 1, 2)])
def test_permuting_the_other_modes_permutes_the_factors(order):
    shape = (5, 4, 3, 2)[: len(order)]
    problem, factors = random_problem(shape, seed=4)
    turned = replace(
        with_loss(problem, costs=tuple(problem.costs[axis] for axis in order)),
        data=DataTensor.of_array(np.ascontiguousarray(problem.X.transpose(order))),
    )
    limits = TransportLimits(10, 0.0)
    first = fit(problem, factors, limits=limits, max_iter=15)
    second = fit(turned, [factors[axis] for axis in order], limits=limits, max_iter=15)
    for place, axis in enumerate(order):
        np.testing.assert_allclose(second.factors[place], first.factors[axis], rtol=1e-9)
    np.testing.assert_allclose(second.objective_curve, first.objective_curve, rtol=1e-10)


def test_matrix_case_equals_a_literal_wasserstein_nmf():
    """One cold transport per iteration on both sides, so that warm starts play no part."""
    problem, factors = random_problem((5, 4), rank=2, seed=6, graph_reg=0.7)
    result = fit(problem, factors, limits=TransportLimits(400, 0.0), max_iter=6, plain=Plain())
    scaled = [factors[0] * factors[1].sum(axis=0), factors[1] / factors[1].sum(axis=0)]
    W, H = oracles.wasserstein_nmf(
        problem.X,
        *scaled,
        *problem.costs,
        10.0,
        1.0,
        1.0,
        problem.graph.toarray(),
        0.7,
        iterations=6,
        scalings_each=400,
    )
    np.testing.assert_allclose(result.factors[0], W, rtol=1e-8)
    np.testing.assert_allclose(result.factors[1], H, rtol=1e-8)


@pytest.mark.parametrize("scale", [3.0, 250.0])
def test_scaling_the_data_equals_a_shift_of_the_costs_and_a_heavier_graph(scale):
    """Without normalisation: X -> sX is costs + log(s)/lam and graph weight * s."""
    problem, factors = random_problem((6, 5, 4), seed=8, graph_reg=2.0)
    lam = 1 / problem.options.relaxation.reg
    scaled = replace(problem, data=DataTensor.of_array(scale * problem.X))
    costs = tuple(cost + math.log(scale) / lam for cost in problem.costs)
    shifted = replace(with_loss(problem, costs=costs), graph_reg=2.0 * scale)
    limits = TransportLimits(3000, 1e-14)
    left = fit(scaled, [scale * factors[0], *factors[1:]], limits=limits, max_iter=10)
    right = fit(shifted, factors, limits=limits, max_iter=10)
    np.testing.assert_allclose(left.factors[0], scale * right.factors[0], rtol=1e-6)
    for a, b in zip(left.factors[1:], right.factors[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_allclose(left.objective_curve, scale * right.objective_curve, rtol=1e-8)


def test_scaling_normalised_data_changes_only_the_scale(rng):
    X = rng.random((20, 5, 4))
    settings = {"n_components": 3, "max_iter": 5, "tol": 0, "random_state": 0}  # rounding grows with each
    first, second = GWNTF(**settings).fit(X), GWNTF(**settings).fit(1000 * X)
    np.testing.assert_allclose(second.factors_[0], first.factors_[0], rtol=1e-8)
    np.testing.assert_allclose(second.embedding_, 1000 * first.embedding_, rtol=1e-8)
    np.testing.assert_allclose(second.sample_scale_, 1000 * first.sample_scale_)
    np.testing.assert_allclose(second.reconstruct(1000 * X), 1000 * first.reconstruct(X), rtol=1e-8)


def test_all_modes_untransported_is_kl_factorization():
    """Against textbook KL-NMF multiplicative updates, made simultaneous and normalised by hand."""
    problem, (W, H) = random_problem((6, 5), modes=(), graph=False, seed=2)
    X = problem.X
    result = fit(problem, [W, H], max_iter=12, plain=Plain())
    W, H = W * H.sum(axis=0), H / H.sum(axis=0)
    for _ in range(12):
        ratio = X / (W @ H.T)
        W, H = W * (ratio @ H), H * (ratio.T @ W)
        H = H / H.sum(axis=0)
    np.testing.assert_allclose(result.factors[0], W, rtol=1e-10)
    np.testing.assert_allclose(result.factors[1], H, rtol=1e-10)
    assert math.isclose(result.objective, oracles.kl(X, W @ H.T), rel_tol=1e-10)


def test_separable_cost_equals_its_dense_matrix(rng):
    X = rng.random((10, 12))
    cost = SeparableCost.on_grid((3, 4))
    settings = {"n_components": 3, "max_iter": 5, "tol": 0, "random_state": 0}
    separable = GWNTF(costs=(None, cost), **settings).fit(X)
    dense = GWNTF(costs=(None, cost.to_matrix()), **settings).fit(X)
    np.testing.assert_allclose(separable.embedding_, dense.embedding_, rtol=1e-10)
    i, j = np.divmod(np.arange(12), 4)
    expected = (np.abs(i[:, None] - i) + np.abs(j[:, None] - j)) / 5
    np.testing.assert_allclose(cost.to_matrix(), expected)


def test_blocks_of_samples_do_not_matter_to_the_transport_of_other_modes(rng, monkeypatch):
    from gwntf.backends.numpy_backend import NumpyBackend

    X = rng.random((30, 5, 4))
    settings = {"n_components": 3, "max_iter": 5, "tol": 0, "random_state": 0}
    whole = GWNTF(**settings).fit(X)
    monkeypatch.setattr(NumpyBackend, "tile_columns", lambda self, length: 7)
    tiled = GWNTF(**settings).fit(X)
    np.testing.assert_allclose(tiled.embedding_, whole.embedding_, rtol=1e-10)
    np.testing.assert_allclose(tiled.objective_curve_, whole.objective_curve_, rtol=1e-12)


def test_relaxation_exponents():
    relaxation = Relaxation(0.01, 1.0, math.inf)
    assert math.isclose(relaxation.phi, 100 / 101)
    assert relaxation.psi == 1.0
