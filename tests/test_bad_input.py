"""Bad input gets a clear error that names the argument, before any work starts."""

from __future__ import annotations

import pickle
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import gwntf.estimators.base as base
import gwntf.estimators.parts as parts
from gwntf import (
    GWNTF,
    NCP,
    NMF,
    FileWriteError,
    InputError,
    KNNGraph,
    MiniBatchGWNTF,
    SeparableCost,
    TensorClustering,
    TransportOptions,
    objective,
)
from gwntf.backends import get_backend
from gwntf.data import as_data
from gwntf.losses import transport_loss
from gwntf.transport import TransportLimits

GOOD = np.random.default_rng(0).random((6, 4, 3))


def changed(value):
    X = GOOD.copy()
    X[1, 2, 0] = value
    return X


DATA = [
    (changed(-1.0), r"X: got 1 negative entry \(smallest -1\); expected nonnegative"),
    (
        GOOD - 0.5,
        rf"X: got {(GOOD < 0.5).sum()} negative entries \(smallest {GOOD.min() - 0.5:g}\).*np.maximum\(X, 0\)",
    ),
    (changed(np.nan), "X: got 1 NaN entry; expected finite nonnegative numbers, or missing='ignore'"),
    (csr_array(changed(np.nan).reshape(6, 12)), "X: got 1 NaN entry; .* or a dense array with missing='ignore'"),
    (changed(np.inf), "X: got infinite entries; expected finite"),
    (np.ones((0, 4, 3)), "0 sample"),
    (np.ones((6, 0)), "0 feature"),
    (np.ones((6, 4, 0)), "X: got the empty shape"),
    (np.ones(6), "Expected 2D array"),
    (np.zeros((5, 0, 3)), r"X: got the empty shape \(5, 0, 3\)"),
    (np.full((3, 2), "a"), "X: got entries of type <U1; .* Convert text and dates to numbers first"),
    ([["1", "2"], ["3", "4"]], "X: got entries of type <U1"),
    (np.full((3, 2), b"1"), r"X: got entries of type \|S1"),
    (np.full((3, 2), "1", object), "X: got entries that are not numbers, such as '1'"),
    (np.ones((3, 2), "datetime64[s]"), r"X: got entries of type datetime64\[s\]"),
    (np.ones((3, 2), "timedelta64[s]"), r"X: got entries of type timedelta64\[s\]"),
    ([[date(2026, 1, 1), 1.0]] * 3, r"X: got entries that are not numbers, such as datetime.date\(2026, 1, 1\)"),
    ([[timedelta(1)]] * 3, r"X: got entries that are not numbers, such as datetime.timedelta\(days=1\)"),
    (pd.DataFrame({"id": ["a", "b"], "x": [1.0, 2.0]}), "X: got entries that are not numbers, such as 'a'"),
    (
        pd.DataFrame({"when": pd.to_datetime(["2026-01-01"] * 2), "x": [1.0, 2.0]}),
        "that are not numbers, such as Timest",
    ),
    ([[1.0, 2.0], [3.0]], "X: got a list that cannot be converted to an array"),
    (np.ones((3, 2), complex), "Complex data"),
    (csr_array(-np.ones((3, 2))), r"X: got 6 negative entries \(smallest -1\)"),
]


@pytest.mark.parametrize(("X", "message"), DATA)
def test_bad_data(X, message, monkeypatch):
    monkeypatch.setattr(base, "solve_each", _must_not_start)
    with pytest.raises((ValueError, TypeError), match=message):
        GWNTF(2).fit(X)


@pytest.mark.parametrize("kind", ["memmap", "dask"])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (changed(np.nan), "X: got 1 NaN entry; .* missing='ignore'"),
        (GOOD - 0.5, rf"X: got {(GOOD < 0.5).sum()} negative entries \(smallest"),
        (np.full((3, 2), "1"), "X: got entries of type <U1; .* Convert text"),
        (np.ones((3, 2), "datetime64[s]"), r"X: got entries of type datetime64\[s\]"),
    ],
)
def test_bad_data_in_chunks(X, message, kind, tmp_path):
    with pytest.raises(InputError, match=message):
        NCP(2).fit(as_kind(X, kind, tmp_path))


def as_kind(X, kind, folder):
    """The same entries in another kind of array."""
    if kind == "memmap":
        file = np.memmap(folder / f"x{X.dtype.str[0]}.bin", dtype=X.dtype, mode="w+", shape=X.shape)
        file[:] = X
        return file
    if kind == "dask":
        return pytest.importorskip("dask.array").from_array(X, chunks=(3, *X.shape[1:]))
    if kind == "COO":
        return pytest.importorskip("sparse").COO(X)
    return np.ma.masked_less(X, 0) if kind == "masked" else X


