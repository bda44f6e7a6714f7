"""The transport step against POT, exact transport and itself in another number system."""

from __future__ import annotations

import math
import warnings

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwntf.backends import get_backend
from gwntf.core import Relaxation
from gwntf.geometry import DenseKernel, SeparableCost, SeparableKernel, build_kernel
from gwntf.transport import plan_terms, scale
from gwntf.transport import scaling as scaling_module
from gwntf.transport.domains import Log, Plain
from tests import oracles

NUMPY = get_backend("numpy")


def solve(x, y, cost, relaxation, *, max_iter=50_000, tol=1e-15, log_u=None):
    kernel = build_kernel(cost, relaxation.reg, NUMPY, x.dtype)
    return scale(NUMPY, kernel, x, y, relaxation, max_iter=max_iter, tol=tol, log_u=log_u)


def pot_plan(x, y, cost, relaxation):
    """POT on the support of both sides; its "entropy" regulariser is T log T - T, hence the cost + reg."""
    rows, columns = x > 0, y > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = ot.unbalanced.sinkhorn_unbalanced(
            x[rows],
            y[columns],
            cost[np.ix_(rows, columns)] + relaxation.reg,
            relaxation.reg,
            (relaxation.reg_m_data, relaxation.reg_m_model),
            reg_type="entropy",
            numItermax=200_000,
            stopThr=1e-17,
        )
    full = np.zeros((len(x), len(y)))
    full[np.ix_(rows, columns)] = plan
    return full


weights = st.floats(0.1, 5)


@st.composite
def problems(draw):
    """Columns with zeros, an asymmetric cost, and weights for which both solvers converge soon."""
    size, columns = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    x, y = rng.random((size, columns)) * draw(weights), rng.random((size, columns))
    x[rng.random(x.shape) < draw(st.sampled_from([0, 0.4]))] = 0
    y[rng.random(y.shape) < draw(st.sampled_from([0, 0.2]))] = 0
    relaxation = Relaxation(draw(st.floats(0.05, 1)), draw(weights), draw(weights))
    return x, y, rng.random((size, size)), relaxation


