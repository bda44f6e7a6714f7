"""The paper's distances against POT and closed forms."""

from __future__ import annotations

import math

import numpy as np
import ot
import pytest
from scipy.stats import wasserstein_distance as scipy_wasserstein
from sklearn.exceptions import ConvergenceWarning

from gwntf import (
    SeparableCost,
    entropic_wasserstein_distance,
    wasserstein_distance,
    wasserstein_matrix_distance,
    wasserstein_tensor_distance,
)
from gwntf.distances import Distance
from gwntf.geometry import grid_cost
from tests import oracles


def histograms(rng, size=6, columns=4):
    x, y = rng.random((size, columns)), rng.random((size, columns))
    x[1], y[3] = 0, 0
    return x / x.sum(axis=0), y / y.sum(axis=0)


def test_exact_equals_emd_and_the_one_dimensional_closed_form(rng):
    x, y = (a[:, 0].copy() for a in histograms(rng))
    cost = rng.random((6, 6))
    assert math.isclose(wasserstein_distance(x, y, cost), ot.emd2(x, y, cost), rel_tol=1e-12)
    positions = np.arange(6) / 5
    assert math.isclose(wasserstein_distance(x, y), scipy_wasserstein(positions, positions, x, y), rel_tol=1e-9)


def test_exact_relaxed_is_the_limit_of_the_entropic_one(rng):
    x, y = rng.random(6), 2 * rng.random(6)
    x[2] = y[0] = 0
    exact = wasserstein_distance(x, y, reg_m=(1.0, 0.5))
    near = entropic_wasserstein_distance(x, y, reg=1e-3, reg_m=(1.0, 0.5))
    assert math.isclose(exact, near, abs_tol=2e-2)
    rows, columns = np.ix_(x > 0, y > 0)
    cost = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))[rows, columns] / 5
    plan = ot.unbalanced.mm_unbalanced(x[x > 0], y[y > 0], cost, (1.0, 0.5), numItermax=20_000, stopThr=0)
    other = (cost * plan).sum() + oracles.kl(plan.sum(axis=1), x[x > 0])
    other += 0.5 * oracles.kl(plan.sum(axis=0), y[y > 0])
    assert math.isclose(exact, other, rel_tol=1e-7)
    assert exact < x.sum() + 0.5 * y.sum()


def test_entropic_equals_pot_balanced(rng):
    x, y = (a[:, 0] for a in histograms(rng))
    cost = rng.random((6, 6))
    plan = np.zeros((6, 6))
    rows, columns = np.ix_(x > 0, y > 0)
    plan[rows, columns] = ot.sinkhorn(
        x[x > 0], y[y > 0], cost[rows, columns], 0.1, stopThr=0, numItermax=3000, warn=False
    )
    expected = oracles.plan_value(plan, x, y, cost, 10.0, math.inf, math.inf)
    assert math.isclose(entropic_wasserstein_distance(x, y, cost, reg=0.1), expected, rel_tol=1e-8)


def test_entropic_relaxed_equals_the_literal_plan(rng):
    x, y, cost = rng.random(6), rng.random(6), rng.random((6, 6))
    plan = oracles.plan(x, y, cost, 10.0, 0.7, 2.0)
    expected = oracles.plan_value(plan, x, y, cost, 10.0, 0.7, 2.0)
    found = entropic_wasserstein_distance(x, y, cost, reg=0.1, reg_m=(0.7, 2.0), tol=1e-14)
    assert math.isclose(found, expected, rel_tol=1e-10)


@pytest.mark.parametrize("relaxed", [True, False])
@pytest.mark.parametrize("reg", [0, 0.1])
def test_matrix_distance_sums_over_columns(reg, relaxed, rng):
    X, Y = histograms(rng)
    weights = {"reg_m": (1.0, 2.0)} if relaxed else {}
    if reg == 0:
        columns = [wasserstein_distance(x, y, **weights) for x, y in zip(X.T, Y.T, strict=True)]
    else:
        pairs = zip(X.T, Y.T, strict=True)
        columns = [entropic_wasserstein_distance(x, y, reg=reg, **weights) for x, y in pairs]
    found = wasserstein_matrix_distance(X, Y, reg=reg, **weights)
    assert math.isclose(found, sum(columns), rel_tol=1e-9)


