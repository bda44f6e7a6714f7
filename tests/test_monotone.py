"""With solved transports the objective never rises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwntf.core import Status
from gwntf.data import DataTensor
from gwntf.losses import Plain
from tests.problems import fit, random_problem

CASES = [
    ((6, 5), None),
    ((6, 5), (0,)),
    ((5, 4, 3), None),
    ((5, 4, 3), (1, 2)),
    ((5, 4, 3), (2,)),
    ((5, 4, 3), ()),
    ((4, 3, 2, 3), None),
    ((4, 3, 2, 3), (0, 2)),
]


def largest_rise(curve: np.ndarray) -> float:
    return float((np.diff(curve) / np.abs(curve[:-1])).max())


@pytest.mark.parametrize("graph", [True, False], ids=["graph", "no graph"])
@pytest.mark.parametrize(("shape", "modes"), CASES)
def test_mm_never_raises_the_objective(shape, modes, graph):
    problem, factors = random_problem(shape, modes=modes, graph=graph, seed=len(shape))
    result = fit(problem, factors, max_iter=25)
    assert result.n_iter == 25
    assert largest_rise(result.objective_curve) <= 1e-9


@settings(max_examples=20)
@given(
    case=st.sampled_from(CASES),
    seed=st.integers(0, 10_000),
    graph_reg=st.sampled_from([0.0, 1.0, 1e4]),
    plain=st.sampled_from([None, Plain(), Plain(row_steps=10)]),
    beta=st.sampled_from([0.3, 1.0, 4.0]),
)
def test_mm_never_raises_the_objective_on_random_problems(case, seed, graph_reg, plain, beta):
    shape, modes = case
    problem, factors = random_problem(shape, modes=modes, seed=seed, graph_reg=graph_reg, beta=beta)
    result = fit(problem, factors, max_iter=8, plain=plain)
    assert largest_rise(result.objective_curve) <= 1e-9


def test_mm_never_raises_the_objective_with_missing_entries():
    problem, factors = random_problem((6, 5, 4), seed=5)
    observed = np.random.default_rng(0).random((6, 5, 4)) < 0.7
    data = DataTensor.of_array(np.where(observed, problem.X, 0), observed)
    holed = replace(problem, data=data)
    result = fit(holed, factors, max_iter=25)
    assert largest_rise(result.objective_curve) <= 1e-9


def test_last_value_of_the_curve_belongs_to_the_factors():
    from gwntf.solver import evaluate

    problem, factors = random_problem((5, 4, 3), seed=2)
    result = fit(problem, factors, max_iter=10)
    again = evaluate(problem, result.factors).total
    np.testing.assert_allclose(result.objective, again, rtol=1e-10)
    assert result.status is Status.MAX_ITER


def test_columns_of_all_but_the_sample_factor_sum_to_one():
    problem, factors = random_problem((5, 4, 3), seed=2)
    for plain in (None, Plain(), Plain("multiplicative")):
        result = fit(problem, factors, max_iter=5, plain=plain)
        for factor in result.factors[1:]:
            np.testing.assert_allclose(factor.sum(axis=0), 1)
