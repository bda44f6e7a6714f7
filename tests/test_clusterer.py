"""TensorClustering: clusters, labels of new samples, files, kinds of data, refusals."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from gwntf import GWNTF, NMF, Checkpoint, InputError, KNNGraph, TensorClustering, load
from gwntf.clustering import assign
from gwntf.core import DisconnectedGraphWarning, GraphNotExtendedWarning
from gwntf.datasets import load_digits_tensor
from gwntf.evaluation import clustering_accuracy
from tests.backends import needs_torch

EXPECTED_FAILURES = {
    "check_clustering": "its data have negative entries",
    "check_methods_sample_order_invariance": "it sets one component for two clusters, which is refused",
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::gwntf.core.DisconnectedGraphWarning")
@parametrize_with_checks(
    [TensorClustering(3), TensorClustering(2, graph=KNNGraph(3), missing="ignore")],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits_tensor()
    return X / np.linalg.norm(X, axis=(1, 2), keepdims=True), y


def small(n_clusters=4, **params):
    defaults = {"n_components": 6, "graph": KNNGraph(), "max_iter": 5, "random_state": 0}
    return TensorClustering(n_clusters, **{**defaults, **params})


# --- clusters -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("assign_labels", ["kmeans", "discretize", "cluster_qr"])
def test_fit_predict_labels_the_samples(assign_labels, digits):
    X, y = digits[0][:300], digits[1][:300]
    clusterer = TensorClustering(10, assign_labels=assign_labels, random_state=0)
    labels = clusterer.fit_predict(X)
    np.testing.assert_array_equal(labels, clusterer.labels_)
    assert set(labels) == set(range(10))
    assert clustering_accuracy(y, labels) > 0.93


def test_without_refinement_the_labels_are_those_of_the_embedding(digits):
    for how in ("kmeans", "discretize", "cluster_qr"):
        clusterer = small(assign_labels=how, refine_labels=False).fit(digits[0][:60])
        expected = assign(clusterer.model_.factors_[0], 4, how, 0)
        np.testing.assert_array_equal(clusterer.labels_, expected)


def modularity(graph, labels):
    """Sum over pairs of the same label of V_ij - d_i d_j / 2m, by its definition."""
    matrix = graph.toarray()
    degree = matrix.sum(axis=1)
    expected = np.outer(degree, degree) / matrix.sum()
    return ((matrix - expected) * (labels[:, None] == labels)).sum() / matrix.sum()


def test_refined_labels_have_no_lower_modularity(digits):
    plain, refined = (small(refine_labels=refine).fit(digits[0][:120]) for refine in (False, True))
    graph = plain.model_.graph_
    assert modularity(graph, refined.labels_) >= modularity(graph, plain.labels_) - 1e-12


def test_clusters_of_digits_beat_the_factorization_with_default_parameters():
    X, y = load_digits_tensor()
    clusters = TensorClustering(10, random_state=0).fit_predict(X)
    plain = KMeans(10, n_init=20, random_state=0).fit_predict(
        GWNTF(10, max_iter=30, tol=0, random_state=0).fit_transform(X)
    )
    assert clustering_accuracy(y, clusters) > clustering_accuracy(y, plain) + 0.02


def test_predicted_clusters_of_new_digits_beat_k_means_on_nmf(digits):
    X, y = digits[0].astype(np.float32), digits[1]
    train, test = slice(0, None, 2), slice(1, None, 2)
    clusterer = TensorClustering(10, random_state=0).fit(X[train])
    parts = NMF(10, random_state=0, tol=1e-5, max_iter=500)
    means = KMeans(10, n_init=20, random_state=0).fit(parts.fit_transform(X[train]))
    ours = clustering_accuracy(y[test], clusterer.predict(X[test]))
    theirs = clustering_accuracy(y[test], means.predict(parts.transform(X[test])))
    assert ours > theirs + 0.03


def test_coil20_clusters_beat_k_means(coil20):
    images, labels = coil20
    images, labels = images[labels < 10].astype(np.float32), labels[labels < 10]
    found = clustering_accuracy(labels, TensorClustering(10, random_state=0).fit_predict(images))
    pixels = images.reshape(len(images), -1)
    means = clustering_accuracy(labels, KMeans(10, n_init=20, random_state=0).fit_predict(pixels))
    assert found > means + 0.05


def test_labels_by_rotation_do_not_see_the_length_of_rows(rng):
    embedding = np.repeat(np.eye(3), 20, axis=0) + 0.05 * rng.random((60, 3))
    lengths = rng.uniform(0.01, 100, (60, 1))
    for how in ("discretize", "cluster_qr"):
        labels = assign(lengths * embedding, 3, how, 0)
        assert clustering_accuracy(np.repeat(range(3), 20), labels) == 1


@pytest.mark.parametrize("how", ["discretize", "cluster_qr", "kmeans"])
def test_rows_of_zeros_are_labelled_too(how):
    rows = np.repeat(np.eye(3), 5, axis=0)
    rows[7] = 0
    labels = assign(rows, 3, how, 0)
    assert clustering_accuracy(np.repeat(range(3), 5)[rows.any(axis=1)], labels[rows.any(axis=1)]) == 1
    assert set(assign(np.array([[0.0], [1.0], [2.0]]), 1, how, 0)) == {0}


def test_the_same_seed_gives_the_same_labels(digits):
    X = digits[0][:80]
    first, second = (small().fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(first.model_.embedding_, second.model_.embedding_)


def test_the_factorization_has_the_parameters_of_the_clusterer():
    model = TensorClustering(4).factorization()
    assert isinstance(model, GWNTF)
    assert (model.n_components, model.graph.metric, model.graph.weight) == (12, "auto", "self-tuning")
    assert (model.graph_reg, model.max_iter, model.init) == (4e4, 10, "graph")
    params = {
        "n_components": 9,
        "graph": KNNGraph(3, metric="gradient"),
        "graph_reg": 7.0,
        "costs": (None, None, "grid"),
        "sample_shape": (3, 4),
        "missing": "ignore",
        "max_iter": 5,
        "engine": "numpy",
        "device": "cpu",
        "dtype": "float32",
        "callbacks": [print],
        "random_state": 3,
    }
    given = TensorClustering(4, **params).factorization().get_params(deep=False)
    assert {name: repr(given[name]) for name in params} == {name: repr(value) for name, value in params.items()}


def test_the_chosen_metric_is_known(digits):
    clusterer = TensorClustering(5, max_iter=3, random_state=0).fit(digits[0][:100])
    assert clusterer.graph_metric_ == max(clusterer.modularity_, key=clusterer.modularity_.get)
    assert clusterer.model_.graph_metric_ == clusterer.graph_metric_
    assert not hasattr(small().fit(digits[0][:40]), "graph_metric_")


def test_the_metric_is_chosen_for_the_number_of_clusters(digits):
    """Not for the number of components: both are found in the modularity of the candidates."""
    X = digits[0][:100]
    few, many = (TensorClustering(k, n_components=12, max_iter=1, random_state=0).fit(X) for k in (2, 12))
    assert few.modularity_ != many.modularity_
    alone = GWNTF(12, graph=many.factorization().graph, init="graph", max_iter=1, tol=0, random_state=0).fit(X)
    assert alone.modularity_ == many.modularity_


# --- new samples --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("assign_labels", ["kmeans", "discretize", "cluster_qr"])
@pytest.mark.parametrize("graph_reg", [0.0, 0.1, 4e4])
def test_predict_gives_training_samples_their_own_labels(digits, graph_reg, assign_labels):
    X = digits[0][:60]
    clusterer = small(assign_labels=assign_labels, graph_reg=graph_reg, refine_labels=False)
    labels = clusterer.fit_predict(X)
    assert np.mean(clusterer.predict(X) == labels) >= 0.95
    assert set(clusterer.predict(digits[0][60:90])) <= set(labels)


def test_predict_is_the_label_of_the_nearest_training_sample_embedded_alike(digits):
    X, new = digits[0][:100], digits[0][100:120]
    clusterer = small(5)
    labels = clusterer.fit_predict(X)
    old, rows = clusterer.model_.transform(X), clusterer.model_.transform(new)
    for row, label in zip(rows, clusterer.predict(new), strict=True):
        cosines = old @ row / (np.linalg.norm(old, axis=1) * np.linalg.norm(row))
        assert label == labels[np.argmax(cosines)]


def test_predict_needs_training_samples_embedded_like_new_ones(digits):
    """The nearest row of `embedding_`, which has the graph, is a wrong one for a sample without it."""
    X, y = digits[0].astype(np.float32), digits[1]
    train, test = slice(0, None, 2), slice(1, None, 2)
    graph = KNNGraph(metric="orientation", weight="self-tuning").build(X[train])
    clusterer = TensorClustering(10, random_state=0, graph=graph)
    labels = clusterer.fit_predict(X[train])
    with pytest.warns(GraphNotExtendedWarning):
        own = clusterer.model_.transform(X[test])
    own = normalize(own) @ normalize(clusterer.model_.embedding_).T
    naive = clustering_accuracy(y[test], labels[own.argmax(axis=1)])
    assert clustering_accuracy(y[test], clusterer.predict(X[test])) > naive + 0.1


def test_predict_releases_the_training_data_and_refits(digits):
    clusterer = small().fit(digits[0][:60])
    assert clusterer._training.samples is not None
    clusterer.predict(digits[0][60:65])
    assert clusterer._training.samples is None
    assert clusterer._training.rows.shape == (60, 6)
    clusterer.fit(digits[0][60:100])
    assert len(np.unique(clusterer.predict(digits[0][60:100]))) > 1
    assert clusterer._training.rows.shape == (40, 6)


def test_a_refit_replaces_everything(digits):
    clusterer = small().fit(digits[0][:60])
    clusterer.predict(digits[0][:5])
    clusterer.set_params(n_clusters=3).fit(digits[0][60:100])
    fresh = small(3).fit(digits[0][60:100])
    np.testing.assert_array_equal(clusterer.labels_, fresh.labels_)
    np.testing.assert_array_equal(clusterer.predict(digits[0][:60]), fresh.predict(digits[0][:60]))


def test_new_samples_of_another_shape_are_refused(digits):
    clusterer = small().fit(digits[0][:40])
    with pytest.raises(InputError, match=r"X: got samples of shape \(8, 7\); expected samples of shape \(8, 8\)"):
        clusterer.predict(digits[0][:3, :, :7])
    with pytest.raises(NotFittedError):
        small().predict(digits[0][:3])


# --- graphs -------------------------------------------------------------------------------------------------


def test_a_ready_graph_is_used_and_predict_does_not_warn(digits):
    X, new = digits[0][:60], digits[0][60:70]
    own = small().fit(X)
    for graph in (own.model_.graph_, own.model_.graph_.toarray()):
        ready = small(graph=graph).fit(X)
        np.testing.assert_array_equal(ready.labels_, own.labels_)
        assert set(ready.predict(new)) <= set(range(4))


def test_more_connected_parts_than_clusters_warn_in_fit_and_not_in_predict(rng):
    X = rng.random((20, 5, 4))
    graph = csr_array(block_diag([np.ones((5, 5))] * 4))
    clusterer = small(3, graph=graph)
    with pytest.warns(DisconnectedGraphWarning, match="The graph has 4 connected components, more") as seen:
        clusterer.fit(X)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    clusterer.predict(X[:3])
    small(4, graph=graph).fit(X)


# --- kinds of data ------------------------------------------------------------------------------------------


def test_rows_are_folded_to_the_shape_of_a_sample(digits):
    X = digits[0][:60]
    tensor, rows = small().fit(X), small(sample_shape=(8, 8)).fit(X.reshape(60, 64))
    np.testing.assert_array_equal(rows.labels_, tensor.labels_)
    np.testing.assert_array_equal(rows.predict(X.reshape(60, 64)), tensor.predict(X))


def test_a_data_frame_has_its_names(digits):
    pd = pytest.importorskip("pandas")
    X = digits[0][:60].reshape(60, 64)
    frame = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)])
    clusterer, expected = small().fit(frame), small().fit(X)
    np.testing.assert_array_equal(clusterer.labels_, expected.labels_)
    np.testing.assert_array_equal(clusterer.predict(frame[:9]), expected.predict(X[:9]))
    assert list(clusterer.feature_names_in_) == list(frame.columns)
    assert clusterer.n_features_in_ == 64
    with pytest.raises(ValueError, match="feature names"):
        clusterer.predict(frame[frame.columns[::-1]])


def test_missing_entries_are_an_error_unless_ignored(digits):
    X = digits[0][:80].copy()
    hidden = np.random.default_rng(0).random(X.shape) < 0.1
    X[hidden] = np.nan
    with pytest.raises(InputError, match="NaN"):
        small().fit(X)
    by_nan = small(missing="ignore").fit(X[:60])
    by_mask = small(missing="ignore").fit(np.ma.masked_invalid(X[:60]))
    np.testing.assert_array_equal(by_mask.labels_, by_nan.labels_)
    np.testing.assert_array_equal(by_nan.predict(X[60:]), by_mask.predict(np.ma.masked_invalid(X[60:])))


def test_sparse_rows_are_labelled_as_dense_ones(rng):
    X = rng.random((40, 12)) * (rng.random((40, 12)) < 0.6)
    options = {"costs": (None, None), "max_iter": 3}
    dense, sparse = small(3, **options).fit(X), small(3, **options).fit(csr_array(X))
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_array_equal(sparse.predict(csr_array(X[:9])), dense.predict(X[:9]))


@needs_torch
def test_tensors_are_labelled_on_the_host(digits, tmp_path):
    import torch

    X = torch.as_tensor(digits[0][:60])
    clusterer, expected = small(dtype="float64").fit(X), small().fit(digits[0][:60])
    assert isinstance(clusterer.labels_, np.ndarray)
    assert isinstance(clusterer.model_.embedding_, torch.Tensor)
    np.testing.assert_array_equal(clusterer.labels_, expected.labels_)
    np.testing.assert_array_equal(clusterer.predict(X[:20]), expected.predict(digits[0][:20]))
    clusterer.save(tmp_path / "clusters.gwntf")
    again = load(tmp_path / "clusters.gwntf")
    assert isinstance(again.model_.embedding_, np.ndarray)
    np.testing.assert_array_equal(again.predict(X), clusterer.predict(X))


# --- copies and files ---------------------------------------------------------------------------------------


def test_a_pickled_clusterer_predicts_the_same(digits):
    X, new = digits[0][:60], digits[0][60:90]
    clusterer = small().fit(X)
    before = pickle.loads(pickle.dumps(clusterer))  # noqa: S301
    expected = clusterer.predict(new)
    after = pickle.loads(pickle.dumps(clusterer))  # noqa: S301
    for copy in (before, after):
        np.testing.assert_array_equal(copy.labels_, clusterer.labels_)
        np.testing.assert_array_equal(copy.predict(new), expected)


@pytest.mark.parametrize("graph", ["auto", "rule", "ready"])
@pytest.mark.parametrize("predicted", [False, True])
def test_a_saved_and_loaded_clusterer_predicts_the_same_to_the_bit(graph, predicted, digits, tmp_path):
    X, new = digits[0][:60], digits[0][60:90]
    given = {"auto": "auto", "rule": KNNGraph(4, weight="cosine"), "ready": KNNGraph().build(X)}[graph]
    clusterer = small(graph=given).fit(X)
    if predicted:
        clusterer.predict(new)
    clusterer.save(tmp_path / "clusters.gwntf")
    again = load(tmp_path / "clusters.gwntf")
    assert type(again) is TensorClustering
    assert repr(again.get_params(deep=False)) == repr(clusterer.get_params(deep=False))
    np.testing.assert_array_equal(again.labels_, clusterer.labels_)
    np.testing.assert_array_equal(again.predict(new), clusterer.predict(new))
    np.testing.assert_array_equal(again._training.rows, clusterer._training.rows)
    np.testing.assert_array_equal(again.model_.embedding_, clusterer.model_.embedding_)
    assert getattr(again, "modularity_", None) == getattr(clusterer, "modularity_", None)
    assert again.n_features_in_ == 8
    again.save(tmp_path / "again.gwntf")
    assert (tmp_path / "again.gwntf").read_bytes() == (tmp_path / "clusters.gwntf").read_bytes()


def test_a_clusterer_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        small().save(tmp_path / "clusters.gwntf")
    assert not list(tmp_path.iterdir())


def test_parameters_of_a_fitted_clusterer_do_not_change_its_factorization(digits):
    clusterer = small(graph=KNNGraph(4)).fit(digits[0][:40])
    clusterer.set_params(graph__n_neighbors=9)
    assert clusterer.model_.graph.n_neighbors == 4
    assert clone(clusterer).graph is not clusterer.graph


# --- fits that fail, and refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupted_fit_leaves_the_old_state(error, digits):
    def strike(news):
        if news.iteration == 2:
            raise error

    X, new = digits[0][:60], digits[0][60:90]
    clusterer = small().fit(X)
    labels, expected = clusterer.labels_.copy(), clusterer.predict(new)
    state = dict(vars(clusterer))
    clusterer.set_params(callbacks=[strike])
    with pytest.raises(error):
        clusterer.fit(digits[0][100:150])
    assert {**vars(clusterer), "callbacks": None} == state
    np.testing.assert_array_equal(clusterer.labels_, labels)
    np.testing.assert_array_equal(clusterer.predict(new), expected)


@pytest.mark.parametrize("case", ["NaN", "zeros", "parameter", "warning"])
def test_a_refused_fit_leaves_the_old_state_and_a_first_one_no_state(case, digits):
    X = digits[0][:60]
    spoilt = X.copy()
    spoilt[3, 2, 2] = np.nan
    bad = {"NaN": spoilt, "zeros": np.zeros((9, 8, 8))}.get(case, X)
    parts = csr_array(block_diag([np.ones((10, 10))] * 6))
    changed = {"parameter": {"max_iter": 0}, "warning": {"graph": parts}}.get(case, {})
    clusterer, first = small().fit(X), small(**changed)
    state = dict(vars(clusterer))
    clusterer.set_params(**changed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for one in (clusterer, first):
            with pytest.raises((ValueError, DisconnectedGraphWarning)):
                one.fit(bad)
    assert {**vars(clusterer), **{name: state[name] for name in changed}} == state
    with pytest.raises(NotFittedError):
        first.predict(X)


def test_a_checkpoint_continues_the_fit(digits, tmp_path):
    class CutError(Exception):
        pass

    def strike(news):
        if news.iteration == 3:
            raise CutError

    kept, seen = Checkpoint(tmp_path / "run.ckpt", iterations=1), []
    with pytest.raises(CutError):
        small(callbacks=[kept, strike]).fit(digits[0][:60])
    resumed = small(callbacks=[kept, lambda news: seen.append(news.iteration)]).fit(digits[0][:60])
    assert seen == [3, 4, 5]
    np.testing.assert_array_equal(resumed.model_.embedding_, small().fit(digits[0][:60]).model_.embedding_)


REFUSED = [
    ({"n_clusters": 0}, "'n_clusters'.*Got 0"),
    ({"n_clusters": True}, "n_clusters: got True; expected a number"),
    ({"n_clusters": 21}, "n_clusters: got 21; expected at most the number of samples, 20"),
    ({"n_clusters": 7}, "n_clusters: got 7; expected at most n_components=6 with assign_labels='discretize'"),
    ({"n_components": 0}, "'n_components'.*Got 0"),
    ({"graph": None}, "'graph'.*Got None"),
    ({"graph": "knn"}, "'graph'.*Got 'knn'"),
    ({"graph": KNNGraph(0)}, "n_neighbors: got 0"),
    ({"graph_reg": -1.0}, "'graph_reg'.*Got -1"),
    ({"assign_labels": "ward"}, "'assign_labels'.*Got 'ward'"),
    ({"refine_labels": "yes"}, "'refine_labels'.*Got 'yes'"),
    ({"missing": "drop"}, "'missing'.*Got 'drop'"),
    ({"callbacks": [1]}, r"callbacks\[0\]: got int"),
]


@pytest.mark.parametrize(("params", "message"), REFUSED, ids=[str(params) for params, _ in REFUSED])
def test_parameters_that_make_no_sense_are_refused(params, message, rng):
    with pytest.raises(ValueError, match=message):
        small(**params).fit(rng.random((20, 5, 4)))


def test_weights_of_samples_are_refused(rng):
    for method in ("fit", "fit_predict"):
        with pytest.raises(InputError, match="sample_weight"):
            getattr(small(), method)(rng.random((20, 5, 4)), sample_weight=np.ones(20))
