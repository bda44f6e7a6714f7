"""Choosing a graph metric without labels.

Each candidate's graph is cut into clusters, and the modularity of the cut says how clearly the graph falls into them.
It cannot tell metrics apart whose modularities are close, so the first candidate is kept unless another one is better
by a clear margin.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.cluster import spectral_clustering
from sklearn.utils import check_random_state

from gwntf.geometry import neighbor_graph
from gwntf.problem import NonnegativeTensor

_log = logging.getLogger(__name__)

CANDIDATES = ("cosine", "gradient", "wasserstein")

_MARGIN, _SEEDS, _DEVIATIONS = 0.02, 3, 3.0


def choose_graph(
    tensor: NonnegativeTensor, n_neighbors: int, weight: str, n_clusters: int, random_state: Any
) -> tuple[str, csr_array, dict[str, float]]:
    """Return the metric of the clearest graph, that graph, and the modularity of every candidate.

    Where entries are missing only the first candidate can be measured.
    """
    names = CANDIDATES if tensor.observed is None else CANDIDATES[:1]
    graphs = {name: neighbor_graph(tensor, n_neighbors, weight=weight, metric=name) for name in names}
    rng = check_random_state(random_state)
    seeds = [int(seed) for seed in rng.randint(np.iinfo(np.int32).max, size=_SEEDS)]
    values = {name: [_cut(graph, n_clusters, seed) for seed in seeds] for name, graph in graphs.items()}
    clarity = {name: float(np.mean(found)) for name, found in values.items()}
    name = _clear_winner(values)
    _log.info("graph metric %s; modularity %s", name, clarity)
    return name, graphs[name], clarity


def modularity(graph: csr_array, labels: NDArray[np.int_]) -> float:
    """sum_c (w_cc / w - (d_c / w)^2): weight inside the clusters beyond what their degrees alone would give."""
    total = float(graph.sum())
    if total == 0:
        return 0.0
    members = np.eye(labels.max() + 1)[labels]
    inside = float((members * (graph @ members)).sum())
    degrees = members.T @ np.asarray(graph.sum(axis=1)).ravel()
    return inside / total - float(np.square(degrees / total).sum())


def _cut(graph: csr_array, n_clusters: int, seed: int) -> float:
    """Modularity of the spectral clustering of a graph."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        labels = spectral_clustering(
            graph, n_clusters=n_clusters, assign_labels="discretize", random_state=seed
        )
    return modularity(graph, labels)


def _clear_winner(values: Mapping[str, list[float]]) -> str:
    """Return the first name, or the one that is best and beats the first by the margin and by three deviations."""
    first, *others = values
    best = max(others, key=lambda name: np.mean(values[name]), default=first)
    lead = np.mean(values[best]) - np.mean(values[first])
    noise = _DEVIATIONS * float(np.hypot(np.std(values[best]), np.std(values[first])))
    return best if lead > max(_MARGIN, noise) else first
