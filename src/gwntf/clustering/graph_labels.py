"""Spectral clustering of a graph, initial factors from its labels, and the choice of a graph metric.

To choose the metric, the graph of each candidate is clustered, and candidates are compared by the modularity of the
labels. Modularity cannot separate metrics with close values, so the first candidate is kept unless another one is
better by a margin. The first candidate is the orientation of edges for images, and the cosine for samples with one
axis, because the order of their entries may have no meaning.
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
"""Candidate metrics for samples with two or more axes (images) and with one (rows), and the margins by which their
modularity must exceed that of the first."""

_SEEDS, _DEVIATIONS = 3, 3.0


def spectral_labels(graph: csr_array, n_clusters: int, random_state: Any) -> Labels:
    """Label the vertices by spectral clustering.

    Runs on one thread, since the rounding depends on the number of threads.
    """
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
    """Return the modularity sum_c (w_cc / w - (d_c / w)^2) of the labels."""
    total = float(graph.sum())
    if total == 0:
        return 0.0
    members = np.eye(labels.max() + 1)[labels]
    inside = float((members * (graph @ members)).sum())
    degrees = members.T @ np.asarray(graph.sum(axis=1)).ravel()
    return inside / total - float(np.square(degrees / total).sum())


def most_modular(graph: csr_array, labels: Labels, n_clusters: int, random_state: Any) -> Labels:
    """Refine the given labels and those of a spectral clustering; return those with the higher modularity."""
    found = [refine(graph, labels), refine(graph, spectral_labels(graph, n_clusters, random_state))]
    return max(found, key=lambda refined: modularity(graph, refined))


def refine(graph: csr_array, labels: Labels) -> Labels:
    """Move single samples to clusters of their neighbours while that raises the modularity.

    The gain of sample i in cluster c is w_ic - d_i d_c / w, where w_ic is the weight of its edges into c and d_c the
    sum of the degrees of the other samples in c. The last sample of a cluster is never moved, so no cluster vanishes.
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
    """Return the cluster with the largest gain for a sample; its own unless another gain is larger beyond rounding."""
    edges = slice(graph.indptr[sample], graph.indptr[sample + 1])
    near = labels[graph.indices[edges]]
    gain = np.bincount(near, graph.data[edges], len(expected)) - expected
    own = int(labels[sample])
    reached = np.unique(near)
    if not len(reached):
        return own
    best = int(reached[gain[reached].argmax()])
    return best if gain[best] > gain[own] + 1e-12 * graph.data[edges].sum() else own


def start_from_labels(
    labels: Labels, shape: tuple[int, ...], rank: int, rng: np.random.RandomState
) -> list[FloatArray]:
    """Return random initial factors whose components are assigned to the clusters in turn.

    A sample has full weight in the components of its cluster and a twentieth of it in all others, so that the updates
    can still increase these.
    """
    others = [rng.random_sample((size, rank)) + 1e-3 for size in shape[1:]]
    clusters = min(int(labels.max()) + 1, rank)
    own = (labels % clusters)[:, None] == np.arange(rank) % clusters
    weight = own * (rng.random_sample(own.shape) + 0.5) + _BACKGROUND * (rng.random_sample(own.shape) + 1e-3)
    return [weight, *others]


def choose_graph(
    tensor: DataTensor, n_neighbors: int, weight: str, n_clusters: int, random_state: Any
) -> tuple[str, csr_array, dict[str, float]]:
    """Return the chosen metric, its graph, and the modularity of every candidate.

    For sparse data and data with missing entries the cosine is the only candidate.
    """
    leads = {"cosine": 0.0}
    if tensor.complete and not tensor.sparse:
        leads = IMAGES if sum(size > 1 for size in tensor.shape[1:]) > 1 else ROWS
    graphs = {name: neighbor_graph(tensor, n_neighbors, weight=weight, metric=name) for name in leads}
    rng = check_random_state(random_state)
    seeds = [int(seed) for seed in rng.randint(np.iinfo(np.int32).max, size=_SEEDS)]
    values = {
        name: [modularity(graph, spectral_labels(graph, n_clusters, seed)) for seed in seeds]
        for name, graph in graphs.items()
    }
    means = {name: float(np.mean(found)) for name, found in values.items()}
    name = _best_metric(values, leads)
    _log.info("graph metric %s; modularity %s", name, means)
    return name, graphs[name], means


def _best_metric(values: Mapping[str, list[float]], leads: Mapping[str, float]) -> str:
    """Return the best of the first metric and those that exceed it by their margin and three standard deviations."""
    first, *others = values
    eligible = [first]
    for name in others:
        ahead = np.mean(values[name]) - np.mean(values[first])
        noise = _DEVIATIONS * float(np.hypot(np.std(values[name]), np.std(values[first])))
        if ahead > max(leads[name], noise):
            eligible.append(name)
    return max(eligible, key=lambda name: float(np.mean(values[name])))
