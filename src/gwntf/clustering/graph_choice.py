"""Choosing a graph metric without labels.

Each candidate's graph is cut into clusters, and the modularity of the cut says how clearly the graph falls into them.
It cannot tell metrics apart whose modularities are close, so the first candidate is kept unless another one is better
by a clear margin. For images the first is the orientation of their edges; for samples with one axis it is the cosine,
because the order of their entries may mean nothing.
"""

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from gwntf.clustering.graph_cut import cut, modularity
from gwntf.data import DataTensor
from gwntf.geometry import neighbor_graph

_log = logging.getLogger(__name__)

IMAGES = {"orientation": 0.0, "orientation-coarse": 0.005, "orientation-fine": 0.005, "cosine": 0.02}
ROWS = {"cosine": 0.0, "gradient": 0.02, "wasserstein": 0.02}
"""Candidates for samples with two axes or more, and with one: by how much each has to lead the first."""

_SEEDS, _DEVIATIONS = 3, 3.0


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
