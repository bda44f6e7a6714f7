"""The report of a model: what it draws, what it leaves out, and that it says so."""

from __future__ import annotations

import importlib
import re

import numpy as np
import pytest

from gwntf import GWNTF, NMF
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


def model_of(X, labels, method=NMF, rank=4):
    model = method(rank, max_iter=40, tol=0, engine="numpy", random_state=0).fit(X)
    model.labels_ = labels
    return model


def rows_of(html):
    """Return the first cell of every row of the table of clusters."""
    return [int(label) for label in re.findall(r"<tr><td>(\d+)</td>", html)]


@pytest.mark.parametrize("shape", [(30,), (5, 6)], ids=["curves", "images"])
def test_clusters_are_drawn_in_the_order_of_the_table_largest_first(shape, drawn, rng):
    labels = np.repeat([0, 1, 2, 3], [4, 9, 2, 7])
    X = rng.random((22, *shape))
    html = report.model_report(model_of(X, labels), "t", Samples(X))
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
    html = report.model_report(model_of(X, labels), "t", Samples(X))
    caption, figure = find(drawn, "is a cluster")
    assert "Only the 30 largest of 40 clusters are drawn." in caption
    panels = figure.axes[0].child_axes or figure.axes[0].get_yticklabels()
    assert len(panels) == 30
    assert sorted(rows_of(html)) == list(range(40))
    assert "more than 20 colours, too many to name" in find(drawn, "coloured by cluster")[0]


def test_members_of_a_cluster_of_curves_are_its_samples_and_their_mean(drawn, rng):
    labels = np.repeat([1, 0], [5, 3])
    X = rng.random((8, 12))
    report.model_report(model_of(X, labels), "t", Samples(X))
    panels = find(drawn, "is a cluster")[1].axes[0].child_axes
    for panel, members in zip(panels, (X[:5], X[5:]), strict=True):
        mean, *curves = [line.get_ydata() for line in panel.lines]
        np.testing.assert_allclose(mean, members.mean(axis=0))
        np.testing.assert_array_equal(sorted(map(tuple, curves)), sorted(map(tuple, members)))


@pytest.mark.parametrize("method", [NMF, GWNTF], ids=["matrix", "tensor"])
def test_reconstructions_that_look_alike_are_left_out_with_the_reason(method, drawn, rng):
    X = rng.random((30, 5, 6))
    model = model_of(X, np.arange(30) % 3, method)
    middle = X.mean(axis=0)
    for kept, words in ((0.39, "39 % of those between the samples"), (0.41, None)):
        drawn.clear()
        model.reconstruct = lambda few, kept=kept: few.mean(axis=0) + kept * (few - few.mean(axis=0)) + middle
        html = report.model_report(model, "t", Samples(X))
        captions = " ".join(drawn)
        assert ("below each its reconstruction" in captions) == (words is None)
        # components of a tensor model are products of profiles, which say nothing one by one
        assert ("Components, whose weighted sums" in captions) == (words is None or method is NMF)
        assert ("are not drawn" in html) == (words is not None)
        assert (words or "") in html
        assert ("<code>gwntf fit DATA --rank 4 --graph-reg 0" in html) == (words is not None and method is GWNTF)


def test_identifiers_of_samples_are_the_titles_of_their_pictures(drawn, rng):
    X = rng.random((12, 9))
    names = tuple(f"NMR-{k:03d}" for k in range(12))
    report.model_report(model_of(X, np.arange(12) % 2, rank=8), "t", Samples(X, None, names))
    caption, figure = find(drawn, "below each its reconstruction")
    titles = [panel.get_title() for panel in figure.axes[0].child_axes]
    assert titles[:2] == ["NMR-000", "NMR-001"]
    assert "NMR" not in caption
    drawn.clear()
    report.model_report(model_of(X, np.arange(12) % 2, rank=8), "t", Samples(X, None, ("$x$",) * 12))
    caption, figure = find(drawn, "below each its reconstruction")
    assert "From the left: $x$, $x$" in caption
    assert figure.axes[0].child_axes[1].get_title() == "sample 1"


def test_code_is_marked_and_no_backtick_is_left(rng):
    X = rng.random((12, 9))
    html = report.model_report(model_of(X, np.arange(12) % 2), "t", Samples(X, np.arange(12) % 2))
    assert "<code>tol</code>" in html
    assert "`" not in html
    assert "ACC: share of samples" in html
