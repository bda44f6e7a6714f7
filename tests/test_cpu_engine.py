"""The compiled engine against the reference: powers to a few ulp, scalings column by column, whole fits."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import kl_div
from threadpoolctl import threadpool_limits

from gwntf import GNCP, GWNTF, SDNMF, SWIFT, SeparableCost
from gwntf.core import MissingLibraryError, Relaxation
from gwntf.datasets import load_digits_tensor
from gwntf.engines import DenseForm, ExponentialForm, get_engine
from gwntf.engines import registry as registry_module
from gwntf.engines.cpu import compiling, sources
from gwntf.engines.cpu.powers import JIT, divide_by_powers, exp2_of, log2_of
from gwntf.engines.cpu.products import T, tile_width
from gwntf.engines.cpu.threads import Threads
from gwntf.geometry import build_kernel, grid_cost
from gwntf.transport import TransportLimits, transport_mode

CPU, REFERENCE = get_engine("cpu"), get_engine("numpy")


@numba.njit(**JIT)
def logs(x, out):
    for j in range(x.size):
        out[j] = log2_of(x[j])


@numba.njit(**JIT)
def exps(x, out):
    for j in range(x.size):
        out[j] = exp2_of(x[j])


def whole_range(dtype):
    """Numbers spread over the whole positive range, the smallest and the largest among them."""
    info = np.finfo(dtype)
    low = -149 if dtype == np.float32 else -1074
    exponents = np.random.default_rng(0).uniform(low, info.maxexp, 100_000)
    numbers = np.exp2(exponents.astype(np.longdouble)).astype(dtype)
    edges = [info.smallest_subnormal, info.smallest_normal, info.max, 1, 1 + info.eps, 1 - info.epsneg]
    return np.concatenate([numbers[numbers > 0], np.array(edges, dtype)])


def ulps(found, exact):
    return np.abs(found - exact) / np.spacing(np.abs(exact).astype(found.dtype)).astype(np.longdouble)


@pytest.mark.parametrize("power", [0.0, 0.3, 0.5, 100 / 101, 0.99999, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_are_right_to_a_few_ulp_everywhere(dtype, power):
    x = whole_range(dtype)
    p = dtype(power)
    out = np.empty_like(x)
    divide_by_powers(np.ones_like(x), x, p, out)
    with np.errstate(over="ignore"):
        exact = 1 / x.astype(np.longdouble) ** np.longdouble(p)
    normal = (exact < np.finfo(dtype).max) & (exact > np.finfo(dtype).smallest_normal)
    assert ulps(out[normal], exact[normal]).max() < 4
    assert np.isinf(out[exact > 2 * np.longdouble(np.finfo(dtype).max)]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_zero_and_of_huge_numerators(dtype):
    x = np.array([0.0, 1e30, 1e-30], dtype)
    out = np.empty_like(x)
    divide_by_powers(np.array([1.0, 1e30, 1e-30], dtype), x, dtype(0.99), out)
    np.testing.assert_allclose(out, [0, 1e30**0.01, 1e-30**0.01], rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_and_exponentials(dtype):
    x = whole_range(dtype)
    out = np.empty_like(x)
    logs(x, out)
    exact = np.log2(x.astype(np.longdouble))
    away = np.abs(exact) > 0.5
    assert ulps(out[away], exact[away]).max() < 4
    assert np.abs(out - exact).max() < 100 * np.finfo(dtype).eps * np.abs(exact).max()
    info = np.finfo(dtype)
    y = np.random.default_rng(0).uniform(info.minexp, info.maxexp - 1, 100_000).astype(dtype)
    out = np.empty_like(y)
    exps(y, out)
    assert ulps(out, np.exp2(y.astype(np.longdouble))).max() < 4
    edges = np.array([-np.inf, -1e6, 1e6, np.inf, 0], dtype)
    out = np.empty_like(edges)
    exps(edges, out)
    np.testing.assert_array_equal(out, [0, 0, np.inf, np.inf, 1])


@st.composite
def problems(draw):
    size, columns = (
        draw(st.sampled_from([1, 2, 3, 5, 8, 13, 32])),
        draw(st.sampled_from([1, 63, 64, 65, 200])),
    )
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    x, y = rng.random((size, columns)), rng.random((size, columns)) + 1e-3
    x[rng.random(x.shape) < draw(st.sampled_from([0, 0.5]))] = 0
    cost = grid_cost(size) if draw(st.booleans()) else rng.random((size, size))
    relaxation = Relaxation(
        draw(st.sampled_from([1.0, 0.1, 0.02])), draw(st.floats(0.1, 5)), draw(st.floats(0.1, 5))
    )
    return x, y, cost, relaxation


def transport(engine, cost, x, y, relaxation, *, max_iter, tol, dtype):
    """Psi and log U of the columns of a matrix: its first mode."""
    x, y = x.astype(dtype), y.astype(dtype)
    marginal, log_u = np.zeros_like(x), np.zeros_like(x)
    kernel = build_kernel(cost, relaxation.reg, engine, dtype)
    limits = TransportLimits(max_iter, tol)
    transport_mode(
        engine, kernel, x, y, 0, relaxation, limits, marginal=marginal, share=1.0, log_u=log_u, warm=False
    )
    return marginal, log_u


@settings(max_examples=60)
@given(problem=problems(), dtype=st.sampled_from([np.float32, np.float64]), tol=st.sampled_from([0.0, 1e-3]))
def test_scalings_equal_the_reference(problem, dtype, tol):
    x, y, cost, relaxation = problem
    (found, log_u), (expected, log_u_r) = (
        transport(engine, cost, x, y, relaxation, max_iter=20, tol=tol, dtype=dtype)
        for engine in (CPU, REFERENCE)
    )
    rtol = 1e-9 if dtype == np.float64 else 2e-3 if tol else 1e-4
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-12)
    np.testing.assert_array_equal(np.isneginf(log_u), np.isneginf(log_u_r))


@pytest.mark.parametrize("recursive", [True, False])
def test_hard_float32_columns_are_found_out_and_solved_in_wider_numbers(recursive, rng):
    """Data at one end, model at the other: V leaves float32 at reg = 0.01."""
    cost = grid_cost(32)
    if not recursive:
        cost = cost + 1e-9 * rng.random((32, 32))
    assert build_kernel(cost, 0.01, CPU, np.float32).form().__class__ is (
        ExponentialForm if recursive else DenseForm
    )
    x, y = rng.random((32, 100)), rng.random((32, 100))
    x[5:, ::7] = 0
    relaxation = Relaxation(0.01, 1, 1)
    found, _ = transport(CPU, cost, x, y, relaxation, max_iter=30, tol=0, dtype=np.float32)
    wide, _ = transport(REFERENCE, cost, x, y, relaxation, max_iter=30, tol=0, dtype=np.float64)
    np.testing.assert_allclose(found, wide, rtol=1e-4)


@settings(max_examples=40)
@given(
    shape=st.sampled_from([(3, 5), (70, 4), (5, 3, 40), (9, 8, 7), (2, 300), (4, 3, 2, 5)]),
    mode=st.integers(0, 3),
    alpha=st.sampled_from([0.5, 1.0, np.inf]),
    dtype=st.sampled_from([np.float32, np.float64]),
    warm=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_modes_of_tensors_equal_the_reference(shape, mode, alpha, dtype, warm, seed):
    """Marginals, warm starts, terms and their sums by leading axes, zero fibers and hard columns included."""
    mode = mode % len(shape)
    rng = np.random.default_rng(seed)
    X, Y = rng.random(shape).astype(dtype), (rng.random(shape) + 0.01).astype(dtype)
    X[rng.random(shape) < 0.4] = 0
    X[0] = 0
    relaxation, limits = Relaxation(0.02, alpha, 0.7), TransportLimits(12, 1e-4)
    start = rng.standard_normal(shape).astype(dtype)
    outcomes = []
    for engine in (CPU, REFERENCE):
        kernel = build_kernel(grid_cost(shape[mode]), 0.02, engine, dtype)
        marginal, log_u = np.ones(shape, dtype), start.copy()
        result = transport_mode(
            engine,
            kernel,
            X,
            Y,
            mode,
            relaxation,
            limits,
            marginal=marginal,
            share=0.5,
            log_u=log_u,
            warm=warm,
        )
        outcomes.append((marginal, log_u, result))
    (marginal, log_u, found), (marginal_r, log_u_r, expected) = outcomes
    rtol = 1e-9 if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(marginal, marginal_r, rtol=rtol)
    np.testing.assert_array_equal(np.isneginf(log_u), np.isneginf(log_u_r))
    finite = np.isfinite(log_u)
    np.testing.assert_allclose(log_u[finite], log_u_r[finite], rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.by_leading, expected.by_leading, rtol=rtol, atol=rtol)
    for name in ("transport", "data", "model"):
        a, b = getattr(found.terms, name), getattr(expected.terms, name)
        assert abs(a - b) <= rtol * max(1.0, abs(b))


def test_new_samples_equal_the_reference():
    X = load_digits_tensor()[0]
    model = GWNTF(6, graph_reg=10.0, max_iter=30, tol=0, random_state=0, missing="ignore").fit(X[:80])
    new = X[80:100].copy()
    new[3, 2:4] = np.nan
    expected = model.set_params(engine="numpy").transform(new)
    np.testing.assert_allclose(model.set_params(engine="cpu").transform(new), expected, rtol=1e-8)


def test_threads_do_not_change_a_bit(rng):
    x, y = rng.random((16, 1000)), rng.random((16, 1000))
    results = []
    for threads in (1, 2):
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
        found = transport(
            CPU, grid_cost(16), x, y, Relaxation(0.05, 1, 1), max_iter=30, tol=1e-6, dtype=float
        )
        results.append(found[0])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "model",
    [
        GWNTF(6, graph_reg=10.0),
        GWNTF(6, costs=(None, "grid2", "euclidean"), graph_reg=0, reg=0.05),
        SDNMF(6),
        SWIFT(6, costs=(None, "cosine", "grid")),
        GNCP(6),
    ],
)
def test_whole_fits_equal_the_reference(model, dtype):
    X = load_digits_tensor()[0][:120]
    model.set_params(max_iter=12, tol=0, random_state=0, dtype=dtype)
    reference = model.set_params(engine="numpy").fit(X)
    expected = [factor.copy() for factor in reference.factors_]
    curve = reference.objective_curve_
    found = model.set_params(engine="cpu").fit(X)
    rtol = 1e-9 if dtype == "float64" else 1e-4
    for a, b in zip(found.factors_, expected, strict=True):
        assert np.linalg.norm(a - b) <= rtol * np.linalg.norm(b)
    np.testing.assert_allclose(found.objective_curve_, curve, rtol=rtol)


def test_without_numba_the_engine_says_what_to_install(monkeypatch):
    monkeypatch.setattr(registry_module, "find_spec", lambda name: None)
    with pytest.raises(MissingLibraryError, match="pip install numba"):
        get_engine("cpu")


def test_separable_kernels_equal_the_reference():
    """Both kinds of axes, and one of each, which is taken as dense."""
    rng = np.random.default_rng(0)
    x, y = rng.random((24, 150)), rng.random((24, 150))
    axes = {"grid": grid_cost(4), "other": rng.random((6, 6)), "grid2": grid_cost(6)}
    for pair in (("grid", "grid2"), ("grid", "other")):
        cost = SeparableCost([axes[name] for name in pair])
        for dtype in (np.float32, np.float64):
            (found, _), (expected, _) = (
                transport(engine, cost, x, y, Relaxation(0.05, 1, 1), max_iter=12, tol=0, dtype=dtype)
                for engine in (CPU, REFERENCE)
            )
            np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == np.float32 else 1e-9)


def test_long_grids_are_transported_in_narrow_tiles():
    rng = np.random.default_rng(0)
    x, y = rng.random((1500, 40)), rng.random((1500, 40))
    kernel = build_kernel(grid_cost(1500), 0.05, CPU, np.float64)
    assert tile_width(kernel.form(), 1500) < T
    (found, _), (expected, _) = (
        transport(engine, grid_cost(1500), x, y, Relaxation(0.05, 1, 1), max_iter=6, tol=0, dtype=np.float64)
        for engine in (CPU, REFERENCE)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), dtype=st.sampled_from([np.float32, np.float64]))
def test_ratio_and_divergence_equal_the_reference(seed, dtype):
    rng = np.random.default_rng(seed)
    x, y = rng.gamma(0.5, size=(7, 45)).astype(dtype), rng.gamma(0.5, size=(7, 45)).astype(dtype)
    x[rng.random(x.shape) < 0.3] = 0
    x[0], y[1, x[1] == 0] = 0, 0
    y[2, np.flatnonzero(x[2])[0]] = 0
    (ratio, kl), (ratio_r, kl_r) = (engine.ratio_and_kl(x, y) for engine in (CPU, REFERENCE))
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(ratio, ratio_r, rtol=rtol)
    np.testing.assert_allclose(kl, kl_r, rtol=rtol, atol=rtol)
    expected = kl_div(x.astype(float), y.astype(float)).sum(axis=1)
    np.testing.assert_allclose(kl, expected, rtol=10 * rtol, atol=10 * rtol)
    assert np.isinf(kl[2])


def test_threads_obey_every_limit():
    threads = Threads()
    before = numba.get_num_threads()
    with threadpool_limits(1):
        assert threads.count() == 1
    try:
        numba.set_num_threads(1)
        assert threads.count() == 1
    finally:
        numba.set_num_threads(before)
    assert threads.map(lambda item: item * item, [3, 1, 2]) == [9, 1, 4]


def test_errors_in_threads_come_out():
    def broken(item):
        raise RuntimeError(f"item {item}")

    with pytest.raises(RuntimeError, match="item 1"):
        CPU.map(broken, [1, 2])


def test_compiled_copies_know_all_their_sources(tmp_path, monkeypatch):
    """A change in any file of the compiled engine gives another number, and so another copy on disk."""
    folder = tmp_path / "engines" / "cpu"
    shutil.copytree(Path(sources.__file__).parent, folder)
    shutil.copy(Path(sources.__file__).parent.parent / "forms.py", folder.parent / "forms.py")
    monkeypatch.setattr(sources, "__file__", str(folder / "sources.py"))
    first = sources.digest_of_sources()
    assert first == sources.digest_of_sources()
    for name in ("products.py", "../forms.py"):
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write("# changed\n")
        second = sources.digest_of_sources()
        assert second != first
        first = second


def test_auto_is_the_compiled_engine_where_there_is_one(monkeypatch):
    assert get_engine("auto").name == "cpu"
    monkeypatch.setattr(registry_module, "find_spec", lambda name: None)
    assert get_engine("auto").name == "numpy"


def test_slow_compilation_is_told_and_quick_is_not(caplog, monkeypatch):
    monkeypatch.setattr(compiling, "_PATIENCE", 0.02)
    with compiling.told_if_slow("a test"):
        time.sleep(0.2)
    assert "compiling a test" in caplog.text
    caplog.clear()
    monkeypatch.setattr(compiling, "_PATIENCE", 5.0)
    with compiling.told_if_slow("a test"):
        pass
    assert caplog.text == ""
