"""GWNTF as a scikit-learn estimator."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gwntf import (
    GNCP,
    GNMF,
    GWNTF,
    NCP,
    NMF,
    SDNMF,
    SWIFT,
    KNNGraph,
    MiniBatchGWNTF,
    ProgressBar,
    Status,
    TransportOptions,
)
from gwntf.data import khatri_rao, reconstruct
from gwntf.datasets import load_digits_tensor
from tests.schemes import literal_new_samples

DIFFERS = "fit_transform returns the embedding of the fit, graph included; transform treats X as new samples"
EXPECTED_FAILURES = {
    "check_transformer_general": DIFFERS,
    "check_transformer_data_not_an_array": DIFFERS,
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::gwntf.core.EmptyComponentWarning")  # ten components of three features
@parametrize_with_checks(
    [
        GWNTF(),
        GWNTF(3, missing="ignore", init="nndsvd", costs=(None, None)),
        NMF(),
        GNMF(),
        SDNMF(),
        NCP(),
        GNCP(),
        SWIFT(),
        MiniBatchGWNTF(3, max_epochs=2),
    ],
    expected_failed_checks=lambda estimator: {} if isinstance(estimator, MiniBatchGWNTF) else EXPECTED_FAILURES,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    bunch = load_digits()
    return bunch.images[:300], bunch.target[:300]


def small(method=GWNTF, **params):
    defaults = {"n_components": 8, "max_iter": 15, "tol": 0, "graph_reg": 10.0, "random_state": 0}
    return method(**{**defaults, **params})


@pytest.fixture(scope="module")
def fitted(digits):
    return small(costs=("cosine", "grid", "grid")).fit(digits[0])


def test_fitted_attributes_fit_together(fitted, digits):
    X = digits[0]
    assert [factor.shape for factor in fitted.factors_] == [(300, 8), (8, 8), (8, 8)]
    scale = np.linalg.norm(X, axis=(1, 2))
    np.testing.assert_allclose(fitted.sample_scale_, scale)
    np.testing.assert_allclose(fitted.embedding_, fitted.factors_[0] * scale[:, None])
    np.testing.assert_allclose(fitted.components_, khatri_rao(fitted.factors_[1:]).T)
    model = (fitted.embedding_ @ fitted.components_).reshape(X.shape) / scale[:, None, None]
    np.testing.assert_allclose(model, reconstruct(fitted.factors_))
    unit = X / scale[:, None, None]
    np.testing.assert_allclose(fitted.reconstruction_err_, np.linalg.norm(unit - model) / np.linalg.norm(unit))
    assert fitted.objective_ == fitted.objective_curve_[-1] == fitted.objective_terms_.total
    assert (fitted.n_iter_, fitted.status_) == (15, Status.MAX_ITER)
    assert fitted.graph_.shape == (300, 300)
    assert fitted.costs_[0].shape == (300, 300)
    assert [cost.size for cost in fitted.costs_[1:]] == [8, 8]


def test_fit_transform_is_the_embedding_and_differs_from_transform(digits):
    X = digits[0]
    model = small()
    embedded = model.fit_transform(X)
    np.testing.assert_array_equal(embedded, model.embedding_)
    assert not np.allclose(embedded, model.transform(X), rtol=1e-2)


def test_same_seed_same_bits(digits):
    X = digits[0][:60]
    np.testing.assert_array_equal(small().fit(X).embedding_, small().fit(X).embedding_)
    assert not np.allclose(small().fit(X).embedding_, small(random_state=1).fit(X).embedding_)


def test_new_samples_are_independent_of_each_other(fitted):
    """Up to rounding, which decides whether the last steps of a sample that has arrived are accepted."""
    new = load_digits().images[300:340]
    model = clone(fitted).set_params(tol=1e-5, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(load_digits().images[:100])
    together = model.transform(new)
    order = np.random.default_rng(0).permutation(40)
    one_by_one = np.concatenate([model.transform(new[i : i + 1]) for i in range(40)])
    for found, wanted in ((model.transform(new[order]), together[order]), (one_by_one, together)):
        apart = np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
        assert apart.max() < 1e-4
        assert np.median(apart) < 1e-10


def test_transform_does_not_look_at_the_sample_cost(digits):
    X, new = digits[0][:80], digits[0][80:90]
    model = small(costs=("cosine", "grid", "grid"), graph_reg=0).fit(X)
    blind = small(costs=(None, "grid", "grid"), graph_reg=0, init=model.factors_).fit(X)
    blind.factors_, blind.components_ = model.factors_, model.components_
    np.testing.assert_allclose(blind.transform(new), model.transform(new), rtol=1e-12)


def test_transform_minimises_the_objective_of_a_sample(digits):
    """At the end no component's share of a sample can be moved to lower F: the MM step is a fixed point."""
    X = digits[0][:80]
    model = small(costs=(None, "grid", "grid"), graph_reg=0, transport=TransportOptions(60, tol=1e-10)).fit(X)
    model.set_params(max_iter=500, tol=0)
    from gwntf import objective

    unit = X[:3] / np.linalg.norm(X[:3], axis=(1, 2), keepdims=True)
    Z = model.transform(unit)

    def value(z):
        return objective(unit, [z, *model.factors_[1:]], (None, "grid", "grid"), tol=1e-12).total

    best = value(Z)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert value(Z * np.exp(0.03 * rng.standard_normal(Z.shape))) > best - 1e-7


