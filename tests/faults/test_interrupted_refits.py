"""A fit that is interrupted or refused changes nothing: fitted attributes are set together, when a fit has ended."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from gwntf import GNMF, GWNTF, NMF, SDNMF, SWIFT, InputError, KNNGraph, MiniBatchGWNTF, TensorClustering, fit_many

rng = np.random.default_rng(0)
OLD, OTHER = rng.random((20, 5, 4)) + 0.1, rng.random((24, 6, 3)) ** 4 + 0.1
FEW = {"tol": 0, "random_state": 0}

MODELS = {
    "costs and graph": GWNTF(3, costs=(None, "cosine", "cosine"), graph_reg=1, max_iter=6, **FEW),
    "start from the graph": GNMF(3, graph=KNNGraph(metric="auto"), init="graph", max_iter=6, **FEW),
    "pixels": SDNMF(3, max_iter=6, **FEW),
    "counts": SWIFT(3, n_init=2, max_iter=4, **FEW),
    "rows": NMF(3, max_iter=6, **FEW),
    "batches": MiniBatchGWNTF(3, costs=(None, "cosine", "cosine"), batch_size=8, max_epochs=2, **FEW),
}


def fresh(name, **params):
    model = MODELS[name]
    return type(model)(**{**model.get_params(deep=False), **params})


class Strike:
    """A callback that raises in its third call, and notes what the estimator shows before."""

    def __init__(self, error):
        self.error, self.calls, self.model, self.seen = error, 0, None, []

    def __call__(self, news):
        self.calls += 1
        self.seen.append(set(vars(self.model)))
        if self.calls == 3:
            raise self.error("no further")


def nan(X):
    spoilt = X.copy()
    spoilt[-1, -1, -1] = np.nan
    return spoilt


def answers(model):
    """All that a model says of new samples, and all its fitted arrays."""
    found = [model.transform(OLD[:7]), model.reconstruct(OLD[:7]), model.embedding_, model.components_]
    return [np.array(array) for array in [*found, model.objective_curve_]]


def same(before, after):
    return len(before) == len(after) and all(map(np.array_equal, before, after))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_refit_leaves_the_old_model_as_it_was(name, error):
    model = fresh(name).fit(OLD)
    before, names = answers(model), set(vars(model))
    strike = Strike(error)
    strike.model = model.set_params(callbacks=[strike])
    for X in (OTHER, OTHER[:, :5], OLD[::-1]):  # other shapes, other costs, other factors
        strike.calls = 0
        with pytest.raises(error):
            model.fit(X)
        assert set(vars(model)) == names
        assert same(before, answers(model))
    assert all(seen == names for seen in strike.seen)
    again = model.set_params(callbacks=None).fit(OTHER)
    assert np.array_equal(again.transform(OTHER), fresh(name).fit(OTHER).transform(OTHER))


REFUSED = {
    "NaN in X": ({}, nan(OTHER)),
    "only zeros": ({}, np.zeros((9, 5, 4))),
    "a parameter": ({"n_components": 0}, OTHER),
    "another start": ({"init": [np.ones((2, 2))] * 3}, OTHER),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("name", MODELS)
def test_a_refused_refit_leaves_the_old_model_as_it_was(name, case):
    model = fresh(name).fit(OLD)
    before, names, params = answers(model), set(vars(model)), model.get_params()
    changed, X = REFUSED[case]
    with pytest.raises(ValueError):
        model.set_params(**changed).fit(X)
    model.set_params(**{key: params[key] for key in changed})
    assert set(vars(model)) == names
    assert same(before, answers(model))


@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_or_refused_first_fit_is_no_fit(name):
    model = fresh(name)
    strike = Strike(KeyboardInterrupt)
    strike.model = model.set_params(callbacks=[strike])
    with pytest.raises(KeyboardInterrupt):
        model.fit(OLD)
    with pytest.raises(ValueError):
        model.fit(nan(OLD))
    assert set(vars(model)) == set(vars(fresh(name)))
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(NotFittedError):
        model.transform(OLD)


def test_a_fit_ended_by_a_warning_that_is_an_error_leaves_the_old_model():
    model = GWNTF(3, graph_reg=1, max_iter=3, **FEW).fit(OLD)
    before = answers(model)
    model.set_params(tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning):
            model.fit(OTHER)
    assert same(before, answers(model.set_params(tol=0)))


def test_a_refit_keeps_nothing_of_the_fit_before():
    for model in (GNMF(3, max_iter=3, **FEW), TensorClustering(3, max_iter=3, random_state=0)):
        model.set_params(graph=KNNGraph(metric="auto")).fit(OLD)
        assert {"modularity_", "graph_metric_"} <= set(vars(model))
        model.note = "of the user"
        model.set_params(graph__metric="cosine").fit(OLD)
        assert not {"modularity_", "graph_metric_"} & set(vars(model))
        assert model.note == "of the user"


@pytest.mark.parametrize("name", ["costs and graph", "batches"])
def test_interrupted_fits_of_many_change_nothing_in_the_estimator(name):
    model = fresh(name).fit(OLD)
    before = answers(model)
    strike = Strike(KeyboardInterrupt)
    strike.model = model.set_params(callbacks=[strike])
    with pytest.raises(KeyboardInterrupt):
        fit_many(model, OTHER, range(2))
    with pytest.raises(InputError):
        fit_many(model, nan(OTHER), range(2))
    assert same(before, answers(model))


@pytest.mark.parametrize("fault", ["NaN", "another shape", "interruption"])
def test_a_failed_batch_is_as_if_it_had_never_come(fault, monkeypatch):
    taught, other = (fresh("batches").partial_fit(OLD[:10]) for _ in range(2))
    before, names = answers(taught), set(vars(taught))

    def strike(*_):
        raise KeyboardInterrupt

    batch = {"NaN": nan(OLD[10:]), "another shape": OTHER, "interruption": OLD[10:]}[fault]
    with monkeypatch.context() as patched:
        if fault == "interruption":
            patched.setattr(MiniBatchGWNTF, "_set_factors", strike)  # after the batch has been learnt from
        with pytest.raises((ValueError, KeyboardInterrupt)):
            taught.partial_fit(batch)
    assert set(vars(taught)) == names
    assert same(before, answers(taught))
    assert taught.n_batches_ == 1
    assert same(answers(taught.partial_fit(OLD[10:])), answers(other.partial_fit(OLD[10:])))


def test_a_first_batch_that_is_refused_leaves_no_model():
    model = fresh("batches")
    for X in (nan(OLD), np.zeros((5, 5, 4))):
        with pytest.raises(InputError):
            model.partial_fit(X)
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
    assert model.partial_fit(OLD).n_batches_ == 1