def test_tensor_distance_sums_over_unfoldings(rng):
    X, Y = rng.random((3, 4, 2)), rng.random((3, 4, 2))
    weights = {"reg": 0.1, "reg_m": (1.0, 2.0)}
    by_mode = [
        wasserstein_matrix_distance(
            np.moveaxis(X, mode, 0).reshape(X.shape[mode], -1),
            np.moveaxis(Y, mode, 0).reshape(X.shape[mode], -1),
            cost,
            **weights,
        )
        for mode, cost in enumerate(["cosine", "grid", "grid2"])
    ]
    found = wasserstein_tensor_distance(X, Y, ("cosine", "grid", "grid2"), **weights)
    assert math.isclose(found, sum(by_mode), rel_tol=1e-9)
    without = wasserstein_tensor_distance(X, Y, (None, "grid", "grid2"), **weights)
    assert math.isclose(without, sum(by_mode[1:]), rel_tol=1e-9)


def test_separable_cost_needs_no_matrix_but_agrees_with_it(rng):
    x, y = rng.random(12), rng.random(12)
    cost = SeparableCost.on_grid((3, 4))
    weights = {"reg_m": 1.0}
    for reg in (0, 0.1):
        separable = wasserstein_matrix_distance(x[:, None], y[:, None], cost, reg=reg, **weights)
        dense = wasserstein_matrix_distance(x[:, None], y[:, None], cost.to_matrix(), reg=reg, **weights)
        assert math.isclose(separable, dense, rel_tol=1e-9)


@pytest.mark.parametrize("size", [1e-20, 1e-12, 1e10, 1e20])
def test_exact_distances_are_homogeneous_at_any_mass(size, rng):
    x, y = rng.random(6), rng.random(6)
    for weights in ({}, {"reg_m": (1.0, 0.5)}):
        a, b = (x / x.sum(), y / y.sum()) if not weights else (x, y)
        expected = wasserstein_distance(a, b, **weights)
        found = wasserstein_distance(size * a, size * b, **weights)
        assert math.isclose(found / size, expected, rel_tol=1e-6)


def test_an_exact_marginal_that_nothing_can_hold_costs_infinitely():
    assert entropic_wasserstein_distance([1, 1], [0, 0], reg_m=(math.inf, 1)) == math.inf
    assert entropic_wasserstein_distance([0, 0], [1, 1], reg_m=(1, math.inf)) == math.inf


def test_float32_histograms_settle_without_a_warning(rng):
    X, Y = (values.astype(np.float32) for values in histograms(rng))
    balanced = wasserstein_matrix_distance(X, Y, reg=0.1)
    relaxed = wasserstein_matrix_distance(X, Y, reg=0.1, reg_m=1)
    assert np.isfinite([balanced, relaxed]).all()
    assert np.isfinite(wasserstein_matrix_distance(X, 1e60 * Y.astype(float), reg_m=1))


def relaxed_problem(rng):
    """Columns to be moved, among them an empty one, and the weights of the problem."""
    x, y = rng.random((7, 4)), 1.5 * rng.random((7, 4))
    x[1], y[3], x[:, 2] = 0, 0, 0
    return x, y, grid_cost(7), Distance(0.05, 0.7, 2.0, max_iter=20_000, tol=1e-14)


@pytest.mark.filterwarnings("ignore:If reg_type = entropy")
def test_plans_equal_those_of_pot(rng):
    x, y, cost, distance = relaxed_problem(rng)
    expected = np.zeros((7, 7))
    for a, b in zip(x.T, y.T, strict=True):
        if a.any():
            rows, columns = np.ix_(a > 0, b > 0)
            expected[rows, columns] += ot.unbalanced.sinkhorn_unbalanced(
                a[a > 0],
                b[b > 0],
                cost[rows, columns] + 0.05,
                reg=0.05,
                reg_m=(0.7, 2.0),
                reg_type="entropy",
                numItermax=20_000,
                stopThr=1e-14,
            )
    np.testing.assert_allclose(distance.plans(x, y, cost).total(), expected, rtol=1e-7, atol=1e-15)


