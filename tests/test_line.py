"""Transport along a line on logarithms: the same results as the reference, and no slow path for zeros."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwntf import GWNTF
from gwntf.backends import StackTask, get_backend
from gwntf.core import Relaxation
from gwntf.geometry import build_kernel
from gwntf.transport import fibers, plan_terms, scale

pytest.importorskip("numba")
BACKEND, REFERENCE = get_backend("cpu"), get_backend("numpy")


def assert_equals_reference(places, X, Y, relaxation, *, max_iter=7, tol=0.0, log_u=None):
    """Transport columns on logarithms, compiled and not."""
    cost = np.abs(np.subtract.outer(places, places))
    kernel = build_kernel(cost, relaxation.reg, REFERENCE, "float64")
    start = None if log_u is None else log_u.copy()
    expected = scale(REFERENCE, kernel, X, Y, relaxation, log_u=start, max_iter=max_iter, tol=tol)
    terms = plan_terms(REFERENCE, expected, X, Y, relaxation)
    form = build_kernel(cost, relaxation.reg, BACKEND, "float64").line_form()
    stacks = tuple(a[None].copy() for a in (X, Y, X if log_u is None else log_u, np.zeros_like(X)))
    task = StackTask(relaxation, (0.0, 0.0), True, 1.0, log_u is not None, True, max_iter, tol, fibers.CHECK_EVERY)
    found, accurate = BACKEND.stack_transport(lambda: form, *X.shape)(stacks, task)
    assert accurate.all()
    np.testing.assert_allclose(stacks[3][0], expected.model_marginal, rtol=1e-9, atol=1e-12 * max(1.0, X.sum()))
    finite = np.isfinite(expected.log_u)
    np.testing.assert_array_equal(np.isfinite(stacks[2][0]), finite)
    np.testing.assert_allclose(stacks[2][0][finite], expected.log_u[finite], rtol=1e-10, atol=1e-9)
    largest = np.abs(terms[np.isfinite(terms)]).max()
    np.testing.assert_allclose(found, terms, rtol=1e-8, atol=1e-9 * max(1.0, largest))


@settings(max_examples=40)
@given(
    st.integers(2, 40),
    st.integers(1, 20),
    st.floats(0.0, 0.95),
    st.floats(1e-3, 60.0),
    st.sampled_from([0.01, 0.1, 1.0]),
    st.booleans(),
    st.sampled_from([0.0, 1e-3]),
    st.integers(0, 2**31),
)
def test_lines_equal_the_reference_on_logarithms(size, columns, empty, longest, reg, even, tol, seed):
    rng = np.random.default_rng(seed)
    steps = np.full(size, longest / size) if even else rng.random(size) ** 3 * longest
    X, Y = (rng.random((size, columns)) * (rng.random((size, columns)) >= empty) for _ in range(2))
    X[:, 0] *= 10.0 ** rng.integers(-30, 30)
    assert_equals_reference(np.cumsum(steps), X, Y, Relaxation(reg, 1.0, 0.5), tol=tol, max_iter=12)


@pytest.mark.parametrize("relaxation", [Relaxation(0.01, 1.0, 1.0), Relaxation(0.05, np.inf, 2.0)])
def test_columns_without_mass_have_no_plan(relaxation, rng):
    X, Y = rng.random((2, 30, 5))
    X[:, 1] = Y[:, 2] = 0
    X[3:, 3] = Y[:20, 4] = 0
    assert_equals_reference(np.arange(30) * 0.7, X, Y, relaxation)


def test_a_warm_start_continues_where_the_first_call_ended(rng):
    places, relaxation = np.sort(rng.random(50)) * 40, Relaxation(0.02, 1.0, 1.0)
    X, Y = rng.random((2, 50, 4)) * (rng.random((2, 50, 4)) > 0.8) + [[[0.0]], [[1e-3]]]
    kernel = build_kernel(np.abs(np.subtract.outer(places, places)), relaxation.reg, REFERENCE, "float64")
    first = scale(REFERENCE, kernel, X, Y, relaxation, max_iter=4, tol=0.0)
    assert_equals_reference(places, X, Y, relaxation, log_u=first.log_u, max_iter=4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("even", [True, False])
def test_spectra_with_empty_baselines_take_no_slow_path(dtype, even, rng, monkeypatch):
    ppm = np.linspace(0, 10, 120) if even else np.sort(rng.random(120)) * 10
    peaks = np.exp(-0.5 * ((ppm - np.array([[1.0], [5.0], [8.0]])) / 0.1) ** 2)
    X = (rng.dirichlet(np.ones(3), 10) @ np.where(peaks > 1e-3, peaks, 0)).astype(dtype)
    cost = np.abs(np.subtract.outer(ppm, ppm)) / 0.1
    model = GWNTF(3, costs=(None, cost), graph_reg=0, max_iter=4, tol=0, random_state=0)
    expected = model.set_params(engine="numpy").fit(X.astype("float64")).factors_
    monkeypatch.setattr(fibers, "scale", None)
    found = model.set_params(engine="cpu").fit(X).factors_
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=(1e-9 if dtype == "float64" else 1e-4) * b.max())


def test_lines_are_recognised_and_other_costs_are_not(rng):
    places = np.sort(rng.random(12)) * 3
    line = np.abs(np.subtract.outer(places, places))
    assert build_kernel(line, 0.1, BACKEND, "float64").line_form() is not None
    for cost in (line**2, np.minimum(line, 1.0), line[rng.permutation(12)][:, rng.permutation(12)], line + 0.1):
        np.fill_diagonal(cost, 0)
        assert build_kernel(cost, 0.1, BACKEND, "float64").line_form() is None
