"""Sparse data give what the same data give when they are dense, and are never made dense."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from gwntf import GNCP, GNMF, GWNTF, NCP, NMF, SDNMF, SWIFT, KNNGraph, TensorClustering, TransportOptions
from gwntf.backends import get_backend
from gwntf.core import InputError
from gwntf.data import DataTensor, KruskalRows, as_data, khatri_rao, unfold
from gwntf.data import sparse as sparse_module
from gwntf.data.sparse import SparseBlock, sparse_block
from tests.schemes import plain

pydata = pytest.importorskip("sparse")

NUMPY = get_backend("numpy")
SHAPES = [(14, 7), (13, 6, 5), (10, 4, 5, 3)]
FEW = {"max_iter": 6, "tol": 0, "random_state": 0}


def counts(shape, *, density=0.4, seed=0):
    """Random data with zero fibers along every mode; no two pairs of samples equally far apart."""
    rng = np.random.default_rng(seed)
    X = rng.random(shape) * (rng.random(shape) < density)
    X[:, 0] += 0.05 * rng.random(X[:, 0].shape)
    if len(shape) > 2:
        X[:, 2] = 0
        X[3:6, ..., 1] = 0
    return X


def as_sparse(X):
    return pydata.COO.from_numpy(X) if X.ndim > 2 else sp.csr_array(X)


def assert_same_fit(model, X, given=None):
    dense, sparse = clone(model).fit(X), clone(model).fit(as_sparse(X) if given is None else given)
    for found, expected in zip(sparse.factors_, dense.factors_, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(sparse.objective_curve_, dense.objective_curve_, rtol=1e-9)
    np.testing.assert_allclose(sparse.sample_scale_, dense.sample_scale_, rtol=1e-12)
    assert sparse.reconstruction_err_ == pytest.approx(dense.reconstruction_err_, rel=1e-9)
    assert sparse.status_ is dense.status_
    return dense, sparse


def models(order):
    """Every loss and update, subsets of the modes among them."""
    grid = ["grid"] * (order - 1)
    return {
        "all modes": GWNTF(3, graph_reg=1.0, **FEW),
        "all modes, reference": GWNTF(3, graph_reg=1.0, engine="numpy", **FEW),
        "without samples": GWNTF(3, costs=[None, *grid], graph_reg=2.0, transport=TransportOptions(7), **FEW),
        "samples alone": GWNTF(3, costs=["cosine", *[None] * (order - 1)], graph_reg=0, **FEW),
        "last mode alone": GWNTF(3, costs=[*[None] * (order - 1), "euclidean"], sample_norm="l1", **FEW),
        "KL": GWNTF(3, costs=[None] * order, graph_reg=1.0, graph=KNNGraph(weight="cosine"), **FEW),
        "balanced data side": GWNTF(3, reg_m=(np.inf, 1.0), graph_reg=0, sample_norm=None, **FEW),
        "cold": GWNTF(3, transport=TransportOptions(max_memory=0), graph=KNNGraph(weight="self-tuning"), **FEW),
        "adaptive": GWNTF(3, transport=TransportOptions("auto"), graph=KNNGraph(metric="euclidean"), **FEW),
        "ratio": plain(GWNTF(3, graph_reg=1.0, **FEW), "multiplicative"),
        "nndsvd": GWNTF(3, init="nndsvd", graph_reg=0, **FEW),
        "SWIFT": SWIFT(3, **FEW),
        "SDNMF": SDNMF(3, **FEW),
        "NCP": NCP(3, **FEW),
        "GNCP": GNCP(3, **FEW),
        "NMF": NMF(3, **FEW),
        "GNMF": GNMF(3, graph=KNNGraph(weight="cosine"), **FEW),
    }


@pytest.mark.parametrize("shape", SHAPES, ids=["matrix", "order 3", "order 4"])
@pytest.mark.parametrize("name", models(2))
def test_sparse_fit_equals_dense_fit(name, shape):
    model, X = models(len(shape))[name], counts(shape)
    dense, sparse = assert_same_fit(model, X)
    new = counts(shape, seed=1)[:5]
    np.testing.assert_allclose(sparse.transform(as_sparse(new)), dense.transform(new), rtol=1e-9, atol=1e-11)
    assert sparse.score(as_sparse(new)) == pytest.approx(dense.score(new), rel=1e-9)
    np.testing.assert_allclose(sparse.reconstruct(as_sparse(new)), dense.reconstruct(new), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("entries", [64, 700])
def test_size_of_tiles_changes_nothing(entries, monkeypatch):
    monkeypatch.setattr(sparse_module, "_MIN_FIBERS", 3)
    monkeypatch.setattr(sparse_module, "_TILES_PER_BATCH", 2)
    monkeypatch.setattr("gwntf.backends.numpy_backend.NumpyBackend.block_entries", entries)
    X = counts((13, 6, 5))
    for costs in (["cosine", "grid", "grid"], [None] * 3):
        assert_same_fit(GWNTF(3, costs=costs, graph_reg=0, engine="numpy", **FEW), X)


def test_samples_without_entries_and_empty_data_are_as_when_dense():
    X = counts((13, 6, 5))
    X[4] = 0
    assert_same_fit(SWIFT(3, **FEW), X)
    assert_same_fit(NCP(3, **FEW), X)
    model = GWNTF(2, graph_reg=0, **FEW).fit(X)
    empty = np.zeros((2, 6, 5))
    np.testing.assert_array_equal(model.transform(as_sparse(empty)), model.transform(empty))


def test_float32_stays_float32():
    X = counts((13, 6, 5)).astype(np.float32)
    dense, sparse = (SWIFT(3, **FEW).fit(data) for data in (X, as_sparse(X)))
    assert {factor.dtype for factor in sparse.factors_} == {np.dtype(np.float32)}
    np.testing.assert_allclose(sparse.objective_curve_, dense.objective_curve_, rtol=1e-4)
    assert SWIFT(3, dtype="float64", **FEW).fit(as_sparse(X)).embedding_.dtype == np.float64


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_matrix])
def test_every_scipy_format_is_taken_and_folded(kind):
    X = counts((13, 6, 5))
    rows = kind(X.reshape(13, -1))
    dense, sparse = assert_same_fit(GWNTF(3, sample_shape=(6, 5), graph_reg=1.0, **FEW), X.reshape(13, -1), rows)
    assert sparse.sample_shape_ == (6, 5)
    np.testing.assert_array_equal(sparse.components_.shape, dense.components_.shape)


def test_compressed_arrays_counts_duplicates_and_stored_zeros_are_taken():
    X = np.random.default_rng(0).poisson(0.6, (13, 6, 5))
    X[:, 0, 0] += 1
    model = GWNTF(3, graph_reg=0, **FEW)
    assert_same_fit(model, X, pydata.GCXS.from_numpy(X))
    places = np.stack(np.nonzero(np.ones_like(X)))
    twice = np.concatenate([places, places], axis=1)
    values = np.concatenate([X.ravel(), np.zeros(X.size, X.dtype)])
    block = sparse_block(sp.coo_array((values, tuple(twice[:2])), shape=X.shape[:2]), NUMPY)
    np.testing.assert_array_equal(block.host_rows().toarray(), X.sum(axis=2))
    assert block.values.min() > 0


@pytest.mark.parametrize("shape", SHAPES, ids=["matrix", "order 3", "order 4"])
def test_products_over_the_fibers_of_any_mode_equal_those_of_unfoldings(shape, rng):
    X = counts(shape)
    factors = [rng.random((size, 3)) for size in shape]
    for mode in range(len(shape)):
        fibers = sparse_block(as_sparse(X), NUMPY).fibers(mode)
        assert fibers.count == np.count_nonzero(X.any(axis=mode))
        for other in range(len(shape)):
            rest = [factor for k, factor in enumerate(factors) if k != other]
            np.testing.assert_allclose(fibers.product(factors, other), unfold(X, other) @ khatri_rao(rest))


def test_relative_error_needs_no_dense_model(rng):
    X = counts((13, 6, 5))
    factors = [rng.random((size, 2)) for size in X.shape]
    found = as_data(as_sparse(X)).relative_error(KruskalRows(factors))
    model = np.einsum("ir,jr,kr->ijk", *factors)
    assert found == pytest.approx(np.linalg.norm(X - model) / np.linalg.norm(X), rel=1e-12)
    zeros = DataTensor.of_block(SparseBlock(np.zeros((2, 0), np.int64), np.zeros(0), (3, 2)))
    assert zeros.relative_error(KruskalRows([np.ones((3, 1)), np.ones((2, 1))])) == pytest.approx(6**0.5)


@pytest.mark.parametrize("weight", ["binary", "cosine", "self-tuning"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_graph_of_sparse_samples_is_that_of_dense_ones(metric, weight):
    X = counts((30, 6, 5))
    rule = KNNGraph(4, metric=metric, weight=weight)
    found, expected = (rule.build(data).toarray() for data in (as_sparse(X), X))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


def test_clusters_and_predictions_are_as_when_dense():
    X = counts((40, 6, 5))
    dense, sparse = (TensorClustering(4, graph=KNNGraph(), random_state=0) for _ in range(2))
    np.testing.assert_array_equal(sparse.fit_predict(as_sparse(X)), dense.fit_predict(X))
    np.testing.assert_array_equal(sparse.predict(as_sparse(X[:9])), dense.predict(X[:9]))


def scattered(shape, count, seed=0):
    """So many counts at random, in squares so that they share fibers."""
    rng = np.random.default_rng(seed)
    places = np.stack([rng.integers(size, size=count) for size in shape])
    places[0] = places[0][0] + np.arange(count) // 16 % shape[0]
    places[0] %= shape[0]
    return pydata.COO(places, 1.0 + rng.poisson(2, count), shape=shape)


@pytest.mark.parametrize(
    "model",
    [
        GWNTF(2, costs=(None, "grid", None), graph_reg=0, max_iter=1, tol=0, random_state=0),
        GWNTF(2, costs=(None, None, None), graph_reg=1.0, max_iter=1, tol=0, random_state=0),
        NCP(2, max_iter=1, tol=0, random_state=0),
    ],
    ids=["transport", "KL", "least squares"],
)
def test_memory_does_not_grow_with_the_shape(model):
    """1,000 x 300 x 40,000 would take 96 GB."""
    X, new = scattered((1_000, 300, 40_000), 4_000), scattered((50, 300, 40_000), 200, seed=1)
    model.fit(scattered((50, 300, 40_000), 100))  # compiles
    tracemalloc.start()
    try:
        model.fit(X)
        model.transform(new)
        model.score(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1e8


def test_library_is_not_imported_for_other_data():
    code = (
        "import sys, numpy, scipy.sparse, gwntf;"
        "gwntf.NMF(2, max_iter=2, tol=0, engine='numpy').fit(scipy.sparse.csr_array(numpy.ones((4, 3))));"
        "print('sparse' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def holding(X, value):
    """The same with another number at one of its places."""
    values = X.data.copy()
    values[3] = value
    return pydata.COO(X.coords, values, shape=X.shape)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda X: -X, "negative entries"),
        (lambda X: holding(X, np.nan), "1 NaN entry"),
        (lambda X: holding(X, np.inf), "infinite entries"),
        (lambda X: X.astype(complex), "entries of type complex"),
        (lambda X: X + 1, "fill_value=1"),
        (lambda X: X[0, 0], r"1 dimension\(s\)"),
    ],
)
def test_bad_entries_are_refused(change, match):
    given = change(as_sparse(counts((6, 4, 3))))
    with pytest.raises(InputError, match=match):
        NCP(2).fit(given)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (GWNTF(2, graph=KNNGraph(metric="gradient")), "metric.*sparse"),
        (GWNTF(2, graph=KNNGraph(metric=lambda X: X)), "metric.*callable with a sparse"),
        (NCP(2, sample_shape=(4, 3)), "sample_shape"),
    ],
)
def test_what_sparse_data_do_not_have_is_refused(model, match):
    with pytest.raises(InputError, match=match):
        model.fit(as_sparse(counts((8, 4, 3))))


def test_missing_entries_are_refused():
    X = as_sparse(counts((8, 4, 3)))
    with pytest.raises(InputError, match="in a sparse array no entry can be missing"):
        NCP(2, missing="ignore").fit(holding(X, np.nan))
    with pytest.raises(InputError, match="a sparse array, in which no entry is missing"):
        NCP(2, missing="ignore", max_iter=2, tol=0).fit_impute(X)


def test_costs_between_too_many_slices_are_refused_and_others_compared_pair_by_pair():
    X = scattered((6_000, 3, 4), 40_000)
    with pytest.raises(InputError, match="kernel_tol=0"):
        GWNTF(2, costs=("cosine", None, None), graph_reg=0).fit(X)
    Y = scattered((40, 1_200, 3), 8_000)
    model = SWIFT(2, costs=(None, "cosine", None), max_iter=2, tol=0, random_state=0)
    sparse, dense = (
        model.fit(Y).costs_[1],
        clone(model).set_params(transport=TransportOptions(kernel_tol=0)).fit(Y.todense()).costs_[1],
    )
    np.testing.assert_allclose(sparse, dense, atol=1e-12)


def test_reshaping_needs_places_that_can_be_counted():
    huge = SparseBlock(np.array([[0, 1], [3, 4], [5, 6]]), np.ones(2), (2, 2**40, 2**40))
    assert huge.fibers(2).count == 2
    with pytest.raises(InputError, match="fewer than"):
        huge.reshape((2**80,))


def test_parts_of_a_sparse_block_are_its_samples():
    X = counts((13, 6, 5))
    block = sparse_block(as_sparse(X), get_backend("cpu"))
    np.testing.assert_array_equal(block.select(slice(3, 9)).host_rows().toarray(), X[3:9].reshape(6, -1))
    np.testing.assert_array_equal(block.reshape((30,)).host_rows().toarray(), X.reshape(13, -1))
    np.testing.assert_allclose(block.sums(), X.reshape(13, -1).sum(axis=1))
