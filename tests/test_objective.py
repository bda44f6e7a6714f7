"""F against literal loops and finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwntf import objective
from gwntf.data import other_mode_product, to_simplex
from gwntf.solver import Steps, evaluate
from tests import oracles
from tests.problems import random_problem

CASES = [
    ((4, 3), None),
    ((4, 3), (1,)),
    ((3, 2, 3), None),
    ((3, 2, 3), (1, 2)),
    ((3, 2, 3), ()),
    ((2, 3, 2, 2), (0, 2)),
]


@settings(max_examples=15)
@given(case=st.sampled_from(CASES), graph=st.booleans(), seed=st.integers(0, 1000))
def test_equals_the_triple_loop_that_forms_every_plan(case, graph, seed):
    shape, modes = case
    problem, factors = random_problem(shape, modes=modes, graph=graph, seed=seed, alpha=0.8, beta=1.3)
    dense = problem.graph.toarray() if graph else None
    expected = oracles.objective(problem.X, factors, problem.costs, 10.0, 0.8, 1.3, dense, problem.graph_reg)
    terms = evaluate(problem, factors)
    assert math.isclose(terms.total, expected, rel_tol=1e-10)


def test_public_function_takes_arrays_and_gives_terms(rng):
    problem, factors = random_problem((4, 3, 2), seed=3)
    graph = problem.graph.toarray()
    terms = objective(problem.X, factors, problem.costs, reg=0.1, graph=graph, graph_reg=5.0, tol=1e-13)
    assert math.isclose(terms.total, evaluate(problem, factors).total, rel_tol=1e-12)
    parts = sum(mode.transport + mode.data + mode.model for mode in terms.modes)
    assert math.isclose(terms.total, parts + terms.graph + terms.misfit, rel_tol=1e-12)
    assert math.isclose(terms.graph, oracles.graph_penalty(factors[0], graph, 5.0), rel_tol=1e-12)
    assert all(part >= 0 for mode in terms.modes for part in (mode.data, mode.model))


@pytest.mark.parametrize(("shape", "modes"), CASES)
def test_gradient_equals_finite_differences(shape, modes):
    """Gradient b (1 A(-n) - w_n / A(n)), plus mu L A for the samples, as the factor step has it."""
    problem, factors = random_problem(shape, modes=modes, seed=7, zeros=0.0)
    factors = to_simplex(factors)
    steps = Steps(problem)
    at, _ = steps.first(factors)
    (graph,) = steps.graph.graphs
    partial = at.sums["product"][0]
    products = [other_mode_product(partial, factors, mode) for mode in range(1, len(factors))]
    products.insert(0, at.kept[0].own / factors[0])
    for mode, factor in enumerate(factors):
        others = [a.sum(axis=0) for n, a in enumerate(factors) if n != mode]
        gradient = problem.loss.weight * (np.prod(others, axis=0) - products[mode])
        if mode == 0:
            gradient = gradient + graph.weight * (graph.degree * factor - graph.matrix @ factor)
        for index in [(0, 0), (1, 2), (factor.shape[0] - 1, 1)]:
            values = []
            for sign in (1, -1):
                moved = [a.copy() for a in factors]
                moved[mode][index] += sign * 1e-5
                values.append(evaluate(problem, moved).total)
            assert math.isclose((values[0] - values[1]) / 2e-5, gradient[index], rel_tol=1e-5, abs_tol=1e-6)


def test_missing_entries_leave_the_objective():
    """An entry that was not observed has no mass on either side: the same as cutting it out of its fibers."""
    problem, factors = random_problem((3, 4), modes=(1,), graph=False, seed=1)
    X = problem.X.copy()
    X[:, 2] = np.nan
    keep = [0, 1, 3]
    holed = objective(X, factors, problem.costs, reg=0.1, missing="ignore", tol=1e-13)
    cost = problem.costs[1][np.ix_(keep, keep)]
    cut = objective(X[:, keep], [factors[0], factors[1][keep]], (None, cost), reg=0.1, tol=1e-13)
    assert math.isclose(holed.total, cut.total, rel_tol=1e-10)


def test_missing_entries_leave_the_kl_loss_too():
    problem, factors = random_problem((3, 4), modes=(), graph=False, seed=1)
    X = problem.X.copy()
    X[:, 2] = np.nan
    keep = [0, 1, 3]
    holed = objective(X, factors, (None, None), missing="ignore")
    assert math.isclose(holed.total, oracles.kl(X[:, keep], oracles.kruskal(factors)[:, keep]), rel_tol=1e-12)


def test_float32_data_is_summed_in_float64(rng):
    X = rng.random((2000, 30)).astype(np.float32)
    factors = [rng.random((2000, 2)), rng.random((30, 2))]
    narrow = objective(X, factors, (None, None)).total
    wide = objective(X.astype(np.float64), factors, (None, None)).total
    assert math.isclose(narrow, wide, rel_tol=1e-6)
