"""Edges from new samples to the training samples ("ties"), by the parameters of the training graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gwntf.backends import Backend
from gwntf.core import Array, FloatArray, InputError
from gwntf.data import DataTensor, stacked_alike
from gwntf.geometry.features import block_features, check_metric, sample_features
from gwntf.geometry.graph import SCALE_NEIGHBOR, nearest_samples, observed_rows, weighted_edges
from gwntf.geometry.knn import KNNGraph
from gwntf.geometry.neighbors import NOISE, nearest_of, nearest_shared, row_length


@dataclass(frozen=True)
class SampleTies:
    """Ties on a backend: (mu/2) sum_j v_j |a - a_j|^2 = (mu/2) (d |a - s/d|^2 + rest) for every new sample."""

    weight: float  # mu
    neighbor_sum: Array  # (n, R) array: s = sum_j v_j a_j, over the rows a_j of the training samples
    degree: Array  # (n, 1) array: d = sum_j v_j
    centre: Array  # (n, R) array in float64: s / d
    rest: Array  # (n,) array in float64: sum_j v_j |a_j|^2 - |s|^2 / d, constant

    def take(self, samples: Array) -> SampleTies:
        """Return the ties of some of the new samples."""
        arrays = (self.neighbor_sum, self.degree, self.centre, self.rest)
        return SampleTies(self.weight, *(array[samples] for array in arrays))


@dataclass(frozen=True)
class Ties:
    """Edges from new samples to training samples, whose embedding is fixed."""

    matrix: csr_array  # (n_new, n_training): v
    embedding: Array  # (n_training, R): rows a_j
    weight: float  # mu

    def of(self, samples: slice) -> Ties:
        """Return the ties of a slice of the new samples."""
        return Ties(self.matrix[samples], self.embedding, self.weight)

    def on(self, backend: Backend, dtype: Any) -> SampleTies:
        """Return the arrays for the update of the new samples, on a backend."""
        xp, part = backend.xp, self.matrix
        matrix, rows = backend.sparse(part, np.float64), backend.asarray(self.embedding, np.float64)
        neighbor_sum, degree = matrix @ rows, backend.asarray(part.sum(axis=1).reshape(-1, 1), np.float64)
        centre = neighbor_sum / xp.where(degree > 0, degree, xp.ones_like(degree))
        rest = matrix @ xp.sum(rows * rows, axis=1)[:, None] - xp.sum(neighbor_sum * centre, axis=1)[:, None]
        neighbor_sum, degree = backend.asarray(neighbor_sum, dtype), backend.asarray(degree, dtype)
        return SampleTies(self.weight, neighbor_sum, degree, centre, xp.clip(rest[:, 0], 0, None))


@dataclass(frozen=True)
class TrainingSamples:
    """The samples of a fit and the parameters of its graph, which extend the graph to new samples.

    A callable metric is called with the training samples and with new samples, so it must treat every sample
    independently.
    """

    tensor: DataTensor  # the samples, in memory
    rule: KNNGraph  # with a metric other than "auto"

    @cached_property
    def _features(self) -> tuple[FloatArray, str]:
        """Features of the training samples, and the distance between them, as in `sample_features`."""
        return sample_features(self.tensor, self.rule.metric)

    @cached_property
    def _scale(self) -> FloatArray:
        """Distance of every sample to its 7th neighbour, its scale for the weight "self-tuning"."""
        size = len(self.tensor)
        if self.rule.weight != "self-tuning" or size == 1:
            return np.zeros(size)
        return nearest_samples(self.tensor, min(SCALE_NEIGHBOR, size - 1), self.rule.metric)[0][:, -1]

    @property
    def parts(self) -> dict[str, Any]:
        """Arguments of `from_parts`, for a model file."""
        return {**self.tensor.parts, "rule": self.rule}

    @classmethod
    def from_parts(cls, rule: KNNGraph, **samples: Any) -> TrainingSamples:
        """Build the object from its `parts`; raise ValueError if they are inconsistent."""
        if not isinstance(rule, KNNGraph):
            raise ValueError("training samples without a KNNGraph")
        return cls(DataTensor.from_parts(**samples), rule)

    def ties(self, new: DataTensor) -> csr_array:
        """Return the edge weights between new samples (rows) and their nearest training samples (columns)."""
        check_metric(new, self.rule.metric)
        size = len(self.tensor)
        count = min(self.rule.n_neighbors, size)
        distance, index = self._nearest(new, max(count, min(SCALE_NEIGHBOR, size)))
        return weighted_edges(self.rule.weight, distance, index, count, new, self.tensor, self._scale)

    def _nearest(self, new: DataTensor, count: int) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return distances and indices of the nearest training samples, nearest first."""
        if not new.complete or not self.tensor.complete:
            if new.dense_block is None:
                given = f"{'sparse' if new.sparse else 'chunked'} data after a fit with missing entries"
                raise InputError("X", given, "a dense array")
            return nearest_shared(observed_rows(new), observed_rows(self.tensor), count, str(self.rule.metric))
        if new.sparse or self.tensor.sparse:
            features = partial(block_features, metric=str(self.rule.metric), several=True)
            rows, others = stacked_alike(new, self.tensor, features)
            compared = "euclidean"
        else:
            rows, others, compared = self._dense_rows(new)
        distance, index = nearest_of(rows, others, count, compared)
        return np.where(distance < NOISE * row_length(others), 0, distance), index

    def _dense_rows(self, new: DataTensor) -> tuple[FloatArray, FloatArray, str]:
        """Return the features of new and of training samples, and the distance between them."""
        others, compared = self._features
        rows = sample_features(new, self.rule.metric)[0]
        if callable(self.rule.metric) and rows.shape[1] != others.shape[1]:
            allowed = f"{others.shape[1]} numbers per sample, as in the fit"
            raise InputError("metric", f"a function that returned shape {rows.shape}", allowed)
        width = max(others.shape[1], rows.shape[1])  # `directions` may have added a coordinate
        return _widened(rows, width), _widened(others, width), compared


def _widened(rows: FloatArray, width: int) -> FloatArray:
    missing = width - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, missing))) if missing else rows
