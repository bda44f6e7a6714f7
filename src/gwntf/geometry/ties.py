"""Ties of new samples to the samples of a fit, by the rule of the graph among those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gwntf.core import Array, FloatArray, InputError
from gwntf.backends import Backend
from gwntf.geometry.edge_weights import GRAPH_WEIGHTS, SCALE_NEIGHBOR, Ends, edge_weights, observed_rows
from gwntf.geometry.features import GRAPH_METRICS, GraphMetric, check_complete, graph_features
from gwntf.geometry.graph import nearest_samples
from gwntf.geometry.neighbors import nearest_of
from gwntf.geometry.pairwise import NOISE, pairwise_distances, row_length
from gwntf.data import NonnegativeTensor

_BLOCK_ENTRIES = 2**24


@dataclass(frozen=True)
class SampleTies:
    """Ties on the backend: (mu/2) sum_j v_j |a - a_j|^2 = (mu/2) (d |a - s/d|^2 + rest) for every new sample.

    Attributes
    ----------
    weight : float
        mu.
    pull : (n, R) array
        s = sum_j v_j a_j, over the rows a_j of the training samples.
    degree : (n, 1) array
        d = sum_j v_j.
    centre, rest : (n, R) and (n,) arrays in float64
        s / d, and sum_j v_j |a_j|^2 - |s|^2 / d, which no step changes.
    """

    weight: float
    pull: Array
    degree: Array
    centre: Array
    rest: Array


@dataclass(frozen=True)
class Ties:
    """New samples tied to training samples, whose embedding stays.

    Attributes
    ----------
    matrix : csr_array of shape (n_new, n_training)
        v.
    embedding : (n_training, R) array
        Rows a_j.
    weight : float
        mu.
    """

    matrix: csr_array
    embedding: Array
    weight: float

    def place(self, backend: Backend, dtype: Any, samples: slice) -> SampleTies:
        """Find what some of the new samples need, on the backend."""
        xp, part = backend.xp, self.matrix[samples]
        matrix, rows = backend.sparse(part, np.float64), backend.asarray(self.embedding, np.float64)
        pull, degree = matrix @ rows, backend.asarray(part.sum(axis=1).reshape(-1, 1), np.float64)
        centre = pull / xp.where(degree > 0, degree, xp.ones_like(degree))
        rest = matrix @ xp.sum(rows * rows, axis=1)[:, None] - xp.sum(pull * centre, axis=1)[:, None]
        return SampleTies(
            self.weight,
            backend.asarray(pull, dtype),
            backend.asarray(degree, dtype),
            centre,
            xp.clip(rest[:, 0], 0, None),
        )


class TrainingSamples:
    """The samples of a fit, to which new ones are tied: kept as they are and as the metric sees them.

    Parameters are those of `neighbor_graph`. A callable metric sees the training samples here and new samples by
    themselves later, so it must take every sample alone.
    """

    def __init__(
        self, tensor: NonnegativeTensor, n_neighbors: int, *, weight: str, metric: GraphMetric
    ) -> None:
        size = len(tensor.values)
        self._weight, self._metric, self._count = weight, metric, min(n_neighbors, size)
        self._features = None if tensor.observed is not None else graph_features(tensor, metric)
        scale: FloatArray = np.zeros(size)
        if weight == "self-tuning" and size > 1:
            scale = nearest_samples(tensor, min(SCALE_NEIGHBOR, size - 1), metric)[0][:, -1]
        self._tensor, self._ends = tensor, Ends(tensor, scale)

    @property
    def parts(self) -> dict[str, Any]:
        """What there is to keep, for a file."""
        return {
            "values": self._tensor.values,
            "observed": self._tensor.observed,
            "count": self._count,
            "weight": self._weight,
            "metric": self._metric,
            "features": self._features,
            "scale": self._ends.scale,
        }

    @classmethod
    def from_parts(
        cls,
        values: FloatArray,
        observed: NDArray[np.bool_] | None,
        count: int,
        weight: str,
        metric: str,
        features: tuple[FloatArray, str] | None,
        scale: FloatArray,
    ) -> TrainingSamples:
        """Build what had these parts; raise ValueError where they do not fit each other."""
        size = len(values)
        fits = [
            values.ndim > 1 and 0 < count <= size and scale.shape == (size,),
            observed is None or observed.shape == values.shape,
            weight in GRAPH_WEIGHTS and metric in GRAPH_METRICS,
            (features is None) == (observed is not None),
            features is None or (features[0].ndim == 2 and len(features[0]) == size),
            features is None or features[1] in ("euclidean", "manhattan"),
        ]
        if not all(fits):
            raise ValueError("training samples that do not fit each other")
        found = cls.__new__(cls)
        tensor = NonnegativeTensor(values, observed)
        found._weight, found._metric, found._count = weight, metric, count
        found._features, found._tensor, found._ends = features, tensor, Ends(tensor, scale)
        return found

    def ties(self, new: NonnegativeTensor) -> csr_array:
        """Weights between new samples (rows) and training samples (columns), zero beyond the nearest few."""
        check_complete(new, self._metric)
        size = len(self._ends.scale)
        scale = min(SCALE_NEIGHBOR, size)
        distance, index = self._nearest(new, max(self._count, scale))
        near, neighbor = distance[:, : self._count], index[:, : self._count]
        ends = Ends(new, distance[:, scale - 1])
        values = edge_weights(self._weight, near, neighbor, ends, self._ends)
        row = np.repeat(np.arange(len(values)), self._count)
        return csr_array((values.ravel(), (row, neighbor.ravel())), shape=(len(values), size))

    def _nearest(self, new: NonnegativeTensor, count: int) -> tuple[FloatArray, NDArray[np.intp]]:
        """Distances and indices of the nearest training samples, in order."""
        if self._features is None or new.observed is not None:
            return _nearest_shared(self._tensor, new, count, str(self._metric))
        features, compared = self._features
        rows = graph_features(new, self._metric)[0]
        if callable(self._metric) and rows.shape[1] != features.shape[1]:
            allowed = f"{features.shape[1]} numbers for every sample, as for those of the fit"
            raise InputError("graph_metric", f"a function that returned shape {rows.shape}", allowed)
        width = max(
            features.shape[1], rows.shape[1]
        )  # rows of zeros may have brought a coordinate of their own
        distance, index = nearest_of(_widened(rows, width), _widened(features, width), count, compared)
        return np.where(distance < NOISE * row_length(features), 0, distance), index


def _nearest_shared(
    training: NonnegativeTensor, new: NonnegativeTensor, count: int, metric: str
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Neighbours on the entries that both samples have, a block of new samples at a time."""
    (rows, seen), (others, others_seen) = observed_rows(training), observed_rows(new)
    step = max(1, _BLOCK_ENTRIES // len(rows))
    distances, indices = [], []
    for start in range(0, len(others), step):
        block = slice(start, start + step)
        both = np.concatenate([rows, others[block]])
        masks = np.concatenate([seen, others_seen[block]])
        distance = pairwise_distances(both, masks, metric, slice(len(rows), None))[:, : len(rows)]
        if metric == "cosine":
            distance = np.sqrt(2 * distance)
        order = np.argsort(distance, axis=1, kind="stable")[:, :count]
        distances.append(np.take_along_axis(distance, order, axis=1))
        indices.append(order)
    length = 1.0 if metric == "cosine" else row_length(rows)
    near = np.concatenate(distances)
    return np.where(near < NOISE * length, 0, near), np.concatenate(indices)


def _widened(rows: FloatArray, width: int) -> FloatArray:
    missing = width - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, missing))) if missing else rows