def test_objects_that_are_numbers_are_numbers():
    rows = GOOD.reshape(6, 12)
    expected = NMF(2, max_iter=3, tol=0, random_state=0).fit_transform(rows)
    for given in (rows.astype(object), rows.tolist(), pd.DataFrame(rows, dtype=object)):
        np.testing.assert_array_equal(NMF(2, max_iter=3, tol=0, random_state=0).fit_transform(given), expected)


@pytest.mark.parametrize("kind", ["dense", "masked", "memmap", "dask", "COO"])
def test_the_byte_order_changes_nothing(kind, tmp_path, monkeypatch):
    native, swapped = (as_kind(GOOD.astype(f"{order}f4"), kind, tmp_path) for order in "<>")
    model = NCP(2, max_iter=3, tol=0, random_state=0)
    for limit in (2**26, 0):  # in memory, then in blocks
        monkeypatch.setattr("gwntf.data.sources.MAX_IN_MEMORY_BYTES", limit)
        monkeypatch.setattr("gwntf.data.sources.BLOCK_BYTES", 4 * 12 * 3)
        expected, found = model.fit_transform(native), model.fit_transform(swapped)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize("engine", ["auto", "cpu", "torch"])
def test_sparse_tensors_are_refused_by_name(layout, engine):
    torch = pytest.importorskip("torch")
    rows = torch.as_tensor(GOOD.reshape(6, 12))
    model = NMF(2, max_iter=2, tol=0, engine=engine).fit(rows)
    sparse = getattr(rows, layout)()
    for call in (model.fit, model.transform):
        with pytest.raises(InputError, match=r"X: got a tensor of layout torch\.sparse.*X\.to_dense\(\)"):
            call(sparse)
    with pytest.raises(InputError, match=r"Z: got a tensor of layout torch\.sparse"):
        model.inverse_transform(sparse)


@pytest.mark.parametrize("method", ["fit", "fit_transform", "fit_impute", "partial_fit", "score"])
def test_weights_of_samples_are_refused_by_the_class_that_was_called(method):
    model = MiniBatchGWNTF(2, max_epochs=1, tol=0) if method == "partial_fit" else NCP(2, max_iter=2, tol=0)
    if method == "score":
        model.fit(GOOD)
    message = f"sample_weight: got weights, which {type(model).__name__} does not support; .*repeat"
    with pytest.raises(InputError, match=message):
        getattr(model, method)(GOOD, sample_weight=np.ones(6))


def test_a_folder_is_no_place_for_a_model(tmp_path, monkeypatch):
    model = NMF(2, max_iter=2, tol=0).fit(GOOD)
    clusterer = TensorClustering(2, max_iter=2).fit(GOOD)
    monkeypatch.setattr(TensorClustering, "_training_rows", _must_not_start)
    for fitted in (model, clusterer):
        for path in (tmp_path, f"{tmp_path}/new/", "."):
            with pytest.raises(FileWriteError, match="is a folder: add a file name"):
                fitted.save(path)
        with pytest.raises(FileWriteError, match=r"was not written: the folder .* does not exist"):
            fitted.save(tmp_path / "nowhere" / "model.gwntf")
    assert list(tmp_path.iterdir()) == []


