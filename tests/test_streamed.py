"""Data that are read a block at a time give what the same data give in memory, and are never read whole."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from gwntf import (
    GNCP,
    GNMF,
    GWNTF,
    NCP,
    NMF,
    SDNMF,
    SWIFT,
    KNNGraph,
    TensorClustering,
    TransportOptions,
    fit_many,
)
from gwntf.backends import get_backend
from gwntf.core import GraphNotExtendedWarning, InputError
from gwntf.data import as_data, sources, unfold
from gwntf.data.blocks import LocalBlocks
from gwntf.data.dense import DenseBlock
from gwntf.data.stream import Streamed
from gwntf.geometry import features, neighbors
from gwntf.solver.start import leading_pairs
from tests.backends import needs_torch

pytestmark = pytest.mark.filterwarnings("ignore::gwntf.core.GraphNotExtendedWarning")

SHAPE = (29, 6, 5)
FEW = {"max_iter": 6, "tol": 0, "random_state": 0}
GRID = [None, "grid", "grid"]
ALL_MODES = ["cosine", "grid", "grid"]


def samples(shape=SHAPE, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random(shape) * (rng.random(shape) < 0.7)
    X[..., 0] += 0.05
    return X


def as_memmap(X, folder):
    file = np.memmap(folder / "x.bin", dtype=X.dtype, mode="w+", shape=X.shape)
    file[:] = X
    file.flush()
    return np.memmap(folder / "x.bin", dtype=X.dtype, mode="r", shape=X.shape)


def as_zarr(X, folder):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(str(folder / "x.zarr"), shape=X.shape, dtype=X.dtype, chunks=(4, *X.shape[1:]))
    array[...] = X
    return array


def as_dask(X, folder):
    dask = pytest.importorskip("dask.array")
    lengths = (5, 3, len(X) - 8)
    return dask.from_array(X, chunks=(lengths, 4, *X.shape[2:]))


KINDS = {"memmap": as_memmap, "zarr": as_zarr, "dask": as_dask}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Seven samples of thirty float64 numbers."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 7 * 30 * 8)
    monkeypatch.setattr(sources, "MAX_IN_MEMORY_BYTES", 0)


@pytest.fixture
def never_whole(monkeypatch):
    """Fail where more than some samples are asked for at a time."""
    real = sources.read

    def careful(X, rows):
        assert rows.stop is not None
        assert rows.stop - rows.start < X.shape[0]
        return real(X, rows)

    monkeypatch.setattr(sources, "read", careful)


MODELS = {
    "all modes": GWNTF(3, costs=ALL_MODES, graph_reg=1.0, **FEW),
    "all modes, reference": GWNTF(3, costs=ALL_MODES, graph_reg=1.0, engine="numpy", **FEW),
    "without samples": GWNTF(3, costs=GRID, graph_reg=2.0, transport=TransportOptions(7), **FEW),
    "samples alone": GWNTF(3, costs=["euclidean", None, None], graph_reg=0, **FEW),
    "cold": GWNTF(
        3,
        costs=ALL_MODES,
        transport=TransportOptions(max_memory=0),
        graph=KNNGraph(weight="self-tuning"),
        **FEW,
    ),
    "euclidean slices": GWNTF(3, costs=[None, "euclidean", "cosine"], sample_norm="l1", graph_reg=0, **FEW),
    "KL": GWNTF(3, costs=[None] * 3, graph_reg=1.0, graph=KNNGraph(weight="cosine"), **FEW),
    "adaptive": GWNTF(3, transport=TransportOptions("auto"), graph=KNNGraph(metric="euclidean"), **FEW),
    "exact data marginal": GWNTF(3, reg_m=(np.inf, 1.0), reg=0.05, graph_reg=0, **FEW),
    "nndsvd": GWNTF(3, init="nndsvd", costs=GRID, graph_reg=0, **FEW),
    "from the graph": GWNTF(6, init="graph", costs=GRID, graph=KNNGraph(metric="orientation"), **FEW),
    "metric chosen": GWNTF(3, costs=GRID, graph=KNNGraph(metric="auto"), **FEW),
    "starts": GWNTF(3, n_init=2, graph_reg=0, costs=GRID, **FEW),
    "SWIFT": SWIFT(3, **FEW),
    "SDNMF": SDNMF(3, graph=KNNGraph(metric="gradient"), **FEW),
    "NCP": NCP(3, **FEW),
    "NCP, nndsvd": NCP(3, init="nndsvd", engine="numpy", **FEW),
    "GNCP": GNCP(3, graph=KNNGraph(metric="wasserstein"), **FEW),
    "NMF": NMF(3, **FEW),
    "GNMF": GNMF(3, graph=KNNGraph(weight="cosine"), **FEW),
}


def assert_same_fit(model, X, given, rtol=1e-9):
    """Every fitted attribute that is a number is the same."""
    expected, found = clone(model).fit(X), clone(model).fit(given)
    assert {name for name in vars(found) if name.endswith("_")} == {
        name for name in vars(expected) if name.endswith("_")
    }
    for one, other in zip(found.factors_, expected.factors_, strict=True):
        assert type(one) is np.ndarray
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol / 100)
    np.testing.assert_allclose(found.objective_curve_, expected.objective_curve_, rtol=rtol)
    np.testing.assert_allclose(found.sample_scale_, expected.sample_scale_, rtol=rtol)
    np.testing.assert_allclose(found.reconstruction_err_, expected.reconstruction_err_, rtol=rtol)
    assert (found.status_, found.n_iter_) == (expected.status_, expected.n_iter_)
    assert (found.sample_shape_, found.n_features_in_) == (expected.sample_shape_, expected.n_features_in_)
    for one, other in zip(getattr(found, "costs_", ()), getattr(expected, "costs_", ()), strict=True):
        if isinstance(other, np.ndarray):
            np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-12)
    if getattr(expected, "graph_", None) is not None:
        np.testing.assert_allclose(found.graph_.toarray(), expected.graph_.toarray(), rtol=rtol)
    return expected, found


def without_extension(model, X):
    """Fit the same model with its graph ready, so that `transform` has no graph, as that of chunked data."""
    if getattr(model, "graph_", None) is None:
        return model
    return clone(model).set_params(graph=model.graph_).fit(X)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
def test_chunked_fit_equals_fit_in_memory(name, kind, tmp_path, never_whole):
    X = samples()
    assert_same_fit(MODELS[name], X, KINDS[kind](X, tmp_path))


@pytest.mark.parametrize("name", ["all modes", "without samples", "KL", "SDNMF", "NCP", "GNMF"])
def test_chunked_data_are_embedded_scored_and_reconstructed_as_in_memory(name, tmp_path, never_whole):
    X, new = samples(), samples((23, 6, 5), seed=1)
    expected, found = assert_same_fit(MODELS[name], X, as_memmap(X, tmp_path))
    expected = without_extension(expected, X)
    (tmp_path / "new").mkdir()
    given = as_memmap(new, tmp_path / "new")
    for method in ("transform", "reconstruct", "impute"):
        one, other = getattr(found, method)(given), getattr(expected, method)(new)
        assert type(one) is np.ndarray
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.score(given), expected.score(new), rtol=1e-9)


@pytest.mark.parametrize("graph", ["auto", KNNGraph(4)], ids=["auto", "given"])
def test_clusters_of_chunked_data_are_those_in_memory(graph, tmp_path, never_whole):
    """Labels are predicted without the graph, which is not extended to new samples of chunked data."""
    X, new = samples(), samples((23, 6, 5), seed=1)
    expected = TensorClustering(3, graph=graph, random_state=0).fit(X)
    found = TensorClustering(3, graph=graph, random_state=0).fit(as_memmap(X, tmp_path))
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert getattr(found, "graph_metric_", None) == getattr(expected, "graph_metric_", None)
    ready = TensorClustering(3, graph=expected.model_.graph_, random_state=0).fit(X)
    np.testing.assert_array_equal(found.predict(new), ready.predict(new))


@pytest.mark.parametrize("block", [1, 2, 13, 28])
@pytest.mark.parametrize("name", ["all modes", "nndsvd", "GNMF"])
def test_size_of_blocks_changes_nothing(name, block, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", block * 30 * 8)
    X = samples()
    assert_same_fit(MODELS[name], X, as_memmap(X, tmp_path))


@pytest.mark.parametrize("engine", ["numpy", "cpu", pytest.param("torch", marks=needs_torch)])
@pytest.mark.parametrize("name", ["all modes", "KL", "GNCP", "nndsvd"])
def test_chunked_fit_equals_fit_in_memory_on_every_engine(name, engine, tmp_path, never_whole):
    X = samples()
    model = clone(MODELS[name]).set_params(engine=engine, dtype="float64")
    expected, found = assert_same_fit(model, X, as_memmap(X, tmp_path))
    expected = without_extension(expected, X).transform(X)
    np.testing.assert_allclose(found.transform(as_memmap(X, tmp_path)), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("model", [GWNTF(3, **FEW), NCP(3, **FEW)], ids=["transport", "least squares"])
def test_float32_stays_float32_and_counts_become_float64(model, tmp_path):
    X = samples().astype(np.float32)
    model = clone(model).set_params(sample_norm=None, max_iter=3)  # rounding grows with every iteration
    _, found = assert_same_fit(model, X, as_memmap(X, tmp_path), rtol=2e-3)
    assert {factor.dtype for factor in found.factors_} == {np.dtype(np.float32)}
    counts = np.random.default_rng(0).poisson(3.0, SHAPE)
    _, found = assert_same_fit(model, counts, as_memmap(counts, tmp_path))
    assert found.embedding_.dtype == np.float64


@pytest.mark.parametrize(
    "model",
    [
        GWNTF(3, costs=GRID, graph_reg=0, missing="ignore", **FEW),
        GWNTF(3, costs=[np.ones((29, 29)) - np.eye(29), "grid", None], graph_reg=0, missing="ignore", **FEW),
        SWIFT(3, costs=[None] * 3, missing="ignore", **FEW),
        NCP(3, missing="ignore", **FEW),
        NMF(3, missing="ignore", init="nndsvd", sample_norm="l1", **FEW),
    ],
    ids=["transport", "samples too", "KL", "NCP", "NMF"],
)
def test_missing_entries_of_chunked_data_are_ignored_as_in_memory(model, tmp_path, never_whole):
    X = samples()
    X[np.random.default_rng(1).random(SHAPE) < 0.2] = np.nan
    X[7:14] = samples()[7:14]  # a block that misses nothing
    given = as_memmap(X, tmp_path)
    expected, found = assert_same_fit(model, X, given)
    np.testing.assert_allclose(found.fit_impute(given), expected.fit_impute(X), rtol=1e-9, atol=1e-11)
    assert found.score(given) == pytest.approx(expected.score(X), rel=1e-9)


def test_rows_are_folded_and_folded_samples_are_taken_as_rows(tmp_path):
    X = samples()
    rows = X.reshape(len(X), -1)
    given = as_memmap(rows, tmp_path)
    assert_same_fit(GWNTF(3, sample_shape=(6, 5), graph_reg=1.0, **FEW), rows, given)
    assert_same_fit(SDNMF(3, sample_shape=(6, 5), graph=KNNGraph(metric="orientation"), **FEW), rows, given)


def test_near_far_cost_of_chunked_samples_equals_that_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("gwntf.backends.numpy_backend.NumpyBackend.long_fibers", 100)
    monkeypatch.setattr("gwntf.solver.long_costs._FIRST", 20)
    rng = np.random.default_rng(0)
    X = rng.random((6, 30))[rng.integers(0, 6, 240)] + 0.1 * rng.random((240, 30))
    for metric in ("cosine", "euclidean"):
        transport = TransportOptions(kernel_tol=0.2)
        model = GWNTF(3, costs=[metric, "grid"], graph_reg=0, transport=transport, engine="numpy", **FEW)
        expected, found = assert_same_fit(model, X, as_memmap(X, tmp_path))
        assert found.costs_[0].n_clusters == expected.costs_[0].n_clusters
        assert found.costs_[0].error == pytest.approx(expected.costs_[0].error, rel=1e-6)


def test_many_fits_of_chunked_data_equal_single_ones(tmp_path):
    X = samples()
    model = GWNTF(3, graph_reg=1.0, max_iter=4, tol=0)
    for state, found in zip((0, 1), fit_many(model, as_memmap(X, tmp_path), (0, 1)), strict=True):
        expected = clone(model).set_params(random_state=state).fit(X)
        np.testing.assert_allclose(found.embedding_, expected.embedding_, rtol=1e-9)


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "gradient", "orientation", "wasserstein"])
@pytest.mark.parametrize("weight", ["binary", "cosine", "self-tuning"])
def test_graph_of_chunked_samples_equals_that_in_memory(metric, weight, tmp_path, never_whole):
    X = samples()
    X[3] = X[17] = 0
    rule = KNNGraph(4, metric=metric, weight=weight)
    found, expected = rule.build(as_memmap(X, tmp_path)), rule.build(X)
    if metric in ("cosine", "gradient", "orientation"):  # samples of zeros are equally far from all others
        found, expected = (np.delete(np.delete(g.toarray(), [3, 17], 0), [3, 17], 1) for g in (found, expected))
    else:
        found, expected = found.toarray(), expected.toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_search_among_many_samples_is_handed_short_numbers_in_a_file(tmp_path, monkeypatch):
    handed = []

    def search(features, count, metric):
        handed.append((type(features), features.dtype, metric))
        return np.ones((len(features), count)), np.tile(np.arange(count), (len(features), 1))

    monkeypatch.setattr(neighbors, "EXACT_LIMIT", 20)
    monkeypatch.setattr(neighbors, "find_spec", lambda name: name)
    monkeypatch.setattr(features, "find_spec", lambda name: name)
    monkeypatch.setattr(neighbors, "_approximate", search)
    KNNGraph(4).build(as_memmap(samples(), tmp_path))
    assert handed == [(np.memmap, np.float32, "euclidean")]


# --- the blocks -------------------------------------------------------------------------------------------------


def test_quantities_found_by_blocks_equal_those_of_the_whole(tmp_path):
    X = samples()
    tensor = as_data(as_memmap(X, tmp_path))
    rng = np.random.default_rng(0)
    Q, P = rng.random((30, 4)), rng.random((29, 4))
    np.testing.assert_allclose(tensor.times(Q), X.reshape(29, -1) @ Q, rtol=1e-12)
    np.testing.assert_allclose(tensor.transposed_times(P), X.reshape(29, -1).T @ P, rtol=1e-12)
    for mode in range(3):
        rows = unfold(X, mode)
        products, exponents = tensor.slice_products(mode)
        np.testing.assert_allclose(np.ldexp(products, exponents[:, None] + exponents), rows @ rows.T, rtol=1e-12)
    np.testing.assert_array_equal(tensor.host_rows(), X.reshape(29, -1))
    np.testing.assert_array_equal(tensor.blocks.column_block.values, X.reshape(29, -1))
    places = np.array([28, 0, 7, 7, 6])
    np.testing.assert_array_equal(tensor.samples(places), X.reshape(29, -1)[places])
    np.testing.assert_allclose(tensor.sample_sums, X.sum(axis=(1, 2)), rtol=1e-12)
    assert tensor.mass == pytest.approx(X.sum(), rel=1e-12)


def _rank_five(shape):
    rng = np.random.default_rng(0)
    return rng.random((shape[0], 5)) @ rng.random((5, shape[1]))


@pytest.mark.parametrize("shape", [(40, 12), (12, 40), (8, 6)])
def test_leading_pairs_are_those_of_the_full_decomposition(shape, tmp_path):
    matrix = _rank_five(shape)
    tensor = as_data(as_memmap(matrix, tmp_path))
    left, values, right = leading_pairs(tensor, shape, 4, np.random.RandomState(0))
    U, s, V = np.linalg.svd(matrix, full_matrices=False)
    np.testing.assert_allclose(values, s[:4], rtol=1e-9)
    np.testing.assert_allclose((left * values) @ right, (U[:, :4] * s[:4]) @ V[:4], rtol=1e-7, atol=1e-9 * s[0])


def _size(block, extra):
    return type(block), block.shape[0] + extra


def test_blocks_are_measured_in_the_number_type_of_the_fit(tmp_path):
    """Wide numbers are cut as the narrow ones that a fit makes of them; a file by columns is read by samples."""
    wide, narrow = samples(), samples().astype(np.float32)
    cuts = [
        as_data(as_zarr(X, tmp_path / name), dtype=dtype).blocks.slices
        for name, X, dtype in (("a", wide, "float32"), ("b", narrow, None))
    ]
    assert cuts[0] == cuts[1]
    assert len(as_data(as_zarr(narrow, tmp_path / "c"), dtype="float64").blocks.slices) > len(cuts[1])
    turned = np.asfortranarray(wide.reshape(len(wide), -1))
    np.save(tmp_path / "f.npy", turned)
    mapped = np.load(tmp_path / "f.npy", mmap_mode="r")
    assert not mapped.flags.c_contiguous
    assert sources.read(mapped, slice(3, 9)).flags.c_contiguous


def test_numbers_in_another_byte_order_are_taken_as_what_they_are(tmp_path):
    X = samples().astype(np.float32)
    models = [NCP(3, **FEW).fit(as_memmap(X.astype(kind), tmp_path)) for kind in ("<f4", ">f4")]
    assert models[1].embedding_.dtype == np.float32
    np.testing.assert_array_equal(models[0].embedding_, models[1].embedding_)


def test_blocks_are_whole_chunks_and_come_in_order(tmp_path):
    X = samples()
    engine, kind = get_backend("numpy"), np.dtype(np.float64)
    for make, expected in (
        (as_memmap, [7, 7, 7, 7, 1]),
        (as_zarr, [4] * 6 + [5]),
        (as_dask, [5, 3, 21]),
    ):
        blocks = Streamed(make(X, tmp_path), engine, kind, kind)
        assert [part.stop - part.start for part in blocks.slices] == expected
        assert [part.start for part in blocks.slices] == list(np.cumsum([0, *expected[:-1]]))
        extras = list(range(len(expected)))
        found = blocks.map(_size, extras)
        assert found == [(DenseBlock, size + k) for k, size in enumerate(expected)]


@pytest.mark.parametrize("name", ["all modes", "without samples", "KL", "GNMF", "NCP", "SDNMF"])
def test_every_iteration_reads_every_block_once(name, tmp_path, monkeypatch):
    real, readings = sources.read, []
    monkeypatch.setattr(sources, "read", lambda X, rows: readings.append(rows) or real(X, rows))
    given, counts = as_memmap(samples(), tmp_path), []
    rng = np.random.default_rng(0)
    model = clone(MODELS[name])
    shape = (given.shape[0], math.prod(given.shape[1:])) if name in ("GNMF", "SDNMF") else given.shape
    model.set_params(init=[rng.random((size, model.n_components)) + 0.1 for size in shape])  # no fit of KL before
    for iterations in (3, 5):
        readings.clear()
        clone(model).set_params(max_iter=iterations).fit(given)
        counts.append(len(readings))
    assert counts[1] - counts[0] == 2 * 5


@pytest.mark.parametrize("limit", ["BLOCK_BYTES", "MAX_IN_MEMORY_BYTES"])
def test_data_of_one_block_and_small_ones_are_read_and_taken_as_dense(limit, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, limit, 2**20)
    X = samples()
    for kind, make in KINDS.items():
        (tmp_path / kind).mkdir()
        model = GWNTF(3, graph_reg=1.0, **FEW).fit(make(X, tmp_path / kind))
        with warnings.catch_warnings():
            warnings.simplefilter("error", GraphNotExtendedWarning)  # chunked data would warn
            np.testing.assert_array_equal(model.transform(X), clone(model).fit(X).transform(X))


@pytest.mark.parametrize("name", ["all modes", "SDNMF", "GNMF", "KL"])
def test_every_function_of_a_block_can_be_pickled(name, tmp_path, monkeypatch):
    """So that it can be sent to where a block is."""
    sent = set()

    def pickled(method):
        real = getattr(LocalBlocks, method)

        def call(self, function, *arguments, **options):
            sent.add(getattr(function, "func", function))
            function, options = pickle.loads(pickle.dumps((function, options)))  # noqa: S301
            return real(self, function, *arguments, **options)

        monkeypatch.setattr(LocalBlocks, method, call)

    for method in ("map", "run", "apply", "run_columns"):
        pickled(method)
    X = samples()
    expected, found = assert_same_fit(clone(MODELS[name]).set_params(init="nndsvd"), X, as_memmap(X, tmp_path), 1e-6)
    expected = without_extension(expected, X).transform(X)
    np.testing.assert_allclose(found.transform(as_memmap(X, tmp_path)), expected, rtol=1e-6, atol=1e-8)
    assert len(sent) >= 6


def test_an_error_in_a_block_ends_the_reading(tmp_path):
    tensor = as_data(as_memmap(samples(), tmp_path))
    with pytest.raises(ZeroDivisionError):
        tensor.blocks.map(_fails)


def _fails(block):
    return block.shape[0] / 0


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "NaN"), (np.inf, "infinite"), (-1.0, "negative")],
    ids=["NaN", "inf", "negative"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_entries_in_any_block_are_refused_before_the_fit(kind, value, message, tmp_path, monkeypatch):
    monkeypatch.setattr("gwntf.estimators.base.solve_each", None)
    X = samples()
    X[-1, 2, 3] = value
    with pytest.raises(InputError, match=rf"X.*{message}"):
        GWNTF(2, **FEW).fit(KINDS[kind](X, tmp_path))


def test_what_chunked_data_do_not_have_is_refused(tmp_path):
    X = samples()
    X[0, 0, 1] = np.nan
    holed = as_memmap(X, tmp_path)
    (tmp_path / "whole").mkdir()
    whole = as_memmap(samples(), tmp_path / "whole")
    for model, given, message in (
        (GWNTF(2, costs=GRID, missing="ignore"), holed, "graph"),
        (GWNTF(2, costs=["cosine", *GRID[1:]], graph_reg=0, missing="ignore"), holed, r"costs\[0\]"),
        (GWNTF(2, graph=KNNGraph(metric=lambda rows: rows)), whole, "metric"),
    ):
        with pytest.raises(InputError, match=message):
            model.fit(given)
    X[4] = np.nan
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no observed entry in sample 4"):
        NCP(2, missing="ignore").fit(as_memmap(X, tmp_path / "empty"))
    for values, message in ((np.zeros(SHAPE), "only zeros"), (np.ones(SHAPE, complex), "type complex128")):
        (tmp_path / message).mkdir()
        with pytest.raises(InputError, match=message):
            NCP(2).fit(as_memmap(values, tmp_path / message))


def test_chunks_too_long_and_shapes_not_known_are_refused_with_what_to_do(monkeypatch):
    dask = pytest.importorskip("dask.array")
    X = dask.from_array(samples((300, 6, 5)), chunks=(300, 2, 5))
    with pytest.raises(InputError, match="rechunk X along its first axis"):
        NCP(2).fit(X)
    unknown = X[X[:, 0, 0] > 0.1]
    with pytest.raises(InputError, match="compute_chunk_sizes"):
        NCP(2).fit(unknown)


# --- memory -----------------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
import numpy as np
from gwntf import GWNTF, NMF
from gwntf.data import sources

sources.BLOCK_BYTES, sources.MAX_IN_MEMORY_BYTES = 2**20, 0
X = np.memmap(sys.argv[1], dtype=np.float32, mode="r", shape=(16_000, 32, 32))
options = dict(max_iter=2, tol=0, random_state=0, engine="numpy")
models = [NMF(3, init="nndsvd", **options), GWNTF(3, costs=[None] * 3, graph_reg=0, **options)]
for model in models:
    model.fit(np.ones((30, 32, 32), np.float32))

def used():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmData")).split()[1])

limit = used() + 40 * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
for model in models:
    model.fit(X)
    assert model.transform(X[:6000]).shape == (6000, 3)
try:
    np.zeros(X.shape, np.float32) + X
except MemoryError:
    print("bounded")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
def test_fit_of_64_megabytes_has_room_in_40(tmp_path):
    X = np.memmap(tmp_path / "x.bin", dtype=np.float32, mode="w+", shape=(16_000, 32, 32))
    for start in range(0, len(X), 4000):
        X[start : start + 4000] = np.random.default_rng(start).random((4000, 32, 32), dtype=np.float32)
    X.flush()
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "x.bin")], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout.strip()) == (0, "bounded"), run.stderr


def test_marks_of_a_fit_do_not_depend_on_blocks_of_which_one_has_missing_entries(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MAX_IN_MEMORY_BYTES", 0)
    X = np.random.default_rng(0).random((29, 6, 5))
    X[0, 2, 3] = np.nan
    wanted = as_data(X, missing="ignore").checksums()
    np.save(tmp_path / "X.npy", X)
    for samples in (7, 10):
        monkeypatch.setattr(sources, "BLOCK_BYTES", samples * 6 * 5 * 8)
        data = as_data(np.load(tmp_path / "X.npy", mmap_mode="r"), missing="ignore")
        assert len(data.blocks.slices) > 2
        np.testing.assert_array_equal(data.checksums(), wanted)
