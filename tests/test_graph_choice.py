"""Choosing a graph metric without labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from gwntf import GWNTF
from gwntf.datasets import load_digits_tensor
from gwntf.estimators.graph_choice import _clear_winner, choose_graph, modularity
from gwntf.experiments import find_table, load_table
from gwntf.problem import NonnegativeTensor


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
    ],
)
def test_the_first_is_kept_unless_another_is_clearly_better(values, winner):
    assert _clear_winner(values) == winner


def test_images_under_changing_light_are_compared_by_their_gradients(rng):
    """Four patterns under lights from all sides."""
    patterns, ramp = rng.random((4, 12, 12)), np.linspace(0, 1, 12)
    lights = [10 * (a * ramp[:, None] + b * ramp[None]) for a, b in rng.uniform(0, 1, (15, 2))]
    X = np.array([pattern + light for pattern in patterns for light in lights])
    name, graph, clarity = choose_graph(NonnegativeTensor(X), 5, "self-tuning", 4, 0)
    assert name == "gradient"
    assert clarity["gradient"] > clarity["cosine"] + 0.02
    model = GWNTF(4, graph_metric="auto", graph_weight="self-tuning", max_iter=2, tol=0, random_state=0).fit(
        X
    )
    assert model.graph_metric_ == "gradient"
    np.testing.assert_allclose(model.graph_.toarray(), graph.toarray(), rtol=1e-9)


def test_digits_keep_the_cosine_and_missing_entries_leave_no_choice():
    X = load_digits_tensor()[0][:300]
    assert choose_graph(NonnegativeTensor(X), 5, "binary", 10, 0)[0] == "cosine"
    X[0, 0, 0] = np.nan
    model = GWNTF(3, graph_metric="auto", missing="ignore", max_iter=1, tol=0).fit(X)
    assert list(model.modularity_) == ["cosine"]


@pytest.mark.parametrize(("name", "classes"), [("coil20", 20), ("pie_pose27", 68), ("digits", 10)])
def test_the_committed_tables_spell_the_preset_out(name, classes):
    table = load_table(find_table(f"clustering_{name}"))
    method = next(method for method in table.methods if method.name == "GWNTF.for_clustering")
    preset = GWNTF.for_clustering(classes, dtype="float32").set_params(n_clusters=None)
    assert method.build().get_params() == preset.get_params()
