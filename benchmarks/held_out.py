"""Clusters of held-out samples: fit on one half of a data set, label the other.

`python -m benchmarks.held_out` writes `results/held-out.json` and the tables of `docs/new_samples.md`.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, spectral_clustering
from sklearn.decomposition import NMF
from sklearn.metrics.cluster import contingency_matrix
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from benchmarks.harness import RESULTS, machine
from benchmarks.pages import DOCS, replace_between
from gwntf import TensorClustering
from gwntf.clustering.graph_labels import choose_graph
from gwntf.core import FloatArray
from gwntf.data import as_data
from gwntf.datasets import load_coil20, load_digits_tensor
from gwntf.evaluation import clustering_accuracy, normalized_mutual_information
from gwntf.io import atomic_path

Labels = NDArray[np.int_]
SPLITS = 10
DATASETS: Mapping[str, Callable[[], Any]] = {"digits": load_digits_tensor, "COIL20": load_coil20}
COLUMNS = {
    "trained": "training half, ACC",
    "acc": "held-out half, ACC",
    "nmi": "NMI",
    "matched": "ACC, clusters named on the training half",
}


def run() -> dict[str, dict[str, dict[str, list[float]]]]:
    """Scores in percent by data set, method and figure, one for every split."""
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for name, load in DATASETS.items():
        X, y = load()
        X = X.astype(np.float32)
        splits = StratifiedShuffleSplit(SPLITS, test_size=0.5, random_state=0).split(X, y)
        for seed, (train, held) in enumerate(splits):
            sys.stderr.write(f"{name}, split {seed}\n")
            for method, (seen, predicted, own) in _labels(X, train, held, y.max() + 1, seed).items():
                figures = _figures(y[train], seen, y[held], predicted) | own
                for figure, value in figures.items():
                    found.setdefault(name, {}).setdefault(method, {}).setdefault(figure, []).append(value)
    return found


def _labels(
    X: FloatArray, train: Labels, held: Labels, k: int, seed: int
) -> dict[str, tuple[Labels, Labels, dict[str, float]]]:
    """Labels of both halves by every method, and how often `predict` gives training samples their own label."""
    rows = X.reshape(len(X), -1)
    found = {}
    seen = np.empty(0, np.int_)
    graph: Any = "auto"
    for name in ("TensorClustering", "TensorClustering, graph not extended"):
        model = TensorClustering(int(k), graph=graph, random_state=seed)
        seen = model.fit_predict(X[train])
        own = {"own": 100 * float(np.mean(model.predict(X[train]) == seen))}
        found[name] = (seen, model.predict(X[held]), own)
        graph = model.model_.graph_  # a matrix, which cannot be extended to new samples
    found["its labels, by the nearest training image"] = (seen, _nearest(rows, seen, train, held), {})
    parts = NMF(int(k), max_iter=1000, random_state=seed)
    pipeline = make_pipeline(Normalizer(), parts, KMeans(int(k), n_init=20, random_state=seed))
    found["scikit-learn's NMF, k-means"] = (
        pipeline.fit_predict(rows[train]),
        pipeline.predict(rows[held]),
        {},
    )
    half = _spectral(X[train], int(k), seed)
    found["spectral clustering, by the nearest training image"] = (
        half,
        _nearest(rows, half, train, held),
        {},
    )
    whole = _spectral(X, int(k), seed)
    found["spectral clustering of both halves at once"] = (whole[train], whole[held], {})
    return found


def _nearest(rows: FloatArray, labels: Labels, train: Labels, held: Labels) -> Labels:
    """Give every held-out image the label of the training image with the largest cosine."""
    unit = Normalizer().transform(rows)
    nearest: Labels = KNeighborsClassifier(1).fit(unit[train], labels).predict(unit[held])
    return nearest


def _spectral(X: FloatArray, k: int, seed: int) -> Labels:
    """Spectral clustering on the graph that the preset would have taken."""
    tensor, _ = as_data(X).normalised("l2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # graphs may fall into parts
        graph = choose_graph(tensor, 5, "self-tuning", k, seed)[1]
        labels: Labels = spectral_clustering(graph, n_clusters=k, assign_labels="discretize", random_state=seed)
    return labels


def _figures(y_seen: Labels, seen: Labels, y_held: Labels, predicted: Labels) -> dict[str, float]:
    """Scores of both halves; "matched" names the clusters after classes of the training half."""
    clusters, classes = linear_sum_assignment(contingency_matrix(seen, y_seen), maximize=True)
    names = dict(zip(np.unique(seen)[clusters], np.unique(y_seen)[classes], strict=True))
    right = [names.get(label) == truth for label, truth in zip(predicted, y_held, strict=True)]
    return {
        "trained": 100 * clustering_accuracy(y_seen, seen),
        "acc": 100 * clustering_accuracy(y_held, predicted),
        "nmi": 100 * normalized_mutual_information(y_held, predicted),
        "matched": 100 * float(np.mean(right)),
    }


def table(methods: Mapping[str, Mapping[str, list[float]]]) -> str:
    """Means and deviations as Markdown."""
    lines = [f"| method | {' | '.join(COLUMNS.values())} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for method, figures in methods.items():
        cells = [f"{np.mean(figures[name]):.1f} ± {np.std(figures[name]):.1f}" for name in COLUMNS]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def body(scores: Mapping[str, Any]) -> str:
    """Return what the page shows of the results."""
    return "\n\n".join(f"### {name}\n\n{table(methods)}" for name, methods in scores.items())


def main() -> None:
    """Run, save, report."""
    scores = run()
    record = {
        "command": "python -m benchmarks.held_out",
        "splits": SPLITS,
        "scores": scores,
        "machine": machine(),
    }
    RESULTS.mkdir(exist_ok=True)
    with atomic_path(RESULTS / "held-out.json") as aside:
        aside.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    replace_between(DOCS / "new_samples.md", "held out", body(scores))


if __name__ == "__main__":
    main()
