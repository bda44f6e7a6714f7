"""A program as a user with strict type checks would write it; `test_package.py` runs mypy on it."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from gwntf import (
    GWNTF,
    NMF,
    InputError,
    Iteration,
    KNNGraph,
    ProgressBar,
    SeparableCost,
    Status,
    TensorClustering,
    TransportOptions,
    fit_many,
    wasserstein_distance,
)
from gwntf.datasets import load_digits_tensor
from gwntf.evaluation import clustering_accuracy, clustering_scores
from gwntf.model_selection import StabilityCurve, stability_curve


def watch(news: Iteration) -> bool:
    """End a fit that is good enough."""
    return news.objective < 1.0


def clusters(images: NDArray[np.floating[Any]], truth: NDArray[np.int_]) -> float:
    """Fit, label and score."""
    clusterer = TensorClustering(10, graph=KNNGraph(7, metric="auto"), random_state=0).fit(images)
    assert_type(clusterer, TensorClustering)
    assert_type(clusterer.model_, GWNTF)
    labels = clusterer.labels_
    assert_type(labels, NDArray[np.int_])
    assert_type(clusterer.predict(images[:3]), NDArray[np.int_])
    assert_type(clustering_scores(truth, labels), dict[str, float])
    return clustering_accuracy(truth, labels)


def parts(images: NDArray[np.floating[Any]]) -> list[NMF]:
    """Fit with callbacks, a ready graph, a custom cost and options of the solver."""
    graph, cost = KNNGraph(5).build(images), SeparableCost.on_grid((8, 8))
    options = TransportOptions("auto")
    model = GWNTF(5, costs=(None, cost), graph=graph, transport=options, callbacks=[ProgressBar(), watch])
    model.fit(images.reshape(len(images), -1))
    assert_type(model, GWNTF)
    assert_type(model.score(images), float)
    assert_type(model.status_, Status)
    curve = stability_curve(NMF(), images, [2, 3])
    assert_type(curve, StabilityCurve)
    assert_type(curve.best_rank, int)
    return fit_many(NMF(curve.best_rank), images, random_states=[0, 1])


def main() -> None:
    """Run everything, and print what was wrong with the input if anything was."""
    images, truth = load_digits_tensor()
    try:
        clusters(images, truth)
        parts(images)
    except InputError as error:
        raise SystemExit(f"{error.argument}: {error}") from error
    assert_type(wasserstein_distance([1, 0], [0, 1]), float)
