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
from gwntf.geometry.features import GRAPH_METRICS, GraphMetric, check_metric, sample_features
from gwntf.geometry.graph import GRAPH_WEIGHTS, SCALE_NEIGHBOR, nearest_samples, observed_rows, weighted_edges
from gwntf.geometry.neighbors import NOISE, nearest_of, nearest_shared, row_length


@dataclass(frozen=True)
class SampleTies:
    """Ties on the backend: (mu/2) sum_j v_j |a - a_j|^2 = (mu/2) (d |a - s/d|^2 + rest) for every new sample."""

    weight: float  # mu
    pull: Array  # (n, R) array: s = sum_j v_j a_j, over the rows a_j of the training samples
    degree: Array  # (n, 1) array: d = sum_j v_j
    centre: Array  # (n, R) array in float64: s / d
    rest: Array  # (n,) array in float64: sum_j v_j |a_j|^2 - |s|^2 / d, which no step changes


@dataclass(frozen=True)
class Ties:
    """New samples tied to training samples, whose embedding stays."""

    matrix: csr_array  # (n_new, n_training): v
    embedding: Array  # (n_training, R): rows a_j
    weight: float  # mu

    def of(self, samples: slice) -> Ties:
        """Return the ties of some of the new samples."""
        return Ties(self.matrix[samples], self.embedding, self.weight)

    def place(self, backend: Backend, dtype: Any) -> SampleTies:
        """Compute what the step of the new samples uses, on the backend."""
        xp, part = backend.xp, self.matrix
        matrix, rows = backend.sparse(part, np.float64), backend.asarray(self.embedding, np.float64)
        pull, degree = matrix @ rows, backend.asarray(part.sum(axis=1).reshape(-1, 1), np.float64)
        centre = pull / xp.where(degree > 0, degree, xp.ones_like(degree))
        rest = matrix @ xp.sum(rows * rows, axis=1)[:, None] - xp.sum(pull * centre, axis=1)[:, None]
        pull, degree = backend.asarray(pull, dtype), backend.asarray(degree, dtype)
        return SampleTies(self.weight, pull, degree, centre, xp.clip(rest[:, 0], 0, None))


@dataclass(frozen=True)
class TrainingSamples:
    """The samples of a fit, to which new ones are tied, and their features under the graph metric.

    A callable metric is called with the training samples here and with new samples later, so it must treat every sample
    independently.
    """

    tensor: DataTensor  # the samples, dense and in memory
    count: int  # how many of them a new sample is tied to
    weight: str  # this and the next as in `neighbor_graph`
    metric: GraphMetric
    features: tuple[FloatArray, str] | None  # see `sample_features`; None where entries are missing
    scale: FloatArray  # (n,) array: scale of every sample, for weight "self-tuning"

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
        """The arguments of `from_parts`, for a file."""
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
        """Build an object from its `parts`; raise ValueError where they are inconsistent."""
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
        nearest = self._nearest(new, max(self.count, min(SCALE_NEIGHBOR, len(self.scale))))
        return weighted_edges(self.weight, *nearest, self.count, new, self.tensor, self.scale)

    def _nearest(self, new: DataTensor, count: int) -> tuple[FloatArray, NDArray[np.intp]]:
        """Distances and indices of the nearest training samples, in order."""
        if self.features is None or not new.complete:
            return nearest_shared(observed_rows(new), observed_rows(self.tensor), count, str(self.metric))
        features, compared = self.features
        rows = sample_features(new, self.metric)[0]
        if callable(self.metric) and rows.shape[1] != features.shape[1]:
            allowed = f"{features.shape[1]} numbers for every sample, as for those of the fit"
            raise InputError("graph_metric", f"a function that returned shape {rows.shape}", allowed)
        width = max(features.shape[1], rows.shape[1])  # rows of zeros may have added a coordinate
        distance, index = nearest_of(_widened(rows, width), _widened(features, width), count, compared)
        return np.where(distance < NOISE * row_length(features), 0, distance), index


def _widened(rows: FloatArray, width: int) -> FloatArray:
    missing = width - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, missing))) if missing else rows
