"""Every backend against the reference: scalings column by column, kernels, whole fits of all methods, new samples."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import kl_div

from gwntf import (
    GNCP,
    GNMF,
    GWNTF,
    NCP,
    NMF,
    SDNMF,
    SWIFT,
    KNNGraph,
    SeparableCost,
    TensorClustering,
    TransportOptions,
)
from gwntf.backends import DenseForm, ExponentialForm, get_backend
from gwntf.core import Relaxation
from gwntf.datasets import load_digits_tensor
from gwntf.geometry import build_kernel, grid_cost
from gwntf.losses.sweeps import sweep_rows, sweep_unit_columns
from gwntf.transport import TransportLimits, ratio_and_kl
from tests.backends import OTHERS, REFERENCE, transport, transport_tensor
from tests.schemes import plain

every_backend = pytest.mark.parametrize("name", OTHERS)


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
    relaxation = Relaxation(draw(st.sampled_from([1.0, 0.1, 0.02])), draw(st.floats(0.1, 5)), draw(st.floats(0.1, 5)))
    return x, y, cost, relaxation


@every_backend
@settings(max_examples=60)
@given(problem=problems(), dtype=st.sampled_from([np.float32, np.float64]), tol=st.sampled_from([0.0, 1e-3]))
def test_scalings_equal_the_reference(name, problem, dtype, tol):
    x, y, cost, relaxation = problem
    (found, log_u), (expected, log_u_r) = (
        transport(backend, cost, x, y, relaxation, max_iter=20, tol=tol, dtype=dtype)
        for backend in (get_backend(name), REFERENCE)
    )
    rtol = 1e-9 if dtype == np.float64 else 2e-3 if tol else 1e-4
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-12)
    np.testing.assert_array_equal(np.isneginf(log_u), np.isneginf(log_u_r))


@every_backend
@pytest.mark.parametrize("recursive", [True, False])
def test_hard_float32_columns_are_found_out_and_solved_in_wider_numbers(name, recursive, rng):
    """Data at one end, model at the other: V leaves float32 at reg = 0.01."""
    backend, cost = get_backend(name), grid_cost(32)
    if not recursive:
        cost = cost + 1e-9 * rng.random((32, 32))
    assert build_kernel(cost, 0.01, backend, np.float32).form().__class__ is (
        ExponentialForm if recursive else DenseForm
    )
    x, y = rng.random((32, 100)), rng.random((32, 100))
    x[5:, ::7] = 0
    relaxation = Relaxation(0.01, 1, 1)
    found, _ = transport(backend, cost, x, y, relaxation, max_iter=30, tol=0, dtype=np.float32)
    wide, _ = transport(REFERENCE, cost, x, y, relaxation, max_iter=30, tol=0, dtype=np.float64)
    np.testing.assert_allclose(found, wide, rtol=1e-4)


@every_backend
@pytest.mark.parametrize("sign", [1, -1])
def test_starts_that_float32_does_not_hold_are_not_cut_to_what_it_holds(name, sign, rng):
    x, y = (rng.random((1, 8, 120)).astype("float32") + 0.1 for _ in range(2))
    start = np.broadcast_to(sign * np.linspace(50, 130, 120, dtype="float32"), x.shape)
    relaxation, limits = Relaxation(0.01, 1.0, 1.0), TransportLimits(3, 0.0)
    found, expected = (
        transport_tensor(
            backend, grid_cost(8), *(array.astype(dtype) for array in (x, y)), 1, relaxation, limits,
            log_u=start.astype(dtype), warm=True,
        )
        for backend, dtype in ((get_backend(name), "float32"), (REFERENCE, "float64"))
    )  # fmt: skip
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)


@every_backend
def test_columns_that_float64_does_not_hold_are_solved_on_logarithms(name, rng):
    """At reg = 1e-4 a dense and a separable kernel underflow even in float64."""
    x, y = rng.random((12, 30)), rng.random((12, 30))
    x[2:, ::3] = 0
    for cost in (rng.random((12, 12)), SeparableCost.on_grid((3, 4))):
        (found, _), (expected, _) = (
            transport(backend, cost, x, y, Relaxation(1e-4, 1, 1), max_iter=5, tol=0, dtype=np.float64)
            for backend in (get_backend(name), REFERENCE)
        )
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@every_backend
@settings(max_examples=40)
@given(
    shape=st.sampled_from([(3, 5), (70, 4), (5, 3, 40), (9, 8, 7), (2, 300), (4, 3, 2, 5)]),
    mode=st.integers(0, 3),
    alpha=st.sampled_from([0.5, 1.0, np.inf]),
    dtype=st.sampled_from([np.float32, np.float64]),
    warm=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_modes_of_tensors_equal_the_reference(name, shape, mode, alpha, dtype, warm, seed):
    """Marginals, warm starts, terms and their sums by leading axes, zero fibers and hard columns included."""
    mode = mode % len(shape)
    rng = np.random.default_rng(seed)
    X, Y = rng.random(shape).astype(dtype), (rng.random(shape) + 0.01).astype(dtype)
    X[rng.random(shape) < 0.4] = 0
    X[0] = 0
    given = (grid_cost(shape[mode]), X, Y, mode, Relaxation(0.02, alpha, 0.7), TransportLimits(12, 1e-4))
    options = {"share": 0.5, "log_u": rng.standard_normal(shape).astype(dtype), "warm": warm, "start": 1.0}
    marginal, log_u, found = transport_tensor(get_backend(name), *given, **options)
    marginal_r, log_u_r, expected = transport_tensor(REFERENCE, *given, **options)
    rtol = 1e-9 if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(marginal, marginal_r, rtol=rtol)
    np.testing.assert_array_equal(np.isneginf(log_u), np.isneginf(log_u_r))
    finite = np.isfinite(log_u)
    np.testing.assert_allclose(log_u[finite], log_u_r[finite], rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.sum(axis=0), expected.sum(axis=0), rtol=rtol, atol=rtol)
    for a, b in zip(found.sum(axis=1), expected.sum(axis=1), strict=True):
        assert abs(a - b) <= rtol * max(1.0, abs(b))


@every_backend
def test_separable_kernels_equal_the_reference(name):
    """Both kinds of axes, and one of each, which is taken as dense."""
    rng = np.random.default_rng(0)
    x, y = rng.random((24, 150)), rng.random((24, 150))
    axes = {"grid": grid_cost(4), "other": rng.random((6, 6)), "grid2": grid_cost(6)}
    for pair in (("grid", "grid2"), ("grid", "other")):
        cost = SeparableCost([axes[axis] for axis in pair])
        for dtype in (np.float32, np.float64):
            (found, _), (expected, _) = (
                transport(backend, cost, x, y, Relaxation(0.05, 1, 1), max_iter=12, tol=0, dtype=dtype)
                for backend in (get_backend(name), REFERENCE)
            )
            np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == np.float32 else 1e-9)


@every_backend
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), dtype=st.sampled_from([np.float32, np.float64]))
def test_ratio_and_divergence_equal_the_reference(name, seed, dtype):
    rng = np.random.default_rng(seed)
    x, y = rng.gamma(0.5, size=(7, 45)).astype(dtype), rng.gamma(0.5, size=(7, 45)).astype(dtype)
    x[rng.random(x.shape) < 0.3] = 0
    x[0], y[1, x[1] == 0] = 0, 0
    y[2, np.flatnonzero(x[2])[0]] = 0
    backend = get_backend(name)
    assert (backend.fused_kl is None) == (name != "cpu")
    compiled = backend.fused_kl or partial(ratio_and_kl, backend.xp, axis=1)
    ratio, kl = (backend.to_numpy(part) for part in compiled(backend.asarray(x), backend.asarray(y)))
    with REFERENCE.quiet():
        ratio_r, kl_r = ratio_and_kl(np, x, y, axis=1)
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(ratio, ratio_r, rtol=rtol)
    np.testing.assert_allclose(kl, kl_r, rtol=rtol, atol=rtol)
    expected = kl_div(x.astype(float), y.astype(float)).sum(axis=1)
    np.testing.assert_allclose(kl, expected, rtol=10 * rtol, atol=10 * rtol)
    assert np.isinf(kl[2])


@every_backend
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), dtype=st.sampled_from([np.float32, np.float64]), size=st.integers(1, 300))
def test_sweeps_equal_literal_loops(name, seed, dtype, size):
    """One entry after the other, from the definition of coordinate descent."""
    rng, rank = np.random.default_rng(seed), 6
    a, basis = rng.random((size, rank)), rng.random((9, rank))
    basis[:, 4] = 0  # a component without curvature, unless the row has some
    gram, c = basis.T @ basis, rng.normal(1, 2, (size, rank))
    curvature = np.where(rng.random((size, 1)) < 0.5, 0.0, rng.random((size, 1)))
    rows, unit = a.copy(), a / np.linalg.norm(a, axis=0)
    for _ in range(2):
        for i, r in product(range(size), range(rank)):
            bend = gram[r, r] + curvature[i, 0]
            slope = rows[i] @ gram[r] + curvature[i, 0] * rows[i, r] - c[i, r]
            rows[i, r] = max(0, rows[i, r] - slope / bend) if bend > 0 else rows[i, r]
    for _, r in product(range(2), range(rank)):
        others = [s for s in range(rank) if s != r]
        rise = np.maximum(0, c[:, r] - unit[:, others] @ gram[others, r])
        unit[:, r] = rise / np.linalg.norm(rise) if rise.any() else unit[:, r]
    backend = get_backend(name)
    start, others, linear, bends = (backend.asarray(part, dtype) for part in (a, gram, c, curvature))
    length_one = backend.asarray(a / np.linalg.norm(a, axis=0), dtype)
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    found = sweep_rows(backend, start, linear, others, bends, 2)
    np.testing.assert_allclose(backend.to_numpy(found), rows, **tolerance)
    found = sweep_unit_columns(backend, length_one, linear, others, 2)
    np.testing.assert_allclose(backend.to_numpy(found), unit, **tolerance)
    assert (backend.fused_sweeps is None) == (name != "cpu")
    np.testing.assert_array_equal(backend.to_numpy(start), a.astype(dtype))


MODELS = {
    "all modes": GWNTF(6, graph_reg=10.0),
    "some modes": GWNTF(6, costs=(None, "grid2", "euclidean"), graph_reg=0, reg=0.05),
    "KL": GWNTF(6, costs=(None, None, None)),
    "ratio rule": plain(GWNTF(6, graph_reg=10.0), "multiplicative", 3),
    "exact data side": GWNTF(6, reg_m=(np.inf, 1.0), reg=0.05, graph_reg=10.0),
    "adaptive": GWNTF(6, transport=TransportOptions("auto"), sample_norm="l1"),
    "nndsvd": GWNTF(6, init="nndsvd", graph_reg=10.0, graph=KNNGraph(weight="self-tuning")),
    "cold": GWNTF(6, transport=TransportOptions(max_memory=0)),
    "SDNMF": SDNMF(6),
    "SWIFT": SWIFT(6, costs=(None, "cosine", "grid")),
    "NMF": NMF(6),
    "GNMF": GNMF(6),
    "NCP": NCP(6, n_init=2),
    "GNCP": GNCP(6),
    "missing": GWNTF(6, graph_reg=10.0, missing="ignore"),
    "missing, KL": GWNTF(6, costs=(None, None, None), missing="ignore"),
    "missing, least squares": GNCP(6, missing="ignore"),
}


@every_backend
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model", list(MODELS.values()), ids=list(MODELS))
def test_whole_fits_equal_the_reference(name, model, dtype):
    """Factors, objective, error, new samples, their reconstruction and score.

    In the first iterations of the quasi-Newton method differences of rounding grow tenfold with each.
    """
    X = load_digits_tensor()[0][:120]
    if model.missing == "ignore":
        X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    new, found = X[100:], []
    iterations = 5 if dtype == "float64" else 3
    for engine in ("numpy", name):
        model.set_params(max_iter=iterations, tol=0, random_state=0, dtype=dtype, engine=engine).fit(X)
        arrays = [*model.factors_, model.components_, model.transform(new), model.reconstruct(new)]
        scalars = [*model.objective_curve_, model.reconstruction_err_, model.score(new)]
        found.append((arrays, scalars))
    rtol = 1e-9 if dtype == "float64" else 1e-4
    for a, b in zip(*(arrays for arrays, _ in found), strict=True):
        assert a.dtype == dtype
        assert np.linalg.norm(b - a) <= rtol * np.linalg.norm(a)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=rtol, atol=rtol * np.abs(found[0][1]).max())


@every_backend
@pytest.mark.parametrize(
    "model", [GWNTF(6), GWNTF(6, costs=(None, None, None)), GNMF(6)], ids=["transport", "KL", "LS"]
)
def test_fits_to_the_end_reach_the_objective_of_the_reference(name, model):
    X = load_digits_tensor()[0][:120]
    model.set_params(random_state=0)
    wanted, found = (model.set_params(engine=engine).fit(X).objective_ for engine in ("numpy", name))
    assert found == pytest.approx(wanted, rel=0.01)


@every_backend
def test_new_samples_that_settle_one_by_one_equal_the_reference(name):
    X = load_digits_tensor()[0]
    model = GWNTF(6, graph_reg=10.0, max_iter=30, tol=0, random_state=0, missing="ignore").fit(X[:80])
    new = X[80:100].copy()
    new[3, 2:4] = np.nan
    model.set_params(dtype="float64", tol=1e-3, max_iter=200)
    expected = model.set_params(engine="numpy").transform(new)
    np.testing.assert_allclose(model.set_params(engine=name).transform(new), expected, rtol=1e-8)


TIED = {
    "transport": GWNTF(4, graph_reg=10.0, graph=KNNGraph(weight="self-tuning")),
    "least squares": GNMF(4),
    "pixels": SDNMF(4, graph=KNNGraph(metric="gradient")),
    "missing": GNCP(4, missing="ignore", graph=KNNGraph(weight="cosine")),
}


@every_backend
@pytest.mark.parametrize("model", list(TIED.values()), ids=list(TIED))
def test_new_samples_joined_by_the_graph_equal_the_reference(name, model):
    """Each stops by itself; the backend that embeds need not be the one of the fit."""
    X = load_digits_tensor()[0][:110]
    if model.missing == "ignore":
        X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    model.set_params(max_iter=8, tol=0, random_state=0, dtype="float64")
    found = []
    for engines in (("numpy", "numpy"), (name, name), (name, "numpy")):
        model.set_params(engine=engines[0], max_iter=8, tol=0).fit(X[:90])
        model.set_params(engine=engines[1], max_iter=300, tol=1e-4)
        found.append(model.transform(X[90:]))
    for embedding in found[1:]:
        np.testing.assert_allclose(embedding, found[0], rtol=1e-7, atol=1e-10)


@every_backend
def test_clusters_and_predictions_equal_the_reference(name):
    X = load_digits_tensor()[0][:110]
    found = []
    for engine in ("numpy", name):
        clusterer = TensorClustering(5, max_iter=4, engine=engine, dtype="float64", random_state=0).fit(X[:90])
        found.append((clusterer.labels_, clusterer.predict(X[90:])))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@every_backend
@pytest.mark.parametrize("model", [GWNTF(4, graph_reg=10.0), GNMF(4)], ids=["transport", "least squares"])
def test_filled_entries_equal_the_reference(name, model):
    """Holes as NaN on the reference and under a mask on the other; of the fit and of new samples."""
    X = load_digits_tensor()[0][:60]
    hidden = np.random.default_rng(0).random(X.shape) < 0.2
    holed, masked = np.where(hidden, np.nan, X), np.ma.MaskedArray(np.where(hidden, -1, X), mask=hidden)
    model.set_params(max_iter=6, tol=0, random_state=0, dtype="float64", missing="ignore")
    found = []
    for engine, data in (("numpy", holed), (name, masked)):
        fitted = model.set_params(engine=engine).fit_impute(data)
        found.append((fitted, model.impute(data[:10])))
    for a, b, gone in zip(*found, (hidden, hidden[:10]), strict=True):
        assert type(b) is np.ndarray
        np.testing.assert_array_equal(b[~gone], X[: len(b)][~gone])
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)


@every_backend
def test_the_same_seed_gives_the_same_bits(name):
    X = load_digits_tensor()[0][:150]
    model = GWNTF(8, max_iter=5, tol=0, random_state=3, engine=name)
    first = model.fit(X).embedding_.copy()
    np.testing.assert_array_equal(model.fit(X).embedding_, first)
