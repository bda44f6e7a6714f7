"""Bad input gets a clear error that names the argument, before any work starts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

import gwntf.estimators.base as base
import gwntf.estimators.parts as parts
from gwntf import GWNTF, InputError, SeparableCost, objective
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
    (changed(-1.0), r"X: got 1 negative entries \(smallest -1\); expected nonnegative"),
    (changed(np.nan), "X: got 1 NaN entries; expected finite nonnegative numbers, or missing='ignore'"),
    (changed(np.inf), "X: got infinite entries; expected finite"),
    (np.ones((0, 4, 3)), "0 sample"),
    (np.ones((6, 0)), "0 feature"),
    (np.ones((6, 4, 0)), "X: got the empty shape"),
    (np.ones(6), "Expected 2D array"),
    (np.full((3, 2), "a"), "could not convert string"),
    (np.ones((3, 2), complex), "Complex data"),
    (csr_array(-np.ones((3, 2))), r"X: got 6 negative entries \(smallest -1\)"),
]


@pytest.mark.parametrize(("X", "message"), DATA)
def test_bad_data(X, message, monkeypatch):
    monkeypatch.setattr(base, "solve_each", _must_not_start)
    with pytest.raises((ValueError, TypeError), match=message):
        GWNTF(2).fit(X)


PARAMETERS = [
    ({"n_components": 0}, "'n_components'.*Got 0"),
    ({"n_components": 2.5}, "'n_components'.*Got 2.5"),
    ({"reg": 0}, "'reg'.*Got 0"),
    ({"reg": -1}, "'reg'.*Got -1"),
    ({"reg": np.inf}, "'reg'.*Got inf"),
    ({"reg_m_data": 0}, "'reg_m_data'.*Got 0"),
    ({"reg_m_model": -2.0}, "'reg_m_model'.*Got -2"),
    ({"reg_m_model": np.inf}, "'reg_m_model'.*Got inf"),
    ({"graph_reg": -1}, "'graph_reg'.*Got -1"),
    ({"graph_reg": np.inf}, "'graph_reg'.*Got inf"),
    ({"graph_reg": np.nan}, "'graph_reg'.*Got nan"),
    ({"n_neighbors": 0}, "'n_neighbors'.*Got 0"),
    ({"graph_weight": "heat"}, "'graph_weight'.*Got 'heat'"),
    ({"graph_metric": "manhattan"}, "'graph_metric'.*Got 'manhattan'"),
    ({"sample_norm": "max"}, "'sample_norm'.*Got 'max'"),
    ({"missing": "drop"}, "'missing'.*Got 'drop'"),
    ({"init": "svd"}, "'init'.*Got 'svd'"),
    ({"init": [np.ones((6, 2))]}, "init: got 1; expected a sequence of 3 factors"),
    ({"n_init": 0}, "'n_init'.*Got 0"),
    ({"update": "hals"}, "'update'.*Got 'hals'"),
    ({"inner_iter": 0}, "'inner_iter'.*Got 0"),
    ({"max_iter": 0}, "'max_iter'.*Got 0"),
    ({"tol": -1}, "'tol'.*Got -1"),
    ({"transport_max_iter": 0}, "'transport_max_iter'.*Got 0"),
    ({"transport_tol": -1}, "'transport_tol'.*Got -1"),
    ({"assign_labels": "ward"}, "'assign_labels'.*Got 'ward'"),
    ({"engine": "fortran"}, "'engine'.*Got 'fortran'"),
    ({"device": 3}, "'device'.*Got 3"),
    ({"precision": "medium"}, "'precision'.*Got 'medium'"),
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
    ({"graph": "knn"}, "graph: got entries of type"),
    ({"sample_shape": (2, 2)}, r"sample_shape: got \(2, 2\) for X of 3 dimensions"),
    ({"graph": [[1, 2], [3]]}, "graph: got list that is no array"),
    ({"graph": 1j * np.ones((6, 6))}, "graph: got entries of type complex"),
    ({"graph": np.ones(6)}, "graph: got type float64 with 1 dimension"),
    ({"costs": (None, [[1, 2], [3]], None)}, r"costs\[1\]: got list that is no array"),
    ({"init": [np.ones((6, 2)), "factor", np.ones((3, 2))]}, r"init\[1\]: got entries of type"),
    ({"callbacks": print}, "'callbacks'"),
    ({"callbacks": [1]}, r"callbacks\[0\]: got int"),
    ({"progress": "yes"}, "'progress'"),
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
        GWNTF(2, n_clusters=9).fit_predict(GOOD)
    with pytest.raises(InputError, match="n_clusters: got 5; expected at most n_components=2"):
        GWNTF(2, n_clusters=5, assign_labels="discretize").fit_predict(GOOD)


def test_new_samples_of_another_shape():
    model = GWNTF(2, max_iter=2, tol=0).fit(GOOD)
    with pytest.raises(InputError, match=r"X: got samples of shape \(4, 5\); expected shape \(4, 3\)"):
        model.transform(np.ones((2, 4, 5)))
    with pytest.raises(ValueError, match="features"):
        model.transform(np.ones((2, 3, 3)))
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
    with pytest.raises(InputError, match="a sample whose norm 6e\\+38 is out of range"):
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

    with pytest.raises(InputError, match="reg_m_model: got inf"):
        transport_loss((None, np.zeros((4, 4)), None), Relaxation(0.1, 1.0, np.inf), TransportLimits(5, 0.0))


def test_unknown_backend_and_plain_data_checks():
    with pytest.raises(InputError, match="engine: got 'abacus'; expected one of 'auto', 'numpy'"):
        get_backend("abacus")
    for X, message in [
        (np.ones(3), "X: got 1 dimension"),
        (np.ones((2, 2), object), "X: got entries of type object"),
        (changed(np.inf), "X: got infinite"),
        (changed(-2.0), r"X: got 1 negative entries \(smallest -2\)"),
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
