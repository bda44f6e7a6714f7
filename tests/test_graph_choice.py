"""Choosing a graph metric without labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.sparse import csr_array

from gwntf import GWNTF, KNNGraph, TensorClustering
from gwntf.clustering.graph_labels import _best_metric, choose_graph, modularity
from gwntf.data import DataTensor
from gwntf.datasets import load_digits_tensor
from gwntf.experiments import find_table, load_table


def test_modularity_is_that_of_literal_loops(rng):
    weights = rng.random((9, 9))
    weights = weights + weights.T
    np.fill_diagonal(weights, 0)
    labels = np.array([0, 0, 1, 1, 2, 2, 2, 0, 1])
    total = weights.sum()
    degree = weights.sum(axis=1)
    expected = sum(
        (weights[i, j] - degree[i] * degree[j] / total) / total
        for i in range(9)
        for j in range(9)
        if labels[i] == labels[j]
    )
    assert modularity(csr_array(weights), labels) == pytest.approx(expected)
    assert modularity(csr_array((3, 3)), np.array([0, 1, 0])) == 0


@pytest.mark.parametrize(
    ("values", "winner"),
    [
        ({"a": [0.90, 0.90], "b": [0.93, 0.93]}, "b"),
        ({"a": [0.90, 0.90], "b": [0.91, 0.91]}, "a"),
        ({"a": [0.80, 1.00], "b": [0.95, 0.95]}, "a"),
        ({"a": [0.90, 0.90]}, "a"),
        ({"a": [0.90, 0.90], "b": [0.93, 0.93], "c": [0.94, 0.94]}, "b"),
        ({"a": [0.90, 0.90], "b": [0.93, 0.93], "c": [0.96, 0.96]}, "c"),
    ],
)
def test_the_first_is_kept_unless_another_is_clearly_better(values, winner):
    assert _best_metric(values, {"a": 0.0, "b": 0.02, "c": 0.05}) == winner


def test_images_under_changing_light_are_compared_by_their_finest_edges(rng):
    """Six patterns under soft lights that outshine them."""
    lights = gaussian_filter(rng.random((90, 24, 24)), (0, 3, 3))
    X = np.repeat(rng.random((6, 24, 24)), 15, axis=0) + 20 * lights
    name, graph, clarity = choose_graph(DataTensor.of_array(X), 5, "self-tuning", 6, 0)
    assert name == "orientation-fine"
    assert clarity["orientation-fine"] > clarity["orientation"] + 0.01
    rule = KNNGraph(metric="auto", weight="self-tuning")
    model = GWNTF(6, graph=rule, max_iter=2, tol=0, random_state=0).fit(X)
    assert model.graph_metric_ == "orientation-fine"
    np.testing.assert_allclose(model.graph_.toarray(), graph.toarray(), rtol=1e-5)


def test_digits_keep_the_orientation_rows_the_cosine_and_missing_entries_leave_no_choice():
    X = load_digits_tensor()[0][:300]
    name, _, clarity = choose_graph(DataTensor.of_array(X), 5, "binary", 10, 0)
    assert name == "orientation"
    assert list(clarity) == ["orientation", "orientation-coarse", "orientation-fine", "cosine"]
    name, _, clarity = choose_graph(DataTensor.of_array(X.reshape(300, -1)), 5, "binary", 10, 0)
    assert name == "cosine"
    assert list(clarity) == ["cosine", "gradient", "wasserstein"]
    X[0, 0, 0] = np.nan
    model = GWNTF(3, graph=KNNGraph(metric="auto"), missing="ignore", max_iter=1, tol=0).fit(X)
    assert list(model.modularity_) == ["cosine"]


def settings_of(model):
    """Parameters, with those of the graph and of the transport in place of these two objects."""
    return {name: value for name, value in model.get_params().items() if name not in ("graph", "transport")}


@pytest.mark.parametrize(("name", "classes"), [("coil20", 20), ("pie_pose27", 68), ("digits", 10)])
def test_the_committed_tables_spell_the_preset_out(name, classes):
    table = load_table(find_table(f"clustering_{name}"))
    method = next(method for method in table.methods if method.name == "TensorClustering")
    clusterer = TensorClustering(classes, dtype="float32")
    preset = settings_of(clusterer.factorization())
    ablation = load_table(find_table(f"ablation_{name}"))
    rows = {row.name: row for row in ablation.methods}
    spelled = [
        (method, {}),
        (rows["transport of the samples too"], {"costs": ["cosine", "grid", "grid"]}),
        (rows["the preset"], {"costs": [None, "grid", "grid"]}),
    ]
    for row, change in spelled:
        assert settings_of(row.build()) == {**preset, **change}
        assert (row.assign_labels, row.refine_labels) == (clusterer.assign_labels, clusterer.refine_labels)
