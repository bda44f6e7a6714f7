"""The report of a model: what it draws, what it omits, and that it says so."""

from __future__ import annotations

import importlib
import json
import re
from html import unescape

import numpy as np
import pytest

from gwntf import GWNTF, NMF, KNNGraph, TensorClustering
from gwntf.readers import Samples

report = importlib.import_module("gwntf.reports.model_report")  # the package has a function of that name


@pytest.fixture
def drawn(monkeypatch):
    """Every figure of the reports that are made, by its caption."""
    figures, picture = {}, report.picture
    monkeypatch.setattr(report.plots, "flatten_embedding", report.plots.principal_plane)  # fast
    monkeypatch.setattr(report, "picture", lambda figure, text: figures.update({text: figure}) or picture(figure, text))
    return figures


def find(figures, words):
    """Return caption and figure of the one picture whose caption contains these words."""
    [found] = [item for item in figures.items() if words in item[0]]
    return found


def clusterer_of(X, labels, method=NMF, rank=4):
    """Return a clusterer with these labels, whose model is of any method."""
    clusterer = TensorClustering(len(np.unique(labels)), graph=KNNGraph(3))
    clusterer.set_fitted(method(rank, max_iter=40, tol=0, engine="numpy", random_state=0).fit(X), labels)
    return clusterer


def rows_of(html):
    """Return the first cell of every row of the table of clusters."""
    return [int(label) for label in re.findall(r"<tr><td>(\d+)</td>", html)]


@pytest.mark.parametrize("shape", [(30,), (5, 6)], ids=["curves", "images"])
def test_clusters_are_drawn_in_the_order_of_the_table_largest_first(shape, drawn, rng):
    labels = np.repeat([0, 1, 2, 3], [4, 9, 2, 7])
    X = rng.random((22, *shape))
    html = report.model_report(clusterer_of(X, labels), "t", Samples(X))
    assert rows_of(html) == [1, 3, 0, 2]
    caption, figure = find(drawn, "is a cluster, the largest first")
    if shape == (30,):
        titles = [panel.get_title() for panel in figure.axes[0].child_axes]
    else:
        titles = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert titles == ["1: 9", "3: 7", "0: 4", "2: 2"]
    assert "Only" not in caption


@pytest.mark.parametrize("shape", [(30,), (5, 6)], ids=["curves", "images"])
def test_clusters_that_are_not_drawn_are_counted(shape, drawn, rng):
    labels = np.arange(90) % 40
    X = rng.random((90, *shape))
    html = report.model_report(clusterer_of(X, labels), "t", Samples(X))
    caption, figure = find(drawn, "is a cluster")
    assert "Only the 30 largest of 40 clusters are drawn." in caption
    panels = figure.axes[0].child_axes or figure.axes[0].get_yticklabels()
    assert len(panels) == 30
    assert sorted(rows_of(html)) == list(range(40))
    assert "more than 20 colours, too many for a legend" in find(drawn, "coloured by cluster")[0]


def test_members_of_a_cluster_of_curves_are_its_samples_and_their_mean(drawn, rng):
    labels = np.repeat([1, 0], [5, 3])
    X = rng.random((8, 12))
    report.model_report(clusterer_of(X, labels), "t", Samples(X))
    panels = find(drawn, "is a cluster")[1].axes[0].child_axes
    for panel, members in zip(panels, (X[:5], X[5:]), strict=True):
        mean, *curves = [line.get_ydata() for line in panel.lines]
        np.testing.assert_allclose(mean, members.mean(axis=0))
        np.testing.assert_array_equal(sorted(map(tuple, curves)), sorted(map(tuple, members)))


@pytest.mark.parametrize("method", [NMF, GWNTF], ids=["matrix", "tensor"])
def test_reconstructions_that_look_alike_are_left_out_with_the_reason(method, drawn, rng):
    X = rng.random((30, 5, 6))
    clusterer = clusterer_of(X, np.arange(30) % 3, method)
    model, middle = clusterer.model_, X.mean(axis=0)
    for kept, words in ((0.39, "39 % of those between the samples"), (0.41, None)):
        drawn.clear()
        model.reconstruct = lambda few, kept=kept: few.mean(axis=0) + kept * (few - few.mean(axis=0)) + middle
        html = report.model_report(clusterer, "t", Samples(X))
        captions = " ".join(drawn)
        assert ("below each its reconstruction" in captions) == (words is None)
        # components of a tensor model are products of profiles, which have little meaning alone
        assert ("Components, whose weighted sums" in captions) == (words is None or method is NMF)
        assert ("are not drawn" in html) == (words is not None)
        assert (words or "") in html
        assert ("<code>gwntf fit DATA --rank 4 --graph-reg 0" in html) == (words is not None and method is GWNTF)


def test_identifiers_of_samples_are_the_titles_of_their_pictures(drawn, rng):
    X = rng.random((12, 9))
    names = tuple(f"NMR-{k:03d}" for k in range(12))
    report.model_report(clusterer_of(X, np.arange(12) % 2, rank=8), "t", Samples(X, None, names))
    caption, figure = find(drawn, "below each its reconstruction")
    titles = [panel.get_title() for panel in figure.axes[0].child_axes]
    assert titles[:2] == ["NMR-000", "NMR-001"]
    assert "NMR" not in caption
    drawn.clear()
    report.model_report(clusterer_of(X, np.arange(12) % 2, rank=8), "t", Samples(X, None, ("$x$",) * 12))
    caption, figure = find(drawn, "below each its reconstruction")
    assert "From the left: $x$, $x$" in caption
    assert figure.axes[0].child_axes[1].get_title() == "sample 1"


def test_code_is_marked_and_no_backtick_is_left(rng):
    X = rng.random((12, 9))
    html = report.model_report(clusterer_of(X, np.arange(12) % 2), "t", Samples(X, np.arange(12) % 2))
    assert "<code>max_iter</code>" in html
    assert "`" not in html
    assert "ACC: share of samples" in html


def test_the_report_of_a_factorization_has_its_settings_and_no_clusters(drawn, rng):
    model = GWNTF(3, graph=KNNGraph(4, weight="cosine"), costs=(None, np.eye(9)), max_iter=3, tol=0).fit(
        rng.random((12, 9))
    )
    html = report.model_report(model, "t")
    assert "<h2>Clusters</h2>" not in html
    settings = json.loads(unescape(html.split("<pre>")[1].split("</pre>")[0]))
    assert settings["method"] == "GWNTF"
    assert settings["graph"] == "KNNGraph(n_neighbors=4, weight='cosine')"
    assert settings["costs"] == [None, "ndarray of shape (9, 9)"]
    assert set(settings) == {"gwntf", "method", "n_components", "graph", "costs", "max_iter", "tol"}


def test_the_report_of_a_clusterer_has_its_own_settings_and_its_embedding_by_cluster(drawn, rng):
    X, labels = rng.random((12, 9)), np.arange(12) % 3
    html = report.model_report(clusterer_of(X, labels), "t")
    settings = json.loads(unescape(html.split("<pre>")[1].split("</pre>")[0]))
    assert settings["method"] == "TensorClustering"
    assert (settings["n_clusters"], settings["graph"]) == (3, "KNNGraph(n_neighbors=3)")
    assert "<p>TensorClustering with NMF of rank 4, fitted to 12 samples of 9 values" in html
    points = find(drawn, "coloured by cluster")[1].axes[0].collections[0]
    np.testing.assert_array_equal(points.get_array(), labels)
