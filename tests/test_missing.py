"""Entries that were not observed: NaN or a mask, for every loss; and filling them in."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV

from gwntf import GNCP, GNMF, GWNTF, NCP, NMF, SDNMF, SWIFT, KNNGraph, TransportOptions, objective
from gwntf.core import InputError
from gwntf.data import reconstruct
from gwntf.datasets import load_digits_tensor
from tests.oracles import fibers, kruskal, plan
from tests.schemes import plain

METHODS = {
    "NMF": NMF,
    "GNMF": GNMF,
    "NCP": NCP,
    "GNCP": GNCP,
    "SDNMF": SDNMF,
    "SWIFT": SWIFT,
    "GWNTF": GWNTF,
    "KL": lambda *args, **params: GWNTF(*args, costs=(None,) * 3, **params),
}
RUN = {"max_iter": 6, "tol": 0, "random_state": 0, "missing": "ignore"}


def holes(X, share=0.3, seed=0):
    return np.random.default_rng(seed).random(X.shape) < share


def masked(X, hidden):
    """X with its holes masked and nonsense, which no one may look at, underneath."""
    return np.ma.MaskedArray(np.where(hidden, -1e30, X), mask=hidden)


def hidden_error(filled, X, hidden):
    return np.linalg.norm((filled - X)[hidden]) / np.linalg.norm(X[hidden])


@pytest.fixture(scope="module")
def small():
    X = np.random.default_rng(3).random((12, 4, 3)) + 0.1
    return X, holes(X)


@pytest.mark.parametrize("name", METHODS)
def test_a_mask_means_what_nan_means(name, small):
    X, hidden = small
    holed, cover = np.where(hidden, np.nan, X), masked(X, hidden)
    by_nan, by_mask = (METHODS[name](3, **RUN).fit(given) for given in (holed, cover))
    np.testing.assert_array_equal(by_mask.embedding_, by_nan.embedding_)
    for method in ("transform", "reconstruct", "impute", "score"):
        first, second = (getattr(model, method)(given) for model, given in ((by_nan, holed), (by_mask, cover)))
        np.testing.assert_array_equal(second, first)
        assert type(second) is type(first)


@pytest.mark.parametrize("name", METHODS)
def test_imputing_keeps_what_was_observed_and_takes_the_rest_from_the_model(name, small):
    X, hidden = small
    model = METHODS[name](3, **RUN)
    holed = np.where(hidden, np.nan, X)
    filled = model.fit_impute(holed)
    rows = model.embedding_ @ model.components_
    np.testing.assert_array_equal(filled[~hidden], X[~hidden])
    np.testing.assert_allclose(filled[hidden], rows.reshape(X.shape)[hidden], rtol=1e-12)
    new = model.impute(holed[:5])
    np.testing.assert_array_equal(new[~hidden[:5]], X[:5][~hidden[:5]])
    np.testing.assert_allclose(new[hidden[:5]], model.reconstruct(holed[:5])[hidden[:5]], rtol=1e-12)
    assert np.isnan(holed[hidden]).all()


def literal_target(X, hidden, factors, costs, lam):
    """Psi_bar by one transport per fiber on its observed entries alone; X^ where nothing was observed."""
    model = kruskal(factors)
    transported = [mode for mode, cost in enumerate(costs) if cost is not None]
    if not transported:
        return np.where(hidden, model, X)
    target = np.zeros_like(X)
    for mode in transported:
        for fiber in fibers(X.shape, mode):
            seen = np.flatnonzero(~hidden[fiber])
            x, y = X[fiber][seen], model[fiber][seen]
            T = plan(x, y, costs[mode][np.ix_(seen, seen)], lam, 1.0, 1.0, 2000)
            target[fiber][seen] += T.sum(axis=0) / len(transported)
    return np.where(hidden, model, target)


@pytest.mark.parametrize("transported", [(), (0,), (1, 2), (0, 1, 2)])
def test_transport_and_kl_see_the_observed_part_of_every_fiber(transported, small):
    """One step equals the literal one in which hidden entries are taken out of every fiber and of its cost."""
    X, hidden = (part[:6] for part in small)
    rng = np.random.default_rng(1)
    costs = [rng.random((size, size)) if mode in transported else None for mode, size in enumerate(X.shape)]
    start = [rng.random((size, 2)) + 0.1 for size in X.shape]
    start[1:] = [factor / factor.sum(axis=0) for factor in start[1:]]
    target = literal_target(X, hidden, start, costs, lam=10.0)
    ratio = target / kruskal(start)
    expected = [
        start[0] * np.einsum("ijk,jr,kr->ir", ratio, start[1], start[2]),
        start[1] * np.einsum("ijk,ir,kr->jr", ratio, start[0], start[2]),
        start[2] * np.einsum("ijk,ir,jr->kr", ratio, start[0], start[1]),
    ]
    expected[1:] = [factor / factor.sum(axis=0) for factor in expected[1:]]
    options = {"costs": costs, "reg": 0.1, "graph_reg": 0, "sample_norm": None, "init": start}
    exact = {"transport": TransportOptions(2000, tol=0), "max_iter": 1, "tol": 0, "missing": "ignore"}
    model = plain(GWNTF(2, **options, **exact)).fit(masked(X, hidden))
    for found, wanted in zip(model.factors_, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_least_squares_steps_towards_the_data_with_the_model_in_the_holes(small):
    X, hidden = small
    A, B = (np.random.default_rng(2).random((size, 2)) + 0.1 for size in (12, 12))
    rows, gone = X.reshape(12, 12), hidden.reshape(12, 12)
    start = [A * B.sum(axis=0), B / B.sum(axis=0)]
    W, H = start
    target = np.where(gone, W @ H.T, rows)
    H = H * (target.T @ W) / (H @ W.T @ W)
    target = np.where(gone, W @ H.T, rows)
    W = W * (target @ H) / (W @ H.T @ H)
    model = plain(NMF(2, init=start, sample_norm=None, max_iter=1, tol=0, missing="ignore")).fit(masked(rows, gone))
    np.testing.assert_allclose(model.embedding_ @ model.components_, W @ H.T, rtol=1e-12)


def test_graph_and_norms_see_observed_entries_only(small):
    X, hidden = small
    model = GWNTF(3, costs=(None,) * 3, graph=KNNGraph(2), **RUN).fit(masked(X, hidden))
    rows, seen = X.reshape(12, -1), ~hidden.reshape(12, -1)
    norm = [np.sqrt((row[some] ** 2).mean() * row.size) for row, some in zip(rows, seen, strict=True)]
    np.testing.assert_allclose(model.sample_scale_, norm)
    edges = np.zeros((12, 12))
    for i in range(12):
        cosine = np.full(12, -1.0)
        for j in range(12):
            both = seen[i] & seen[j]
            x, y = rows[i, both], rows[j, both]
            cosine[j] = x @ y / np.linalg.norm(x) / np.linalg.norm(y) if i != j else -1
        edges[i, np.argsort(-cosine)[:2]] = 1
    np.testing.assert_array_equal(model.graph_.toarray(), np.maximum(edges, edges.T))


def test_masked_entries_are_an_error_unless_asked_for(small):
    X, hidden = small
    message = rf"X: got {hidden.sum()} masked entries; expected no mask, or missing='ignore'"
    with pytest.raises(InputError, match=message):
        GWNTF(2).fit(masked(X, hidden))
    fitted = NMF(2, max_iter=2, tol=0).fit(X)
    for method in ("transform", "reconstruct", "impute", "score"):
        with pytest.raises(InputError, match=message):
            getattr(fitted, method)(masked(X, hidden))
    with pytest.raises(InputError, match="Z: got masked entries"):
        fitted.inverse_transform(np.ma.MaskedArray(np.ones((1, 2)), mask=[[True, False]]))
    with pytest.raises(InputError, match="masked entries"):
        objective(masked(X, hidden), [np.ones((size, 2)) for size in X.shape])


def test_a_mask_that_hides_nothing_changes_nothing(small):
    X, _ = small
    plain, covered = (NCP(2, max_iter=3, tol=0, random_state=0).fit(given) for given in (X, np.ma.array(X)))
    np.testing.assert_array_equal(plain.embedding_, covered.embedding_)
    np.testing.assert_array_equal(plain.impute(X), X)
    assert plain.impute(X) is not X


def test_masked_integers_and_float32_and_strings(small):
    X, hidden = small
    counts = np.ma.MaskedArray((10 * X).astype(int), mask=hidden)
    filled = NMF(2, **RUN).fit_impute(counts)
    assert filled.dtype == np.float64
    np.testing.assert_array_equal(filled[~hidden], counts.data[~hidden])
    assert NMF(2, **RUN).fit_impute(masked(X, hidden).astype(np.float32)).dtype == np.float32
    with pytest.raises(InputError, match="X: got entries of type"):
        NMF(2, **RUN).fit(np.ma.MaskedArray(X.astype(str), mask=hidden))


def test_a_sample_without_an_observed_entry_is_refused_under_a_mask(small):
    X, hidden = small
    hidden = hidden.copy()
    hidden[4] = True
    with pytest.raises(InputError, match="no observed entry in sample 4"):
        NMF(2, **RUN).fit(masked(X, hidden))


def test_objective_takes_a_mask(small):
    X, hidden = small
    factors = [np.random.default_rng(0).random((size, 2)) for size in X.shape]
    values = [
        objective(given, factors, (None,) * 3, missing="ignore").total
        for given in (masked(X, hidden), np.where(hidden, np.nan, X))
    ]
    assert values[0] == values[1]


def test_a_grid_search_takes_masked_arrays(small):
    X, hidden = small
    search = GridSearchCV(NMF(**{**RUN, "max_iter": 200}), {"n_components": [1, 4]}, cv=3, error_score="raise")
    by_mask, by_nan = (
        search.fit(given.reshape(12, -1)).cv_results_["mean_test_score"].copy()
        for given in (masked(X, hidden), np.where(hidden, np.nan, X))
    )
    np.testing.assert_array_equal(by_mask, by_nan)


def test_a_pixel_that_no_sample_shows_is_filled_by_the_axes_of_a_tensor():
    """Its row and its column are known, so a tensor model has it; a matrix model knows nothing about it."""
    rng = np.random.default_rng(5)
    X = reconstruct([rng.random((40, 2)), rng.random((6, 2)), rng.random((5, 2))])
    hidden = np.zeros(X.shape, bool)
    hidden[:, 2, 3] = True
    model = NCP(2, max_iter=4000, tol=0, missing="ignore", random_state=0)
    assert hidden_error(model.fit_impute(masked(X, hidden)), X, hidden) < 0.02


def factorise(X, hidden, make, rank, **params):
    """Error of a fit on the hidden entries."""
    estimator = make(rank, missing="ignore", tol=0, random_state=0, **params)
    return hidden_error(estimator.fit_impute(np.where(hidden, np.nan, X).astype(np.float32)), X, hidden)


def by_rows(imputer, X, hidden):
    """Error of an imputer of scikit-learn on the hidden entries."""
    return hidden_error(imputer.fit_transform(np.where(hidden, np.nan, X)), X, hidden)


@pytest.fixture(scope="module")
def digits():
    X = load_digits_tensor()[0].reshape(-1, 64)
    return X, holes(X)


def test_hidden_pixels_of_digits_are_filled_better_than_by_neighbours_regressions_or_means(digits):
    X, hidden = digits
    graph = {"graph_reg": 1.0, "graph": KNNGraph(8, weight="self-tuning")}
    ours = factorise(X, hidden, GWNTF, 400, costs=(None, None), max_iter=200, **graph)
    assert ours < 0.6 * by_rows(SimpleImputer(keep_empty_features=True), X, hidden)
    assert ours < by_rows(KNNImputer(n_neighbors=5, keep_empty_features=True), X, hidden)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        assert ours < by_rows(IterativeImputer(max_iter=3, keep_empty_features=True), X, hidden)


def test_a_graph_of_the_filled_digits_fills_them_better(digits):
    """Samples of which pixels are missing find better neighbours once they are filled in."""
    X, hidden = digits
    X, hidden = X[:600], hidden[:600]
    holed = np.where(hidden, np.nan, X)
    model = GWNTF(80, costs=(None, None), graph_reg=1.0, max_iter=150, tol=0, missing="ignore", random_state=0)
    first = model.fit_impute(holed)
    second = model.set_params(graph=KNNGraph().build(first)).fit_impute(holed)
    assert hidden_error(second, X, hidden) < 0.97 * hidden_error(first, X, hidden)


def test_a_graph_of_an_array_is_the_graph_of_a_fit(small):
    X, hidden = small
    rule = KNNGraph(3, weight="self-tuning")
    model = GNCP(2, sample_norm=None, graph=rule, **RUN).fit(masked(X, hidden))
    made = rule.build(masked(X, hidden), missing="ignore")
    np.testing.assert_array_equal(made.toarray(), model.graph_.toarray())
    for bad in ({"n_neighbors": 0}, {"weight": "heavy"}, {"metric": "taxi"}):
        with pytest.raises(InputError, match=f"{next(iter(bad))}: got"):
            KNNGraph(**bad).build(X)
    with pytest.raises(InputError, match="missing: got"):
        KNNGraph().build(X, missing="drop")
    with pytest.raises(InputError, match="masked entries"):
        KNNGraph().build(masked(X, hidden))


def test_hidden_pixels_of_coil20_at_rank_60(coil20):
    X = coil20[0].reshape(-1, 1024)
    hidden = holes(X)
    assert factorise(X, hidden, NMF, 60, max_iter=150) < 0.25
    assert by_rows(SimpleImputer(), X, hidden) > 0.5


def test_hidden_pixels_of_coil20_are_filled_better_than_by_neighbours(coil20):
    X = coil20[0].reshape(-1, 1024)
    hidden = holes(X)
    settings = {"costs": (None, None), "graph_reg": 0.1, "graph": KNNGraph(3), "max_iter": 200}
    assert factorise(X, hidden, GWNTF, 300, **settings) < by_rows(KNNImputer(n_neighbors=5), X, hidden)


def test_new_samples_are_filled_better_than_by_means(digits):
    X, hidden = digits
    old, new, gone = X[:1000], X[1000:], hidden[1000:]
    model = NMF(10, missing="ignore", max_iter=200, tol=1e-5, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        filled = model.fit(old).impute(np.where(gone, np.nan, new))
    mean = np.broadcast_to(old.mean(axis=0), new.shape)
    assert hidden_error(filled, new, gone) < 0.8 * hidden_error(mean, new, gone)


def test_reconstruction_takes_noise_away(digits):
    X, _ = digits
    noisy = np.random.default_rng(0).poisson(X / 4).astype(float) * 4
    model = GWNTF(15, costs=(None, None), graph_reg=0, max_iter=200, tol=0, random_state=0).fit(noisy)
    noise, rest = (np.linalg.norm(given - X) for given in (noisy, model.reconstruct(noisy)))
    assert rest < 0.85 * noise
