"""Near-far costs against all pairs: their parts, their kernel, their accuracy, and fits with them."""

from __future__ import annotations

import logging
import sys
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from gwntf import GWNTF, TransportOptions
from gwntf.backends import NearFarForm, get_backend
from gwntf.backends.numpy_backend import NumpyBackend
from gwntf.core import Relaxation
from gwntf.data import DataTensor
from gwntf.geometry import (
    NearFarCost,
    Points,
    build_kernel,
    near_far_parts,
    near_pairs,
    neighbors,
    resolve_cost,
)
from gwntf.solver import near_far_cost
from gwntf.transport import TransportLimits, transport_mode
from tests.backends import OTHERS, REFERENCE, transport_tensor

RELAXATION = Relaxation(0.05, 1.0, 1.0)


def clustered(size=240, features=20, groups=6, seed=0, dtype=np.float64):
    """Rows around a few directions, one of them empty."""
    rng = np.random.default_rng(seed)
    rows = rng.gamma(0.6, size=(groups, features))[rng.integers(0, groups, size)]
    rows = rows * rng.gamma(6, 1 / 6, size=(size, features))
    rows[3] = 0
    return rows.astype(dtype)


def build(rows, metric="cosine", n_near=8, n_clusters=10):
    points = Points.of_rows(rows, metric)
    return near_far_parts(points, near_pairs(points, n_near), n_clusters)


def exact_cost(rows, metric):
    return resolve_cost(metric, DataTensor.of_array(rows), 0)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_near_pairs_are_exact_and_far_ones_close(metric):
    rows = clustered()
    cost, exact = build(rows, metric), exact_cost(rows, metric)
    found = cost.to_matrix()
    np.testing.assert_array_equal(np.diag(found), 0)
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    order = np.argsort(exact + 10 * np.eye(len(rows)), axis=1)[:, :3]
    full = np.flatnonzero(rows.any(axis=1))  # an empty row is as far from every other
    for neighbor in order.T:
        np.testing.assert_allclose(found[full, neighbor[full]], exact[full, neighbor[full]], atol=1e-9)
    constant = np.abs(exact - exact.mean()).mean()
    assert np.abs(found - exact).mean() < 0.15 * constant


def test_far_costs_are_the_expansion_around_the_centres():
    rows = clustered(60)
    points = Points.of_rows(rows, "cosine")
    cost = build(rows, n_clusters=4)
    unit = points.features
    label = np.empty(60, int)
    label[cost.order] = cost.cluster
    centres = np.array([unit[label == c].mean(axis=0) for c in range(cost.n_clusters)])
    back = np.argsort(cost.order)
    for i, j in [(0, 59), (7, 31), (12, 3)]:
        a, b = centres[label[i]], centres[label[j]]
        expected = (1 - unit[i] @ b) + (1 - a @ unit[j]) - (1 - a @ b)
        np.testing.assert_allclose(cost.far(back[[i]], back[[j]]), [[expected]], atol=1e-12)


def test_more_clusters_make_it_exact():
    rows = clustered(80)
    cost = build(rows, n_clusters=80)
    np.testing.assert_allclose(cost.to_matrix(), exact_cost(rows, "cosine"), atol=1e-9)