@pytest.mark.parametrize("reg", [0.05, 1e-4])
def test_mean_positions_are_those_of_the_literal_plans(reg, rng):
    x, y, cost, _ = relaxed_problem(rng)
    distance = Distance(reg, 0.7, 2.0, max_iter=200, tol=0.0)
    plans = distance.plans(x, y, cost)
    places = np.array([0.0, 1, 2, 5, 6, 8, 9])
    found = plans.mean_positions(places)
    for m in range(4):
        for i in range(7):
            row = [
                math.exp(plans.scaled.log_u[i, m] - cost[i, j] / reg - 1 + plans.scaled.log_v[j, m])
                if x[i, m] > 0 and y[j, m] > 0
                else 0.0
                for j in range(7)
            ]
            if sum(row) == 0:
                assert math.isnan(found[i, m])
            else:
                mean = sum(mass * place for mass, place in zip(row, places, strict=True)) / sum(row)
                assert math.isclose(found[i, m], mean, rel_tol=1e-9, abs_tol=1e-12)


def test_plans_of_a_separable_cost_are_those_of_its_matrix(rng):
    x, y = rng.random((12, 2)), rng.random((12, 2))
    cost = SeparableCost.on_grid((3, 4))
    distance = Distance(0.1, 1.0, 1.0, max_iter=20_000, tol=1e-14)
    found, dense = (distance.plans(x, y, given) for given in (cost, cost.to_matrix()))
    np.testing.assert_allclose(found.total(), dense.total(), rtol=1e-9)
    places = np.arange(12.0) % 4
    np.testing.assert_allclose(found.mean_positions(places), dense.mean_positions(places), rtol=1e-9)


def test_places_too_far_from_each_other_keep_their_mass_without_a_warning():
    """Nothing is moved, so each side pays for all of its mass."""
    found = wasserstein_distance([1, 0], [0, 1], [[0, 300], [300, 0]], reg_m=(1, 2))
    assert found == pytest.approx(3)


def test_empty_vectors():
    assert wasserstein_distance([0, 0], [0, 0]) == 0
    assert wasserstein_distance([0, 0], [1, 2], reg_m=(1, 2)) == 6
    assert entropic_wasserstein_distance([0, 0], [1, 2], reg_m=(1, 2)) == pytest.approx(6)


def test_too_few_scalings_are_told():
    x, y = np.eye(30)[0] + 1e-6, np.eye(30)[-1] + 1e-6
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        entropic_wasserstein_distance(x, y, reg=1e-3, max_iter=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wasserstein_distance([1, 0], [1, 1]), "y: got mass 2 in column 0, against 1"),
        (lambda: wasserstein_distance([[1]], [1]), "x: got 2 dimension"),
        (lambda: wasserstein_distance([1, 2], [3]), "y: got length 1"),
        (lambda: wasserstein_distance([1, -2], [3, 1]), r"x: got 1 negative entry \(smallest -2\)"),
        (lambda: wasserstein_distance([1, 0], [0, 1], "cosine"), "cost: got 'cosine'"),
        (lambda: wasserstein_distance([1, 0], [0, 1], np.ones((3, 3))), r"cost: got shape \(3, 3\)"),
        (lambda: wasserstein_distance([1], [1], reg_m=(1.0, math.inf)), "both inf or both finite"),
        (lambda: entropic_wasserstein_distance([1], [1], reg=0), "reg: got 0"),
        (lambda: entropic_wasserstein_distance([1], [1], reg_m=-1), "reg_m: got -1"),
        (lambda: wasserstein_tensor_distance(np.ones((2, 2)), np.ones((2, 3))), r"Y: got shape \(2, 3\)"),
        (lambda: wasserstein_tensor_distance(np.ones((2, 2)), np.ones((2, 2)), reg=-1), "reg: got -1"),
        (
            lambda: wasserstein_tensor_distance(np.ones((2, 2)), np.ones((2, 2)), (None, None)),
            "costs: got only None",
        ),
        (lambda: wasserstein_matrix_distance(np.ones((2, 2)), np.ones((2, 2)), None), "cost: got None"),
        (lambda: wasserstein_matrix_distance(np.ones((2, 2, 2)), np.ones((2, 2, 2))), "X: got 3 dimensions"),
        (
            lambda: wasserstein_matrix_distance([[1, 2], [3]], [[1]]),
            "X: got a list that cannot be converted to an array",
        ),
        (lambda: entropic_wasserstein_distance([1], [1], max_iter=-5), "max_iter: got -5"),
        (lambda: entropic_wasserstein_distance([1], [1], tol=np.nan), "tol: got nan"),
    ],
)
def test_bad_input_is_told(call, message):
    with pytest.raises(ValueError, match=message):
        call()
