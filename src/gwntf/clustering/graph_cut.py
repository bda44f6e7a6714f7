"""Cutting a graph into clusters, initial factors from a cut, and choosing a graph metric without labels.

For the choice each candidate's graph is cut into clusters; the modularity of the cut measures how clearly the graph
falls into them. It cannot separate metrics whose modularities are close, so the first candidate is kept unless another
one is better by a clear margin. For images the first is the orientation of their edges; for samples with one axis it is
the cosine, because the order of their entries may mean nothing.
"""

import logging
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.cluster import spectral_clustering
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from gwntf.core import FloatArray
from gwntf.data import DataTensor
from gwntf.geometry import neighbor_graph

_log = logging.getLogger(__name__)

Labels = NDArray[np.int_]

_BACKGROUND = 0.05
_SWEEPS = 100

IMAGES = {"orientation": 0.0, "orientation-coarse": 0.005, "orientation-fine": 0.005, "cosine": 0.02}
ROWS = {"cosine": 0.0, "gradient": 0.02, "wasserstein": 0.02}
"""Candidates for samples with two axes or more, and with one: by how much each has to lead the first."""

_SEEDS, _DEVIATIONS = 3, 3.0


def cut(graph: csr_array, n_clusters: int, random_state: Any) -> Labels:
    """Label the vertices by spectral clustering, on one thread: several would round otherwise."""
    size = graph.shape[0]
    if n_clusters >= size:
        return np.arange(size)
    if n_clusters < 2 or graph.nnz == 0:
        return np.zeros(size, dtype=np.int_)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", UserWarning)
        labels = spectral_clustering(
            graph, n_clusters=n_clusters, assign_labels="discretize", random_state=random_state
        )
    return np.asarray(labels, dtype=np.int_)


def modularity(graph: csr_array, labels: Labels) -> float:
    """sum_c (w_cc / w - (d_c / w)^2): weight inside the clusters beyond what their degrees alone would give."""
    total = float(graph.sum())
    if total == 0:
        return 0.0
    members = np.eye(labels.max() + 1)[labels]
    inside = float((members * (graph @ members)).sum())
    degrees = members.T @ np.asarray(graph.sum(axis=1)).ravel()
    return inside / total - float(np.square(degrees / total).sum())


def clearest(graph: csr_array, labels: Labels, n_clusters: int, random_state: Any) -> Labels:
    """Refine given labels and those of the graph's own cut, and return the more modular ones."""
    found = [refine(graph, labels), refine(graph, cut(graph, n_clusters, random_state))]
    return max(found, key=lambda refined: modularity(graph, refined))


def refine(graph: csr_array, labels: Labels) -> Labels:
    """Move single samples to clusters of their neighbours for as long as that raises the modularity.

    A move of sample i to cluster c is worth w_ic - d_i d_c / w, where w_ic is the weight of its edges into c and d_c
    the degrees of the others in c. The last sample of a cluster stays, so no cluster is lost.
    """
    labels = labels.copy()
    degree = np.asarray(graph.sum(axis=1)).ravel()
    total = float(degree.sum())
    inside = np.bincount(labels, degree)
    sizes = np.bincount(labels)
    for _ in range(_SWEEPS):
        moved = False
        for sample in range(len(labels)):
            own = int(labels[sample])
            if sizes[own] == 1:
                continue
            inside[own] -= degree[sample]
            best = _best_cluster(graph, labels, sample, degree[sample] * inside / max(total, 1e-300))
            inside[best] += degree[sample]
            if best != own:
                labels[sample], moved = best, True
                sizes[own] -= 1
                sizes[best] += 1
        if not moved:
            break
    return labels


def _best_cluster(graph: csr_array, labels: Labels, sample: int, expected: FloatArray) -> int:
    """Return the cluster worth most to a sample: its own unless another is worth clearly more."""
    edges = slice(graph.indptr[sample], graph.indptr[sample + 1])
    near = labels[graph.indices[edges]]
    worth = np.bincount(near, graph.data[edges], len(expected)) - expected
    own = int(labels[sample])
    reached = np.unique(near)
    if not len(reached):
        return own
    best = int(reached[worth[reached].argmax()])
    return best if worth[best] > worth[own] + 1e-12 * graph.data[edges].sum() else own


def start_from_cut(labels: Labels, shape: tuple[int, ...], rank: int, rng: np.random.RandomState) -> list[FloatArray]:
    """Random factors whose components are assigned to the clusters in turn.

    A sample has full weight in the components of its cluster and a twentieth of it in all others, which the
    data may raise again.
    """
    others = [rng.random_sample((size, rank)) + 1e-3 for size in shape[1:]]
    clusters = min(int(labels.max()) + 1, rank)
    own = (labels % clusters)[:, None] == np.arange(rank) % clusters
    weight = own * (rng.random_sample(own.shape) + 0.5) + _BACKGROUND * (rng.random_sample(own.shape) + 1e-3)
    return [weight, *others]


def choose_graph(
    tensor: DataTensor, n_neighbors: int, weight: str, n_clusters: int, random_state: Any
) -> tuple[str, csr_array, dict[str, float]]:
    """Return the metric of the clearest graph, that graph, and the modularity of every candidate.

    Where entries are missing, or the data are sparse, only the cosine can be measured.
    """
    leads = {"cosine": 0.0}
    if tensor.complete and not tensor.sparse:
        leads = IMAGES if sum(size > 1 for size in tensor.shape[1:]) > 1 else ROWS
    graphs = {name: neighbor_graph(tensor, n_neighbors, weight=weight, metric=name) for name in leads}
    rng = check_random_state(random_state)
    seeds = [int(seed) for seed in rng.randint(np.iinfo(np.int32).max, size=_SEEDS)]
    values = {
        name: [modularity(graph, cut(graph, n_clusters, seed)) for seed in seeds] for name, graph in graphs.items()
    }
    clarity = {name: float(np.mean(found)) for name, found in values.items()}
    name = _clear_winner(values, leads)
    _log.info("graph metric %s; modularity %s", name, clarity)
    return name, graphs[name], clarity


def _clear_winner(values: Mapping[str, list[float]], leads: Mapping[str, float]) -> str:
    """Return the best of the first name and those that beat it by their lead and by three deviations."""
    first, *others = values
    clear = [first]
    for name in others:
        ahead = np.mean(values[name]) - np.mean(values[first])
        noise = _DEVIATIONS * float(np.hypot(np.std(values[name]), np.std(values[first])))
        if ahead > max(leads[name], noise):
            clear.append(name)
    return max(clear, key=lambda name: float(np.mean(values[name])))