@pytest.mark.parametrize("name", ["numpy", *OTHERS])
@settings(max_examples=20, deadline=None)
@given(
    size=st.integers(12, 90),
    n_clusters=st.integers(1, 9),
    reg=st.sampled_from([1.0, 0.05, 0.01]),
    seed=st.integers(0, 100),
)
def test_kernel_equals_its_dense_matrix(name, size, n_clusters, reg, seed):
    cost = build(clustered(size, seed=seed), n_near=4, n_clusters=n_clusters)
    backend = get_backend(name)
    kernel = build_kernel(cost, reg, backend, np.float64)
    matrix = np.exp(-cost.to_matrix() / reg - 1)
    far = np.empty_like(matrix)
    everywhere = np.arange(size)
    far[np.ix_(cost.order, cost.order)] = cost.far(everywhere, everywhere)
    matrix = np.maximum(matrix, 1e-4 * np.exp(-far / reg - 1))
    v = np.random.default_rng(seed).random((size, 3))
    expected = matrix @ v
    plain, logs = kernel.matmul(backend.asarray(v)), kernel.log_matmul(backend.asarray(np.log(v)))
    np.testing.assert_allclose(backend.to_numpy(plain), expected * np.exp(kernel.shift), rtol=1e-8)
    np.testing.assert_allclose(backend.to_numpy(logs), np.log(expected), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("warm", [False, True])
def test_near_far_transport_of_every_backend_equals_the_reference(name, dtype, warm):
    rows = clustered(300, seed=2, dtype=dtype)
    cost = build(rows, n_near=6, n_clusters=7)
    y = (rows + np.random.default_rng(0).random(rows.shape)).astype(dtype)
    assert isinstance(build_kernel(cost, RELAXATION.reg, get_backend(name), dtype).form(), NearFarForm)
    (found, _, result), (expected, _, reference) = (
        transport_tensor(
            backend,
            cost,
            rows,
            y,
            0,
            RELAXATION,
            TransportLimits(15, 1e-4),
            share=0.5,
            log_u=np.full_like(rows, -3.0),
            warm=warm,
        )
        for backend in (get_backend(name), REFERENCE)
    )
    rtol = 1e-9 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(found, expected, rtol=rtol)
    assert abs(result.sum() - reference.sum()) <= rtol * abs(reference.sum())


def test_a_few_long_fibers_are_left_to_the_reference():
    form = build_kernel(build(clustered()), 0.05, get_backend("cpu"), np.float64).form
    assert get_backend("cpu").stack_transport(form, 3000, 5) is None
    assert get_backend("cpu").stack_transport(form, 3000, 200) is not None


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_error_is_reported_and_true(metric):
    """The estimate from a part of the data is near the error of Psi on all of it."""
    rows = clustered(900, seed=5)
    cost = near_far_cost(Points.of_rows(rows, metric), RELAXATION, 0.05)
    assert isinstance(cost, NearFarCost)
    assert cost.error <= 0.05
    y = 0.7 * rows + 0.3 * rows.mean(axis=0)
    backend = get_backend("numpy")
    psi = []
    for matrix in (exact_cost(rows, metric), cost):
        kernel = build_kernel(matrix, RELAXATION.reg, backend, np.float64)
        marginal = np.zeros_like(rows)
        transport_mode(
            backend,
            kernel,
            rows,
            y,
            0,
            RELAXATION,
            TransportLimits(10, 0.0),
            marginal=marginal,
            share=1.0,
            log_u=None,
            warm=False,
        )
        psi.append(marginal)
    assert (psi[1][psi[0] > 0] > 0).all()
    assert np.linalg.norm(psi[1] - psi[0]) < 0.1 * np.linalg.norm(psi[0])


def test_impossible_accuracy_falls_back_to_all_pairs(caplog):
    rng = np.random.default_rng(0)
    with caplog.at_level(logging.INFO):
        assert near_far_cost(Points.of_rows(rng.random((200, 30)), "cosine"), RELAXATION, 1e-9) is None
    assert "clusters" in caplog.text


@pytest.mark.parametrize("engine", ["numpy", *OTHERS])
def test_fits_use_it_from_many_samples_on(engine, monkeypatch):
    monkeypatch.setattr(type(get_backend(engine)), "long_fibers", 100, raising=False)
    X = clustered(240, seed=1).reshape(240, 5, 4)
    options = {"costs": ("cosine", "grid", "grid"), "graph_reg": 1.0, "reg": 0.05}
    options |= {"max_iter": 8, "tol": 0, "random_state": 0, "engine": engine}
    near = GWNTF(4, transport=TransportOptions(kernel_tol=0.05), **options).fit(X)
    exact = GWNTF(4, transport=TransportOptions(kernel_tol=0), **options).fit(X)
    assert isinstance(near.costs_[0], NearFarCost)
    assert isinstance(exact.costs_[0], np.ndarray)
    assert abs(near.objective_ / exact.objective_ - 1) < 0.05
    assert np.linalg.norm(near.embedding_ - exact.embedding_) < 0.1 * np.linalg.norm(exact.embedding_)
    again = GWNTF(4, transport=TransportOptions(kernel_tol=0.05), **options).fit(X)
    np.testing.assert_array_equal(again.embedding_, near.embedding_)


def test_missing_entries_keep_all_pairs(monkeypatch):
    monkeypatch.setattr(NumpyBackend, "long_fibers", 100)
    X = clustered(120, seed=1) + 0.1
    X[0, 0] = np.nan
    model = GWNTF(3, costs=("cosine", None), missing="ignore", max_iter=2, tol=0, graph_reg=0).fit(X)
    assert isinstance(model.costs_[0], np.ndarray)


def test_approximate_neighbours_leave_the_row_itself_out(monkeypatch):
    """A stand-in for the search of large data, exact, with rows that do and do not find themselves."""
    rows = clustered(50)

    class Search:
        def __init__(self, features, metric, n_neighbors, random_state):
            distance, index = NearestNeighbors(n_neighbors=n_neighbors).fit(features).kneighbors(features)
            index[7] = np.roll(index[7], -1)
            index[7, -1] = 0  # the search missed row 7 itself
            self.neighbor_graph = index, distance

    monkeypatch.setattr(neighbors, "EXACT_LIMIT", 10)
    monkeypatch.setattr(neighbors, "find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "pynndescent", types.SimpleNamespace(NNDescent=Search))
    _, index = neighbors.nearest_rows(rows, 4)
    assert index.shape == (50, 4)
    assert not (index == np.arange(50)[:, None]).any()
    expected = NearestNeighbors(n_neighbors=4).fit(rows).kneighbors()[1]
    others = np.arange(50) != 7
    same = [set(a) == set(b) for a, b in zip(index[others], expected[others], strict=True)]
    assert np.mean(same) > 0.9


def test_real_approximate_search_finds_most_neighbours(monkeypatch):
    pytest.importorskip("pynndescent")
    monkeypatch.setattr(neighbors, "EXACT_LIMIT", 10)
    rows = clustered(400, seed=4)
    _, index = neighbors.nearest_rows(rows, 5)
    expected = NearestNeighbors(n_neighbors=5).fit(rows).kneighbors()[1]
    shared = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(index, expected, strict=True)])
    assert shared > 0.8