@given(problems())
def test_equals_pot_unbalanced(problem):
    x, y, cost, relaxation = problem
    solved = solve(x, y, cost, relaxation)
    for column in range(x.shape[1]):
        if x[:, column].any() and y[:, column].any():
            plan = pot_plan(x[:, column], y[:, column], cost, relaxation)
        else:
            plan = np.zeros_like(cost)
        np.testing.assert_allclose(solved.data_marginal[:, column], plan.sum(axis=1), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(solved.model_marginal[:, column], plan.sum(axis=0), rtol=1e-10, atol=1e-12)


@given(seed=st.integers(0, 1000), size=st.integers(2, 6))
def test_balanced_equals_pot_sinkhorn(seed, size):
    rng = np.random.default_rng(seed)
    x, y = rng.random((size, 1)) + 0.1, rng.random((size, 1)) + 0.1
    x, y = x / x.sum(), y / y.sum()
    cost = rng.random((size, size))
    solved = solve(x, y, cost, Relaxation(0.1, math.inf, math.inf))
    plan = np.exp(solved.log_u - cost / 0.1 - 1 + solved.log_v.T)
    expected = ot.sinkhorn(x[:, 0], y[:, 0], cost, 0.1, stopThr=0, numItermax=5000, warn=False)
    np.testing.assert_allclose(plan, expected, rtol=1e-9, atol=1e-12)


def test_half_balanced_holds_its_side_exactly(rng):
    x, y, cost = rng.random((5, 3)), rng.random((5, 3)), rng.random((5, 5))
    solved = solve(x, y, cost, Relaxation(0.1, math.inf, 0.7))
    np.testing.assert_allclose(solved.data_marginal, x, rtol=1e-12)
    column = oracles.plan(x[:, 0], y[:, 0], cost, 10.0, math.inf, 0.7)
    np.testing.assert_allclose(solved.model_marginal[:, 0], column.sum(axis=0), rtol=1e-9)


def test_sharp_entropy_approaches_exact_transport(rng):
    x, y = rng.random((8, 1)), rng.random((8, 1))
    x, y = x / x.sum(), y / y.sum()
    cost = rng.random((8, 8))
    exact = ot.emd2(x[:, 0], y[:, 0], cost)
    gaps = []
    for reg in (1e-1, 1e-2, 1e-3):
        relaxation = Relaxation(reg, math.inf, math.inf)
        solved = solve(x, y, cost, relaxation, max_iter=200_000, tol=1e-12)
        plan = np.exp(solved.log_u - cost / reg - 1 + solved.log_v.T)
        gaps.append(abs((cost * plan).sum() - exact))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-3


@given(problems())
def test_log_domain_equals_plain_where_plain_is_safe(problem):
    x, y, cost, relaxation = problem
    keep = x.any(axis=0) & y.any(axis=0)
    if not keep.any():
        return
    x, y = x[:, keep], y[:, keep]
    kernel = build_kernel(cost, relaxation.reg, NUMPY, np.float64)
    start = np.full_like(x, -math.log(len(x)))
    found = []
    with np.errstate(all="ignore"):
        for domain in (Plain(NUMPY, kernel, 1e-300), Log(NUMPY, kernel)):
            solved, sound = scaling_module._solve(np, domain, (x, y, start), relaxation, 37, 0, wait=True)
            assert sound.all()
            found.append(solved[2:])
    for plain, logarithmic in zip(*found, strict=True):
        np.testing.assert_allclose(logarithmic, plain, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("reg", [1, 1e-1, 1e-2, 1e-3, 1e-4])
def test_float32_never_gives_nan_and_agrees_with_float64(reg, rng):
    size = 24
    cost = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / (size - 1)
    x, y = rng.random((size, 40)) ** 4, rng.random((size, 40)) ** 8
    x[rng.random(x.shape) < 0.7] = 0
    x[:, 0], x[0, 0] = 0, 1  # all data at one end: the far scalings leave the range of float32
    y[:, 0], y[-1, 0] = 1e-6, 1
    x[:, 1] = 0
    relaxation = Relaxation(reg, 1, 1)
    wide = solve(x, y, cost, relaxation, max_iter=30, tol=0)
    narrow = solve(x.astype(np.float32), y.astype(np.float32), cost, relaxation, max_iter=30, tol=0)
    assert narrow.model_marginal.dtype == np.float32
    assert np.isfinite(narrow.model_marginal).all()
    assert np.isfinite(narrow.data_marginal).all()
    assert not np.isnan(narrow.log_v).any()
    np.testing.assert_allclose(narrow.model_marginal, wide.model_marginal, rtol=2e-3, atol=1e-6)


def test_float32_uses_wider_numbers_only_for_columns_that_need_them(rng, monkeypatch):
    used = []
    original = scaling_module._solve

    def counted(xp, domain, problem, *rest, **options):
        used.append((type(domain).__name__, problem[0].dtype.name, problem[0].shape[1]))
        return original(xp, domain, problem, *rest, **options)

    monkeypatch.setattr(scaling_module, "_solve", counted)
    cost = np.abs(np.subtract.outer(np.arange(32), np.arange(32))) / 31
    x, y = rng.random((32, 50)).astype(np.float32), rng.random((32, 50)).astype(np.float32)
    x[1:, 7] = 0
    solve(x, y, cost, Relaxation(0.01, 1, 1), max_iter=10, tol=0)
    assert used == [("Plain", "float32", 50), ("Plain", "float64", 1)]


def test_float32_products_near_the_smallest_numbers_are_not_trusted():
    """Entries of K below the normal numbers of float32 are rounded: the columns that need them go to float64."""
    cost = np.array([[0.0, 0.95], [0.95, 0.0]])
    x = np.array([[1.0, 1.0], [0.0, 1.0]])
    y = np.array([[0.5, 0.5], [0.5, 0.5]])
    relaxation = Relaxation(0.01, 0.05, 0.05)
    wide = solve(x, y, cost, relaxation, max_iter=20, tol=0)
    narrow = solve(x.astype(np.float32), y.astype(np.float32), cost, relaxation, max_iter=20, tol=0)
    np.testing.assert_allclose(narrow.model_marginal, wide.model_marginal, rtol=1e-5)


def test_follows_the_recursion_scaling_by_scaling(rng):
    x, y, cost = rng.random((5, 1)), rng.random((5, 1)), rng.random((5, 5))
    solved = solve(x, y, cost, Relaxation(0.1, 1.0, 2.0), max_iter=3, tol=0)
    u, v, _ = oracles.scalings(x[:, 0], y[:, 0], cost, 10.0, 1.0, 2.0, iterations=3)
    np.testing.assert_allclose(np.exp(solved.log_u[:, 0]), u)
    np.testing.assert_allclose(np.exp(solved.log_v[:, 0]), v)


def test_warm_start_continues_where_the_last_call_ended(rng):
    x, y, cost = rng.random((6, 4)), rng.random((6, 4)), rng.random((6, 6))
    relaxation = Relaxation(0.05, 1, 1)
    first = solve(x, y, cost, relaxation, max_iter=4, tol=0)
    second = solve(x, y, cost, relaxation, max_iter=3, tol=0, log_u=first.log_u)
    whole = solve(x, y, cost, relaxation, max_iter=7, tol=0)
    np.testing.assert_allclose(second.log_v, whole.log_v, rtol=1e-12)


def test_a_column_does_not_depend_on_the_columns_beside_it(rng):
    x, y, cost = rng.random((6, 30)), rng.random((6, 30)) * np.logspace(-3, 3, 30), rng.random((6, 6))
    relaxation = Relaxation(0.05, 1, 1)
    together = solve(x, y, cost, relaxation, max_iter=300, tol=1e-5)
    for column in range(30):
        part = slice(column, column + 1)
        alone = solve(x[:, part], y[:, part], cost, relaxation, max_iter=300, tol=1e-5)
        np.testing.assert_allclose(together.model_marginal[:, part], alone.model_marginal, rtol=1e-12)


def test_tolerance_stops_early_and_bounds_the_error(rng):
    x, y, cost = rng.random((6, 20)), rng.random((6, 20)), rng.random((6, 6))
    relaxation = Relaxation(0.05, 1, 1)
    exact = solve(x, y, cost, relaxation)
    loose = solve(x, y, cost, relaxation, max_iter=10_000, tol=1e-6)
    error = np.abs(loose.model_marginal - exact.model_marginal).sum(axis=0) / exact.model_marginal.sum(axis=0)
    assert 0 < error.max() < 1e-5


def test_zero_fiber_costs_only_the_model_mass(rng):
    x, y, cost = rng.random((5, 3)), rng.random((5, 3)), rng.random((5, 5))
    x[:, 1] = 0
    relaxation = Relaxation(0.1, 1.5, 0.7)
    solved = solve(x, y, cost, relaxation, max_iter=20)
    assert not solved.model_marginal[:, 1].any()
    assert np.isneginf(solved.log_u[:, 1]).all()
    total = plan_terms(NUMPY, solved, x, y, relaxation).sum(axis=0)
    assert math.isclose(total[1], 0.7 * y[:, 1].sum(), rel_tol=1e-12)


def test_empty_model_column_costs_only_the_data_mass(rng):
    x, y, cost = rng.random((5, 2)), rng.random((5, 2)), rng.random((5, 5))
    y[:, 0] = 0
    relaxation = Relaxation(0.1, 1.5, 0.7)
    total = plan_terms(NUMPY, solve(x, y, cost, relaxation), x, y, relaxation).sum(axis=0)
    assert math.isclose(total[0], 1.5 * x[:, 0].sum(), rel_tol=1e-12)


def test_one_element_mode_has_a_closed_form():
    x, y = np.array([[2.0]]), np.array([[3.0]])
    lam, alpha, beta = 10.0, 1.0, 2.0
    solved = solve(x, y, np.zeros((1, 1)), Relaxation(1 / lam, alpha, beta))
    # stationarity of (t log t)/lam + alpha KL(t|2) + beta KL(t|3)
    logs = (alpha * math.log(2) + beta * math.log(3) - 1 / lam) / (alpha + beta + 1 / lam)
    assert math.isclose(solved.model_marginal[0, 0], math.exp(logs), rel_tol=1e-10)


@given(problems())
def test_terms_equal_the_literal_sum_over_the_plan(problem):
    x, y, cost, relaxation = problem
    lam, alpha, beta = 1 / relaxation.reg, relaxation.reg_m_data, relaxation.reg_m_model
    solved = solve(x, y, cost, relaxation, max_iter=11, tol=0)
    total = plan_terms(NUMPY, solved, x, y, relaxation).sum(axis=0)
    for column in range(x.shape[1]):
        a, b = x[:, column], y[:, column]
        plan = oracles.plan(a, b, cost, lam, alpha, beta, iterations=11)
        expected = oracles.plan_value(plan, a, b, cost, lam, alpha, beta)
        assert math.isclose(total[column], expected, rel_tol=1e-9, abs_tol=1e-10)


def test_after_convergence_the_scaling_equations_hold(rng):
    x, y, cost = rng.random((6, 5)), rng.random((6, 5)), rng.random((6, 6))
    relaxation = Relaxation(0.05, 2, 3)
    solved = solve(x, y, cost, relaxation)
    kernel = np.exp(-cost / 0.05 - 1)
    u, v = np.exp(solved.log_u), np.exp(solved.log_v)
    np.testing.assert_allclose(u, (x / (kernel @ v)) ** relaxation.phi, rtol=1e-12)
    np.testing.assert_allclose(v, (y / (kernel.T @ u)) ** relaxation.psi, rtol=1e-12)


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    seed=st.integers(0, 99),
    transposed=st.booleans(),
)
def test_separable_kernel_equals_its_dense_matrix(sizes, seed, transposed):
    rng = np.random.default_rng(seed)
    cost = SeparableCost([rng.random((size, size)) for size in sizes])
    separable = build_kernel(cost, 0.3, NUMPY, np.float64)
    dense = build_kernel(cost.to_matrix(), 0.3, NUMPY, np.float64)
    assert isinstance(separable, SeparableKernel)
    assert isinstance(dense, DenseKernel)
    v = rng.random((cost.size, 3))
    expected = dense.matmul(v, transposed=transposed)
    np.testing.assert_allclose(separable.matmul(v, transposed=transposed), expected)
    for kernel in (separable, dense):
        logs = kernel.log_matmul(np.log(v), transposed=transposed)
        np.testing.assert_allclose(logs, np.log(expected), rtol=1e-10, atol=1e-12)