PARAMETERS = [
    ({"n_components": 0}, "'n_components'.*Got 0"),
    ({"n_components": 2.5}, "'n_components'.*Got 2.5"),
    ({"n_components": True}, "n_components: got True; expected a number"),
    ({"max_iter": True}, "max_iter: got True; expected a number"),
    ({"reg": True}, "reg: got True; expected a number"),
    ({"random_state": False}, "random_state: got False; expected a number"),
    ({"reg": 0}, "'reg'.*Got 0"),
    ({"reg": -1}, "'reg'.*Got -1"),
    ({"reg": np.inf}, "'reg'.*Got inf"),
    ({"reg_m": 0}, "'reg_m'.*Got 0"),
    ({"reg_m": -2.0}, "'reg_m'.*Got -2"),
    ({"reg_m": np.inf}, "reg_m: got inf; expected a finite weight for the model"),
    ({"reg_m": (1.0, np.inf)}, r"reg_m: got \(1.0, inf\)"),
    ({"reg_m": (0, 1.0)}, r"reg_m: got \(0, 1.0\)"),
    ({"reg_m": [1.0, -2.0]}, r"reg_m: got \[1.0, -2.0\]"),
    ({"reg_m": (1.0, 2.0, 3.0)}, r"reg_m: got \(1.0, 2.0, 3.0\); .* a pair of them for data and model"),
    ({"reg_m": ("a", 1.0)}, r"reg_m: got \('a', 1.0\)"),
    ({"reg_m": True}, "reg_m: got True; expected a number"),
    ({"alpha": -1.0}, "'alpha'.*Got -1"),
    ({"l1_ratio": 1.5}, "'l1_ratio'.*Got 1.5"),
    ({"graph_reg": -1}, "'graph_reg'.*Got -1"),
    ({"graph_reg": np.inf}, "'graph_reg'.*Got inf"),
    ({"graph_reg": np.nan}, "'graph_reg'.*Got nan"),
    ({"graph": KNNGraph(0)}, "n_neighbors: got 0; expected a whole number of at least 1"),
    ({"graph": KNNGraph(True)}, "n_neighbors: got True; expected a whole number"),
    ({"graph": KNNGraph(weight="heat")}, "weight: got 'heat'; expected one of 'binary'"),
    ({"graph": KNNGraph(metric="manhattan")}, "metric: got 'manhattan'; expected one of 'cosine'"),
    ({"graph": "auto"}, "'graph'.*Got 'auto'"),
    ({"sample_norm": "max"}, "'sample_norm'.*Got 'max'"),
    ({"missing": "drop"}, "'missing'.*Got 'drop'"),
    ({"init": "svd"}, "'init'.*Got 'svd'"),
    ({"init": [np.ones((6, 2))]}, "init: got 1 factors; expected a sequence of 3 factors"),
    ({"n_init": 0}, "'n_init'.*Got 0"),
    ({"max_iter": 0}, "'max_iter'.*Got 0"),
    ({"tol": -1}, "'tol'.*Got -1"),
    ({"transport": TransportOptions(0)}, "transport.max_iter: got 0; expected a whole number .* or 'auto'"),
    ({"transport": TransportOptions(tol=-1)}, "transport.tol: got -1; expected a number of at least 0"),
    ({"transport": TransportOptions(kernel_tol=1.0)}, "transport.kernel_tol: got 1.0; .* below 1"),
    ({"transport": {"max_iter": 5}}, "'transport'"),
    ({"engine": "fortran"}, "'engine'.*Got 'fortran'"),
    ({"device": 3}, "'device'.*Got 3"),
    ({"dtype": "float16"}, "'dtype'.*Got 'float16'"),
    ({"costs": "grid"}, "'costs'.*Got 'grid'"),
    ({"costs": ("grid", "grid")}, "costs: got 2 entries; expected 'auto' or a sequence of 3"),
    ({"costs": (None, "grit", None)}, r"costs\[1\]: got 'grit'"),
    ({"costs": (None, np.ones((3, 3)), None)}, r"costs\[1\]: got shape \(3, 3\); expected shape \(4, 4\)"),
    ({"costs": (None, -np.ones((4, 4)), None)}, r"costs\[1\]: got negative"),
    ({"costs": (None, np.full((4, 4), np.nan), None)}, r"costs\[1\]: got negative or non-finite"),
    ({"costs": (None, np.ones((4, 3)), None)}, r"costs\[1\]: got shape \(4, 3\); expected a square"),
    ({"costs": (None, csr_array(np.ones((4, 4))), None)}, r"costs\[1\]: got entries of type object"),
    ({"costs": (None, SeparableCost.on_grid((3, 2)), None)}, r"costs\[1\]: got a SeparableCost over 6"),
    ({"graph": np.ones((5, 5))}, r"graph: got shape \(5, 5\)"),
    ({"graph": np.triu(np.ones((6, 6)))}, "graph: got an asymmetric matrix"),
    ({"graph": -np.ones((6, 6))}, "graph: got negative"),
    ({"graph": np.full((6, 6), "a")}, "graph: got entries of type"),
    ({"sample_shape": (2, 2)}, r"sample_shape: got \(2, 2\) for X of 3 dimensions"),
    ({"graph": [[1, 2], [3]]}, "graph: got a list that cannot be converted to an array"),
    ({"graph": 1j * np.ones((6, 6))}, "graph: got entries of type complex"),
    ({"graph": np.ones(6)}, "graph: got type float64 with 1 dimension"),
    ({"costs": (None, [[1, 2], [3]], None)}, r"costs\[1\]: got a list that cannot be converted to an array"),
    ({"init": [np.ones((6, 2)), "factor", np.ones((3, 2))]}, r"init\[1\]: got entries of type"),
    ({"callbacks": print}, "'callbacks'"),
    ({"callbacks": [1]}, r"callbacks\[0\]: got int"),
    ({"random_state": "seed"}, "'random_state'"),
]


@pytest.mark.parametrize(("params", "message"), PARAMETERS, ids=[str(next(iter(p))) for p, _ in PARAMETERS])
def test_bad_parameters(params, message, monkeypatch):
    monkeypatch.setattr(base, "solve_each", _must_not_start)
    monkeypatch.setattr(parts, "neighbor_graph", _must_not_start)
    with pytest.raises(ValueError, match=message):
        GWNTF(**{"n_components": 2, **params}).fit(GOOD)


