"""Many fits of one estimator as one call."""

from __future__ import annotations

import numpy as np
import pytest

from gwntf import GNCP, GWNTF, InputError, ProgressBar, TensorClustering, TransportOptions, fit_many
from gwntf.datasets import load_digits_tensor
from tests.backends import OTHERS

MODELS = {
    "clusters": TensorClustering(4, max_iter=3).factorization(),
    "random": GWNTF(4, graph_reg=2.0, max_iter=3, tol=0),
    "two starts": GNCP(3, n_init=2, max_iter=3, tol=0),
}


@pytest.fixture(scope="module")
def digits():
    return load_digits_tensor()[0][:50]


@pytest.mark.parametrize("engine", ["numpy", *OTHERS])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_many_fits_are_what_single_fits_are(model, engine, digits):
    X = digits
    if model.get_params()["graph__metric"] == "auto":
        model = model.set_params(graph__metric="orientation")  # otherwise the first random state chooses
    model = model.set_params(engine=engine)
    for seed, found in zip((3, 5, 8), fit_many(model, X, (3, 5, 8)), strict=True):
        single = model.set_params(random_state=seed).fit(X)
        assert found.random_state == seed
        np.testing.assert_array_equal(found.objective_curve_, single.objective_curve_)
        for a, b in zip(found.factors_, single.factors_, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("costs", [(None, "grid", "grid"), ("euclidean", "grid", "grid"), (None, None, None)])
def test_many_fits_share_the_steps_that_the_first_one_recorded(costs, digits, monkeypatch):
    backend = pytest.importorskip("gwntf.backends.torch.backend").TorchBackend
    recorded = []
    monkeypatch.setattr(backend, "recorded", lambda _, step, *__: recorded.append(step) or step)
    model = GWNTF(3, costs=costs, graph_reg=2.0, max_iter=3, tol=0, engine="torch", transport=TransportOptions(4))
    found = fit_many(model, digits, range(3))
    assert len(recorded) == (1 if costs[1] is None else 2)  # with the fit of KL that improves the starts
    for seed, fitted in enumerate(found):
        alone = model.set_params(random_state=seed).fit(digits)
        np.testing.assert_array_equal(fitted.embedding_, alone.embedding_)


def test_models_share_nothing_that_a_fit_changes(digits):
    X = digits
    first, second = fit_many(GWNTF(3, max_iter=2, tol=0, graph_reg=1.0), X, [0, 1])
    kept = second.embedding_.copy()
    first.fit(X[::-1])
    np.testing.assert_array_equal(second.embedding_, kept)
    alone = GWNTF(3, max_iter=2, tol=0, graph_reg=1.0, random_state=1).fit(X)
    np.testing.assert_array_equal(second.transform(X[:5]), alone.transform(X[:5]))


def test_callbacks_and_progress_see_all_fits(digits, capsys):
    X = digits
    seen = []
    model = GNCP(2, max_iter=3, tol=0, callbacks=[lambda news: seen.append(news.iteration), ProgressBar()])
    fit_many(model, X, range(3))
    assert seen == [1, 2, 3] * 3
    assert "9/9" in capsys.readouterr().err


def test_bad_requests_are_named(digits):
    X = digits
    with pytest.raises(InputError, match="estimator"):
        fit_many(object(), X, [0])
    with pytest.raises(InputError, match="random_states"):
        fit_many(GNCP(2), X, [])
    with pytest.raises(InputError, match="only zeros"):
        fit_many(GNCP(2), np.zeros((5, 3, 2)), [0])