def test_transform_without_transport_is_the_kl_projection(rng):
    X = rng.random((30, 6))
    model = small(n_components=3, costs=(None, None), graph_reg=0, sample_norm=None).fit(X)
    model.set_params(max_iter=2000, tol=1e-14)
    H = model.components_.T
    z = np.full((30, 3), X.mean())
    for _ in range(5000):
        z = z * ((X / (z @ H.T)) @ H)
    np.testing.assert_allclose(model.transform(X), z, atol=1e-4)


def test_the_model_is_in_the_units_of_the_data(fitted, digits):
    X = digits[0][:20]
    Z = fitted.transform(X)
    model = fitted.inverse_transform(Z)
    assert model.shape == X.shape
    np.testing.assert_allclose(model, (Z @ fitted.components_).reshape(X.shape))
    np.testing.assert_allclose(fitted.reconstruct(X), model)
    np.testing.assert_allclose(fitted.transform(5 * X), 5 * Z, rtol=1e-8)
    scale = np.linalg.norm(X, axis=(1, 2))
    np.testing.assert_allclose(Z, fitted.transform(X / scale[:, None, None]) * scale[:, None], rtol=1e-8)


@pytest.mark.parametrize("method", [NMF, GNMF, NCP, GNCP, SDNMF, SWIFT, GWNTF])
def test_rows_of_the_embedding_share_out_the_sum_of_a_sample(method, digits):
    """As in scikit-learn's NMF the model has the mass of the data; its rows can be read as shares."""
    X = digits[0][:150]
    model = method(10, random_state=0)
    Z = model.fit_transform(X)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(model.inverse_transform(Z).sum(axis=(1, 2)), Z.sum(axis=1))
    for rows in (Z, model.transform(X)):
        assert rows.sum() == pytest.approx(X.sum(), rel=0.1)  # relaxed transport drops a little


def test_score_is_minus_the_relative_reconstruction_error(fitted, digits):
    X = digits[0][:50]
    error = np.linalg.norm(X - fitted.reconstruct(X)) / np.linalg.norm(X)
    np.testing.assert_allclose(fitted.score(X), -error)


def test_sample_shape_folds_rows_and_gives_rows_back(digits):
    X = digits[0][:60]
    rows = X.reshape(60, -1)
    tensor, matrix = small().fit(X), small(sample_shape=(8, 8)).fit(rows)
    np.testing.assert_array_equal(matrix.embedding_, tensor.embedding_)
    np.testing.assert_array_equal(matrix.transform(rows), tensor.transform(X))
    assert matrix.inverse_transform(matrix.embedding_).shape == (60, 64)
    assert tensor.inverse_transform(tensor.embedding_).shape == (60, 8, 8)