@pytest.mark.parametrize("shape", [(3, 5), (-2, -6), (0, 12), (13,), (12.0,), ("12",)])
def test_sample_shape_that_does_not_divide(shape):
    with pytest.raises(InputError, match=r"sample_shape: got .* expected positive sizes whose product"):
        GWNTF(2, sample_shape=shape).fit(GOOD.reshape(6, 12))


def test_clusters_that_cannot_be_told_apart(monkeypatch):
    monkeypatch.setattr(base, "solve_each", _must_not_start)
    with pytest.raises(InputError, match="n_clusters: got 9; expected at most the number of samples, 6"):
        TensorClustering(9).fit_predict(GOOD)
    with pytest.raises(InputError, match="n_clusters: got 5; expected at most n_components=2"):
        TensorClustering(5, n_components=2).fit_predict(GOOD)


def test_new_samples_of_another_shape():
    model = GWNTF(2, max_iter=2, tol=0).fit(GOOD)
    expected = r"expected samples of shape \(4, 3\), as in `fit`"
    for X, message in [
        (np.ones((2, 4, 5)), rf"X: got samples of shape \(4, 5\); {expected}\."),
        (np.ones((2, 3, 4)), rf"X: got samples of shape \(3, 4\); {expected}\."),
        (GOOD.reshape(6, 12), rf"X: got samples of shape \(12,\); {expected}: X.reshape\(-1, 4, 3\)\."),
        (csr_array(GOOD.reshape(6, 12)), rf"X: got samples of shape \(12,\); {expected}"),
        (GOOD[0], rf"X: got samples of shape \(3,\); {expected}: one sample is X\[None\]\."),
    ]:
        with pytest.raises(InputError, match=message):
            model.transform(X)
    rows = NCP(2, max_iter=2, tol=0).fit(GOOD.reshape(6, 12))
    with pytest.raises(InputError, match=r"expected samples of shape \(12,\), as in `fit`: X.reshape\(-1, 12\)\."):
        rows.transform(GOOD)
    with pytest.raises(ValueError, match="X has 4 features, but NCP is expecting 12"):
        rows.transform(GOOD[:, :, 0])
    for Z, message in [
        (np.ones((2, 3)), r"Z: got shape \(2, 3\)"),
        ([["a", "b"]], "Z: got entries of type"),
        ([[np.nan, 1.0]], "Z: got entries that are not finite"),
    ]:
        with pytest.raises(InputError, match=message):
            model.inverse_transform(Z)


def test_a_start_whose_objective_is_infinite():
    factors = [np.ones((6, 1)), np.eye(4)[:, :1], np.ones((3, 1))]
    with pytest.raises(InputError, match="init: got a start at which the objective is inf"):
        GWNTF(1, init=factors, costs=(None, None, None), graph_reg=0).fit(GOOD)


def test_norms_beyond_the_number_type():
    with pytest.raises(InputError, match=r"a sample whose entries may sum to 1.2e\+39"):
        GWNTF(1).fit(np.full((5, 4), 3e38, np.float32))


def test_objective_arguments():
    with pytest.raises(InputError, match=r"factors\[0\]: got shape"):
        objective(GOOD, [[1, 1], [1, 1], [1, 1]])
    factors = [np.ones((size, 2)) for size in GOOD.shape]
    with pytest.raises(InputError, match="graph_reg: got -5"):
        objective(GOOD, factors, graph=np.ones((6, 6)), graph_reg=-5)


def test_sample_of_which_nothing_was_observed():
    X = GOOD.copy()
    X[4] = np.nan
    with pytest.raises(InputError, match="no observed entry in sample 4"):
        GWNTF(2, missing="ignore").fit(X)


def test_frozen_model_marginal_is_refused_by_the_problem():
    from gwntf.core import Relaxation

    with pytest.raises(InputError, match="reg_m: got inf for the model"):
        transport_loss((None, np.zeros((4, 4)), None), Relaxation(0.1, 1.0, np.inf), TransportLimits(5, 0.0))


def test_unknown_backend_and_plain_data_checks():
    with pytest.raises(InputError, match="engine: got 'abacus'; expected one of 'auto', 'numpy'"):
        get_backend("abacus")
    for X, message in [
        (np.ones(3), "X: got 1 dimension"),
        (np.ones((2, 2), object), "X: got entries of type object"),
        (changed(np.inf), "X: got infinite"),
        (changed(-2.0), r"X: got 1 negative entry \(smallest -2\)"),
        (changed(np.nan), "X: got 1 NaN"),
    ]:
        with pytest.raises(InputError, match=message):
            as_data(X)


def test_errors_survive_a_process_boundary():
    error = pickle.loads(pickle.dumps(InputError("reg", "-1", "a positive number")))  # noqa: S301
    assert str(error) == "reg: got -1; expected a positive number."
    assert isinstance(error, ValueError)


def _must_not_start(*args, **kwargs):
    pytest.fail("work started before the input was checked")
