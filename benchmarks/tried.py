"""Ideas for better clusters that are not in the library: ``python -m benchmarks.tried`` writes `docs/clustering.md`.

Graphs are judged by spectral clustering, fits by the labels of their embedding, neither refined; scores are means over
`SEEDS` seeds, or as many draws.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from benchmarks.harness import RESULTS, machine
from benchmarks.pages import DOCS, replace_between
from gwntf import GWNTF, KNNGraph, TensorClustering, fit_many
from gwntf.clustering import assign
from gwntf.clustering.graph_labels import modularity, spectral_labels
from gwntf.core import FloatArray
from gwntf.data import as_data
from gwntf.datasets import load_coil20, load_digits_tensor
from gwntf.evaluation import clustering_scores
from gwntf.geometry.graph import nearest_samples
from gwntf.io import atomic_path

Labels = NDArray[np.int_]
DATASETS: Mapping[str, Callable[[], Any]] = {"COIL20": load_coil20, "digits": load_digits_tensor}
SEEDS, TOGETHER = 20, 8
STARTS = 3 * TOGETHER


def run() -> dict[str, dict[str, list[float]]]:
    """Mean scores in percent by data set and idea."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, load in DATASETS.items():
        X, y = load()
        X, k = X.astype(np.float32), int(y.max()) + 1
        for idea, labels in _ideas(X, k):
            scores = [list(clustering_scores(y, found_labels).values()) for found_labels in labels]
            found.setdefault(name, {})[idea] = [100 * float(mean) for mean in np.mean(scores, axis=0)]
            sys.stderr.write(f"{name}, {idea}: {found[name][idea]}\n")
    return found


def body(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Return the table for the page."""
    lines = [f"| | {' | '.join(scores)} |", "|---" * (len(scores) + 1) + "|"]
    for idea in next(iter(scores.values())):
        cells = ["/".join(f"{score:.1f}" for score in by_idea[idea]) for by_idea in scores.values()]
        lines.append(f"| {idea} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _ideas(X: FloatArray, k: int) -> Iterator[tuple[str, list[Labels]]]:
    graph = _graph(X, 5)
    near = graph.astype(bool).astype(float)
    graphs = {
        "the graph of the preset": graph,
        "4 neighbours": _graph(X, 4),
        "10 neighbours": _graph(X, 10),
        "10 neighbours, mutual ones only": _mutual(X, 10),
        "shared neighbours as weights (Jaccard)": _jaccard(near),
        "two steps along the graph, V + V²": csr_array(graph + graph @ graph / graph.max()),
    }
    for idea, other in graphs.items():
        yield f"{idea}, spectral clustering", [spectral_labels(other, k, seed) for seed in range(SEEDS)]
    yield from _fits(X, k, graph)


def _fits(X: FloatArray, k: int, graph: csr_array) -> Iterator[tuple[str, list[Labels]]]:
    costs = (None, *["grid"] * (X.ndim - 1))
    preset = TensorClustering(k, graph=graph, costs=costs).factorization()
    random = preset.set_params(init="random", max_iter=30)
    labels = _labels(fit_many(random, X, range(STARTS)), k)
    yield "a random start", labels[:SEEDS]
    rng = np.random.default_rng(0)
    draws = [rng.choice(STARTS, TOGETHER, replace=False) for _ in range(SEEDS)]
    yield "consensus over eight random starts", [_consensus([labels[i] for i in draw], k) for draw in draws]
    clear = [modularity(graph, found) for found in labels]
    yield (
        "the most modular of eight random starts",
        [labels[max(draw, key=lambda i: clear[i])] for draw in draws],
    )
    yield 'init="nndsvd"', _labels(fit_many(random.set_params(init="nndsvd"), X, range(SEEDS)), k)
    first = fit_many(random.set_params(init="graph", max_iter=10), X, range(SEEDS))
    yield "a start from the graph, as in the preset", _labels(first, k)
    again = []
    for seed, model in enumerate(first):
        refreshed = KNNGraph(weight="self-tuning").build(model.embedding_)
        again += fit_many(preset.set_params(init="graph", graph=refreshed), X, [seed])
    yield "the graph refreshed from that embedding", _labels(again, k)


def _labels(models: Sequence[GWNTF], k: int) -> list[Labels]:
    return [assign(model.embedding_, k, "discretize", model.random_state) for model in models]


def _consensus(labels: Sequence[Labels], k: int) -> Labels:
    """Label the samples by how often they were together: the vectors of all memberships, side by side."""
    members = np.hstack([np.eye(k)[found] / np.sqrt(np.bincount(found, minlength=k) + 1e-9) for found in labels])
    return assign(np.abs(members), k, "discretize", 0)


def _graph(X: FloatArray, neighbors: int) -> csr_array:
    return KNNGraph(neighbors, metric="orientation", weight="self-tuning").build(X)


def _mutual(X: FloatArray, neighbors: int) -> csr_array:
    """Keep edges between samples of which each is among the neighbours of the other."""
    tensor, _ = as_data(X).normalised("l2")
    nearest = nearest_samples(tensor, neighbors, "orientation")[1]
    listed = np.zeros((len(X), len(X)), dtype=bool)
    np.put_along_axis(listed, nearest, values=True, axis=1)
    return csr_array(_graph(X, neighbors).multiply(listed & listed.T))


def _jaccard(near: csr_array) -> csr_array:
    """Weight every edge by the part of the neighbours that its ends share."""
    closed = csr_array(near + diags_array(np.ones(near.shape[0])))
    shared = csr_array((closed @ closed).multiply(near))
    counts = np.asarray(closed.sum(axis=1)).ravel()
    rows = np.repeat(np.arange(near.shape[0]), np.diff(shared.indptr))
    union = counts[rows] + counts[shared.indices] - shared.data
    return csr_array((shared.data / union, shared.indices, shared.indptr), shape=near.shape)


def main() -> None:
    """Run, save, and write the page."""
    scores = run()
    record = {"command": "python -m benchmarks.tried", "seeds": SEEDS, "machine": machine(), "scores": scores}
    with atomic_path(RESULTS / "tried.json") as aside:
        aside.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    replace_between(DOCS / "clustering.md", "tried", body(scores))


if __name__ == "__main__":
    main()
