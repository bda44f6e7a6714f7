"""Ties of new samples to the samples of a fit, by the rule of the graph among those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gwntf.backends import Backend
from gwntf.core import Array, FloatArray, InputError
from gwntf.data import DataTensor
from gwntf.geometry.edge_weights import GRAPH_WEIGHTS, SCALE_NEIGHBOR, Ends, edge_weights, observed_rows
from gwntf.geometry.features import GRAPH_METRICS, GraphMetric, check_metric, sample_features
from gwntf.geometry.graph import nearest_samples
from gwntf.geometry.neighbors import nearest_of, nearest_shared
from gwntf.geometry.pairwise import NOISE, row_length


@dataclass(frozen=True)
class SampleTies:
    """Ties on the backend: (mu/2) sum_j v_j |a - a_j|^2 = (mu/2) (d |a - s/d|^2 + rest) for every new sample."""

    weight: float  # mu
    pull: Array  # (n, R) array: s = sum_j v_j a_j, over the rows a_j of the training samples
    degree: Array  # (n, 1) array: d = sum_j v_j
    # centre, rest: (n, R) and (n,) array in float64: s / d, and sum_j v_j |a_j|^2 - |s|^2 / d, which no step changes
    centre: Array
    rest: Array


@dataclass(frozen=True)
class Ties:
    """New samples tied to training samples, whose embedding stays."""

    matrix: csr_array  # csr_array of shape (n_new, n_training): v
    embedding: Array  # (n_training, R) array: Rows a_j
    weight: float  # mu

    def of(self, samples: slice) -> Ties:
        """Return the ties of some of the new samples."""
        return Ties(self.matrix[samples], self.embedding, self.weight)

    def place(self, backend: Backend, dtype: Any) -> SampleTies:
        """Find what the new samples need, on the backend."""
        xp, part = backend.xp, self.matrix
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


@dataclass(frozen=True)
class TrainingSamples:
    """The samples of a fit, to which new ones are tied: kept as they are and as the metric sees them.

    A callable metric sees the training samples here and new samples by themselves later, so it must take every sample
    alone.
    """

    tensor: DataTensor  # The samples, dense and in memory
    count: int  # How many of them a new sample is tied to
    # weight, metric: see `neighbor_graph`
    weight: str
    metric: GraphMetric
    # Rows that the metric sees, and how they are compared; None where entries are missing
    features: tuple[FloatArray, str] | None
    scale: FloatArray  # (n,) array: Scale of every sample, for weight "self-tuning"

    @classmethod
    def of(cls, tensor: DataTensor, n_neighbors: int, *, weight: str, metric: GraphMetric) -> TrainingSamples:
        """Keep the samples of a fit; parameters are those of `neighbor_graph`."""
        size = len(tensor)
        scale: FloatArray = np.zeros(size)
        if weight == "self-tuning" and size > 1:
            scale = nearest_samples(tensor, min(SCALE_NEIGHBOR, size - 1), metric)[0][:, -1]
        features = sample_features(tensor, metric) if tensor.complete else None
        return cls(tensor, min(n_neighbors, size), weight, metric, features, scale)

    @property
    def parts(self) -> dict[str, Any]:
        """What there is to keep, for a file."""
        block = self.tensor.dense_block
        if block is None:
            raise RuntimeError("training samples that are not in memory")
        return {
            "values": block.values,
            "observed": block.observed,
            **{name: getattr(self, name) for name in ("count", "weight", "metric", "features", "scale")},
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
        return cls(DataTensor.of_array(values, observed), count, weight, metric, features, scale)

    def ties(self, new: DataTensor) -> csr_array:
        """Weights between new samples (rows) and training samples (columns), zero beyond the nearest few."""
        check_metric(new, self.metric)
        size = len(self.scale)
        scale = min(SCALE_NEIGHBOR, size)
        distance, index = self._nearest(new, max(self.count, scale))
        near, neighbor = distance[:, : self.count], index[:, : self.count]
        ends = Ends(new, distance[:, scale - 1])
        values = edge_weights(self.weight, near, neighbor, ends, Ends(self.tensor, self.scale))
        row = np.repeat(np.arange(len(values)), self.count)
        return csr_array((values.ravel(), (row, neighbor.ravel())), shape=(len(values), size))

    def _nearest(self, new: DataTensor, count: int) -> tuple[FloatArray, NDArray[np.intp]]:
        """Distances and indices of the nearest training samples, in order."""
        if self.features is None or not new.complete:
            return nearest_shared(observed_rows(new), observed_rows(self.tensor), count, str(self.metric))
        features, compared = self.features
        rows = sample_features(new, self.metric)[0]
        if callable(self.metric) and rows.shape[1] != features.shape[1]:
            allowed = f"{features.shape[1]} numbers for every sample, as for those of the fit"
            raise InputError("graph_metric", f"a function that returned shape {rows.shape}", allowed)
        width = max(features.shape[1], rows.shape[1])  # rows of zeros may have brought a coordinate of their own
        distance, index = nearest_of(_widened(rows, width), _widened(features, width), count, compared)
        return np.where(distance < NOISE * row_length(features), 0, distance), index


def _widened(rows: FloatArray, width: int) -> FloatArray:
    missing = width - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, missing))) if missing else rows
