"""Clusters of a graph: refining them, and starting from them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.cluster import SpectralClustering

from gwntf import GNMF, GWNTF, InputError, TensorClustering
from gwntf.clustering.graph_labels import modularity, most_modular, refine, spectral_labels, start_from_labels
from gwntf.data import as_data
from gwntf.datasets import load_digits_tensor


def random_graph(rng, size=40, share=0.15):
    weights = rng.random((size, size)) * (rng.random((size, size)) < share)
    weights = np.maximum(weights, weights.T)
    np.fill_diagonal(weights, 0)
    return csr_array(weights)


def literal_modularity(weights, labels):
    total, degree = weights.sum(), weights.sum(axis=1)
    same = labels[:, None] == labels[None]
    return ((weights - np.outer(degree, degree) / total) * same).sum() / total


@pytest.mark.parametrize("seed", range(5))
def test_refined_labels_cannot_be_bettered_by_moving_one_sample_to_a_neighbour(seed):
    rng = np.random.default_rng(seed)
    graph, labels = random_graph(rng), rng.integers(5, size=40)
    refined = refine(graph, labels)
    weights = graph.toarray()
    reached = literal_modularity(weights, refined)
    assert reached > literal_modularity(weights, labels)
    for sample in range(40):
        if (refined == refined[sample]).sum() == 1:
            continue
        for cluster in set(refined[weights[sample] > 0]):
            moved = refined.copy()
            moved[sample] = cluster
            assert literal_modularity(weights, moved) <= reached + 1e-12


def test_refining_keeps_every_cluster_and_the_labels_it_was_given(rng):
    graph = random_graph(rng, share=0.5)
    labels = np.arange(40) % 13
    given = labels.copy()
    refined = refine(graph, labels)
    assert set(refined) == set(range(13))
    np.testing.assert_array_equal(labels, given)
    np.testing.assert_array_equal(refine(graph, refined), refined)


def test_a_graph_without_edges_leaves_labels_as_they_are():
    labels = np.array([0, 1, 1, 2])
    np.testing.assert_array_equal(refine(csr_array((4, 4)), labels), labels)
    np.testing.assert_array_equal(spectral_labels(csr_array((4, 4)), 2, 0), np.zeros(4))


def test_spectral_labels_are_scikit_learns(rng):
    graph = random_graph(rng, share=0.3)
    theirs = SpectralClustering(4, affinity="precomputed", assign_labels="discretize", random_state=3)
    np.testing.assert_array_equal(spectral_labels(graph, 4, 3), theirs.fit_predict(graph))


def test_of_given_and_spectral_labels_the_more_modular_ones_are_kept(rng):
    blocks = np.kron(np.eye(4), np.ones((10, 10))) + 0.01
    np.fill_diagonal(blocks, 0)
    truth = np.repeat(np.arange(4), 10)
    graph = csr_array(blocks)
    assert modularity(graph, most_modular(graph, rng.integers(4, size=40), 4, 0)) == pytest.approx(
        modularity(graph, truth)
    )
    np.testing.assert_array_equal(most_modular(graph, truth, 4, 0), truth)


@pytest.mark.parametrize("rank", [2, 4, 9])
def test_a_start_from_labels_gives_samples_weight_in_the_components_of_their_cluster(rank, rng):
    labels = np.array([0, 1, 2, 3, 3, 2, 1, 0])
    samples, rows, columns = start_from_labels(labels, (8, 5, 6), rank, np.random.RandomState(0))
    assert (samples.shape, rows.shape, columns.shape) == ((8, rank), (5, rank), (6, rank))
    assert min(samples.min(), rows.min(), columns.min()) > 0
    clusters = min(4, rank)
    for sample, label in enumerate(labels):
        for component in range(rank):
            assert (samples[sample, component] > 0.3) == (label % clusters == component % clusters)


def test_a_fit_may_start_from_the_graph_and_the_model_has_the_mass_of_the_data():
    X = load_digits_tensor()[0][:200]
    model = GWNTF(10, init="graph", max_iter=1, tol=0, random_state=0).fit(X)
    start = model._start(normalised(X), np.random.RandomState(0))
    np.testing.assert_allclose(start[0].sum(), normalised(X).mass)
    for factor in start[1:]:
        np.testing.assert_allclose(factor.sum(axis=0), 1)
    again = GWNTF(10, init="graph", max_iter=1, tol=0, random_state=0).fit(X)
    np.testing.assert_array_equal(model.embedding_, again.embedding_)
    assert GNMF(4, init="graph", max_iter=1, tol=0, random_state=0).fit(X).embedding_.shape == (200, 4)


def normalised(X):
    return as_data(X).normalised("l2")[0]


def test_a_start_from_the_graph_needs_a_graph_and_is_one_start(rng):
    X = rng.random((8, 4, 4))
    with pytest.raises(InputError, match="init: got 'graph' with graph=None"):
        GWNTF(2, init="graph", graph=None).fit(X)
    with pytest.raises(InputError, match="n_init: got 3; expected 1 with init='graph'"):
        GWNTF(2, init="graph", n_init=3).fit(X)


def test_a_start_of_a_clusterer_has_its_number_of_clusters():
    """Components are assigned to the clusters in turn."""
    X = load_digits_tensor()[0][:200]
    model = TensorClustering(5, n_components=10, max_iter=1, random_state=0).fit(X).model_
    start = model._start(normalised(X), np.random.RandomState(0))[0]
    assert len(set(model._start_labels)) == 5
    for component, weights in enumerate(start.T):
        inside = model._start_labels == component % 5
        assert weights[inside].min() > weights[~inside].max()


def test_labels_of_a_clusterer_are_refined_on_its_graph():
    X = load_digits_tensor()[0][:400]
    clusterer = TensorClustering(10, random_state=0, max_iter=2)
    labels, graph = clusterer.fit_predict(X), clusterer.model_.graph_
    np.testing.assert_array_equal(refine(graph, labels), labels)
    plain = TensorClustering(10, random_state=0, max_iter=2, refine_labels=False).fit_predict(X)
    assert modularity(graph, labels) > modularity(graph, plain)


def test_as_many_clusters_as_vertices_are_all_alone():
    graph = csr_array(np.ones((3, 3)) - np.eye(3))
    np.testing.assert_array_equal(spectral_labels(graph, 3, 0), [0, 1, 2])
    X = np.random.default_rng(0).random((3, 4, 4))
    labels = TensorClustering(3, random_state=0, max_iter=2).fit_predict(X)
    assert len(set(labels)) == 3