@pytest.mark.parametrize("shape", [(12, 5), (12, 4, 3), (10, 3, 4, 2)])
def test_any_order(shape, rng):
    model = small(n_components=2).fit(rng.random(shape))
    assert [factor.shape for factor in model.factors_] == [(size, 2) for size in shape]
    assert model.transform(rng.random((3, *shape[1:]))).shape == (3, 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precision_is_kept_or_chosen(dtype, digits):
    X = digits[0][:50]
    kept = small().fit(X.astype(dtype))
    chosen = small(dtype=dtype).fit(X)
    for model in (kept, chosen):
        assert model.embedding_.dtype == dtype
        assert model.transform(X.astype(dtype)).dtype == dtype
        assert all(factor.dtype == dtype for factor in model.factors_)
    assert small().fit(X.astype(int)).embedding_.dtype == np.float64


def test_float32_and_float64_agree(digits):
    X = digits[0][:100]
    single, double = small(dtype="float32").fit(X), small(dtype="float64").fit(X)
    apart = np.linalg.norm(single.embedding_ - double.embedding_) / np.linalg.norm(double.embedding_)
    assert apart < 1e-2
    np.testing.assert_allclose(single.objective_curve_, double.objective_curve_, rtol=1e-3)


def test_ready_graph_and_its_weight(digits):
    X = digits[0][:40]
    own = small().fit(X)
    given = small(graph=own.graph_).fit(X)
    np.testing.assert_array_equal(given.embedding_, own.embedding_)
    np.testing.assert_array_equal(small(graph=own.graph_.toarray()).fit(X).embedding_, own.embedding_)
    none = small(graph_reg=0).fit(X)
    assert none.graph_ is None
    assert none.objective_terms_.graph == 0


def test_pipeline_grid_search_clone_and_pickle(digits):
    X, y = digits[0][:120].reshape(120, -1), digits[1][:120]
    model = small(sample_shape=(8, 8), graph_reg=0, costs=(None, "grid", "grid"))
    pipeline = make_pipeline(MinMaxScaler(clip=True), model, KNeighborsClassifier(3))
    assert pipeline.fit(X[:90], y[:90]).score(X[90:], y[90:]) > 0.5
    search = GridSearchCV(model, {"reg": [0.01, 0.05], "n_components": [2, 8]}, cv=2).fit(X)
    assert search.best_params_["n_components"] == 8
    assert search.best_score_ > -1
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    model.fit(X)
    thawed = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(thawed.transform(X), model.transform(X))


def test_feature_names_and_pandas_output(digits):
    model = small(sample_shape=(8, 8)).set_output(transform="pandas")
    frame = model.fit_transform(digits[0][:40].reshape(40, -1))
    assert list(frame.columns) == [f"gwntf{i}" for i in range(8)]
    assert list(model.get_feature_names_out()) == list(frame.columns)
    assert "GWNTF" in model._repr_html_()


def test_warns_when_the_limit_comes_first(digits):
    with pytest.warns(ConvergenceWarning, match="Raise `max_iter`"):
        small(max_iter=2, tol=1e-9).fit(digits[0][:40])


def test_all_iterations_that_were_asked_for_are_no_reason_to_complain(digits):
    """`tol=0` asks for `max_iter` iterations: there is nothing to raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = small(max_iter=2, tol=0).fit(digits[0][:40])
    assert "raise" not in model.status_.message.lower()
    assert "tol" not in model.status_.message


@pytest.mark.parametrize("method", [NMF, GNMF, NCP, GNCP, SDNMF, SWIFT, GWNTF])
def test_defaults_converge(method, digits):
    """On images, measurements of other units and noise, without a warning (the tests turn them into errors)."""
    rows = np.random.default_rng(0).random((60, 12))
    for X in (digits[0], load_wine().data, rows):
        assert method(random_state=0).fit(X).status_ is Status.CONVERGED


def test_callbacks_and_progress(digits, capsys):
    seen = []
    small(callbacks=[lambda news: seen.append(news.iteration), ProgressBar()], max_iter=4).fit(digits[0][:40])
    assert seen == [1, 2, 3, 4]
    assert "4/4" in capsys.readouterr().err
    small(max_iter=2).fit(digits[0][:40])
    assert capsys.readouterr().err == ""


def test_missing_entries_are_an_error_unless_asked_for(digits):
    X = digits[0][:40].copy()
    X[3, 2, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        small().fit(X)


def test_missing_entries_of_a_low_rank_tensor_are_recovered(rng):
    X = reconstruct([rng.random((60, 3)) ** 2, rng.random((9, 3)) ** 3, rng.random((8, 3)) ** 3])
    hidden = rng.random(X.shape) < 0.3
    holed = np.where(hidden, np.nan, X)
    model = small(n_components=3, graph_reg=0, max_iter=1500, costs=(None, None, None), missing="ignore")
    filled = model.fit(holed).reconstruct(holed)
    mean = np.broadcast_to(np.nanmean(holed, axis=0), X.shape)
    assert np.linalg.norm((filled - X)[hidden]) < 0.05 * np.linalg.norm((mean - X)[hidden])


def test_the_graph_helps_to_fill_in_missing_pixels(digits):
    X = digits[0]
    hidden = np.random.default_rng(0).random(X.shape) < 0.3
    holed = np.where(hidden, np.nan, X)
    mean = np.broadcast_to(np.nanmean(holed, axis=0), X.shape)
    errors = []
    for graph_reg in (0.0, 1.0):
        model = small(n_components=20, graph_reg=graph_reg, max_iter=60, costs=(None,) * 3, missing="ignore")
        filled = model.fit(holed).inverse_transform(model.embedding_)
        errors.append(np.linalg.norm((filled - X)[hidden]) / np.linalg.norm((mean - X)[hidden]))
    assert errors[1] < 0.8
    assert errors[1] < errors[0]


def test_missing_entries_do_not_change_complete_data(digits):
    X = digits[0][:60]
    plain, tolerant = small().fit(X), small(missing="ignore").fit(X)
    np.testing.assert_array_equal(plain.embedding_, tolerant.embedding_)


def test_what_lies_under_a_missing_entry_does_not_matter(digits):
    """Transport, norms, costs, graph and score see only what was observed."""
    X = digits[0][:60]
    hidden = np.random.default_rng(1).random(X.shape) < 0.2
    holed = np.where(hidden, np.nan, X)
    model = small(missing="ignore").fit(holed)
    assert np.isfinite(model.embedding_).all()
    apart = (X - model.reconstruct(holed))[~hidden]
    np.testing.assert_allclose(-model.score(holed), np.linalg.norm(apart) / np.linalg.norm(X[~hidden]))
    scale = np.sqrt(np.nanmean(holed**2, axis=(1, 2)) * 64)
    np.testing.assert_allclose(model.sample_scale_, scale)


def test_scores_at_extreme_scales(fitted, digits):
    X = digits[0][:20]
    usual = fitted.score(X)
    for size in (1e-200, 1e200):
        np.testing.assert_allclose(fitted.score(size * X), usual, rtol=1e-6)


def test_transform_says_when_it_has_not_settled(digits):
    model = small().fit(digits[0][:40]).set_params(max_iter=2, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="of the new samples were far from converged after 2 iterations"):
        model.transform(digits[0][:5])


def test_new_samples_stop_by_the_rule_of_the_objective(rng):
    """Literal extrapolated KL steps for one sample; the result is within tol * max(|F|, sum(x)) of the optimum."""
    X = rng.random((30, 6))
    model = small(n_components=3, costs=(None, None), graph_reg=0, sample_norm=None).fit(X)
    x, H = X[0], model.components_.T

    def step(z):
        y = H @ z
        return z * (H.T @ (x / y)), (x * np.log(x / y) - x + y).sum()

    start = np.full(3, x.sum() / 3)
    found = model.set_params(max_iter=7, tol=0).transform(X[:1])[0]
    np.testing.assert_allclose(found, literal_new_samples(step, start, 7), rtol=1e-9)
    for tol in (1e-2, 1e-4, 1e-6):
        found = model.set_params(max_iter=5000, tol=tol).transform(X[:1])[0]
        best = step(literal_new_samples(step, start, 5000))[1]
        assert step(found)[1] - best <= tol * max(abs(best), x.sum())


def test_l1_and_no_normalisation(digits):
    X = digits[0][:40]
    np.testing.assert_allclose(small(sample_norm="l1").fit(X).sample_scale_, X.sum(axis=(1, 2)))
    np.testing.assert_array_equal(small(sample_norm=None).fit(X).sample_scale_, np.ones(40))


def test_zero_samples_and_zero_rows_are_harmless(digits):
    X = digits[0][:40].copy()
    X[5] = 0
    X[:, 3] = 0
    model = small().fit(X)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.transform(X)).all()
    np.testing.assert_array_equal(small(graph_reg=0).fit(X).transform(X)[5], np.zeros(8))
    assert model.sample_scale_[5] == 1


def test_unfitted_models_say_so(digits):
    for call in ("transform", "inverse_transform", "reconstruct", "score"):
        with pytest.raises(NotFittedError):
            getattr(GWNTF(), call)(digits[0][:3])


def test_graph_metrics_see_the_shape_of_samples_in_matrix_methods():
    X = load_digits_tensor()[0][:80]
    options = {"graph": KNNGraph(metric="gradient"), "max_iter": 2, "tol": 0, "random_state": 0}
    flat = GNMF(4, **options).fit(X)
    folded = GNCP(4, **options).fit(X)
    np.testing.assert_array_equal(flat.graph_.toarray(), folded.graph_.toarray())
