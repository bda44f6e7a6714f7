"""The kernel of a near-far cost: a far field between clusters and a sparse excess at near pairs."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from gwntf.backends import Backend, NearFarForm
from gwntf.core import Array, FloatArray
from gwntf.geometry.near_far import NearFarCost
from gwntf.geometry.number_types import Retyped, lifting_shift, log_sum_exp, split_shift

_FLOOR = 1e-4
"""Least part of the far field that is left of a near pair: what is taken away must not cancel to nothing."""

_STEP = 4
_BLOCK_ENTRIES = 2**22


class NearFarKernel(Retyped):
    """K = exp(-lam C - 1) for a `NearFarCost`, symmetric and positive everywhere.

    With E = exp(-lam H - (1 - s)/2) the far field is E[i, d] E[j, c]. It is applied to all pairs, near ones included,
    where the sparse part adds what the exact kernel has above it.
    """

    def __init__(self, backend: Backend, cost: NearFarCost, reg: float, dtype: Any) -> None:
        self._backend, self._cost, self._reg, self._dtype = backend, cost, reg, np.dtype(dtype)
        self.size = cost.size
        self.shift, self.whole = lifting_shift(-2 * float(cost.half.max()) / reg - 1, -1.0, dtype)
        self.offsets = split_shift(self.shift, dtype)

    def _at(self, dtype: Any) -> NearFarKernel:
        return NearFarKernel(self._backend, self._cost, self._reg, dtype)

    @cached_property
    def _field(self) -> FloatArray:
        field: FloatArray = np.exp(-self._cost.half.astype(np.float64) / self._reg - 0.5 + self.shift / 2)
        return field

    @cached_property
    def _excess(self) -> csr_array:
        """Exact kernel minus far field at near pairs."""
        cost, near = self._cost, self._cost.near
        rows = np.repeat(np.arange(self.size), np.diff(near.indptr))
        far = self._field[rows, cost.cluster[near.indices]] * self._field[near.indices, cost.cluster[rows]]
        exact = np.exp(-near.data / self._reg - 1 + self.shift)
        return csr_array((np.maximum(exact, _FLOOR * far) - far, near.indices, near.indptr), near.shape)

    @cached_property
    def _form(self) -> NearFarForm:
        """Clusters and their number are filled up to multiples of four, which compiled code takes at a time."""
        cost, excess = self._cost, self._excess
        sizes = np.diff(cost.bounds)
        full = -(-sizes // _STEP) * _STEP
        clusters = -(-len(sizes) // _STEP) * _STEP
        bounds = np.zeros(clusters + 1, np.int64)
        bounds[1 : len(sizes) + 1] = np.cumsum(full)
        bounds[len(sizes) + 1 :] = bounds[len(sizes)]
        place = np.arange(self.size) + (bounds[:-1][: len(sizes)] - cost.bounds[:-1])[cost.cluster]
        order = np.full(bounds[-1], -1, np.int64)
        order[place] = cost.order
        field = np.zeros((bounds[-1], clusters))
        field[place, : len(sizes)] = self._field
        counts = np.zeros(bounds[-1], np.int64)
        counts[place] = np.diff(excess.indptr)
        return NearFarForm(
            order,
            bounds,
            self._backend.asarray(field, self._dtype),
            self._backend.asarray(field.T, self._dtype),
            np.concatenate([[0], np.cumsum(counts)]),
            place[excess.indices],
            self._backend.asarray(excess.data, self._dtype),
        )

    def form(self) -> NearFarForm:
        """Return clusters, far field and near pairs."""
        return self._form

    def line_form(self) -> None:
        """Return None: not a line."""
        return

    @cached_property
    def _placed(self) -> tuple[Array, Array, Array, Array]:
        """Far field (shelves, slots, shelves), element of each slot, slot of each element, and the near pairs.

        A cluster lies on a shelf, or on several if it has more than twice the mean size, so that all shelves have the
        same width and one product serves all of them; in an empty slot the far field is zero.
        """
        backend, cost = self._backend, self._cost
        sizes = np.diff(cost.bounds)
        width = min(int(sizes.max()), -(-2 * self.size // len(sizes)))
        counts = -(-sizes // width)
        first = np.concatenate([[0], np.cumsum(counts)])
        slot = first[:-1][cost.cluster] * width + np.arange(self.size) - cost.bounds[cost.cluster]
        shelves, cluster_of = int(first[-1]), np.repeat(np.arange(len(sizes)), counts)
        field = np.zeros((shelves * width, shelves))
        field[slot] = self._field[:, cluster_of]
        element = np.zeros(shelves * width, np.int64)
        element[slot] = cost.order
        back = np.argsort(cost.order)
        return (
            backend.asarray(field.reshape(shelves, width, shelves), self._dtype),
            backend.asarray(element),
            backend.asarray(slot[back]),
            backend.sparse(csr_array(self._excess[back][:, back]), self._dtype),
        )

    def matmul(self, v: Array, *, transposed: bool = False) -> Array:  # noqa: ARG002
        """exp(s) K V: what every cluster sends to every other, spread over its elements, and the near pairs."""
        field, element, slot, excess = self._placed
        sent = field.swapaxes(1, 2) @ v[element].reshape(*field.shape[:2], -1)
        spread = field @ sent.swapaxes(0, 1)
        return spread.reshape(-1, v.shape[1])[slot] + excess @ v

    def log_matmul(self, log_v: Array, *, transposed: bool = False) -> Array:  # noqa: ARG002
        """log(K exp(log V)), a block of rows of K at a time."""
        xp = self._backend.xp
        order = self._backend.asarray(self._cost.order)
        back = self._backend.asarray(np.argsort(self._cost.order))
        log_v = log_v[order]
        everywhere = np.arange(self.size)
        step = max(1, _BLOCK_ENTRIES // (self.size * log_v.shape[1]))
        blocks = []
        for start in range(0, self.size, step):
            rows = everywhere[start : start + step]
            log_kernel = self._log_rows(rows, everywhere)
            terms = self._backend.asarray(log_kernel, self._dtype)[:, :, None] + log_v[None]
            blocks.append(log_sum_exp(xp, terms, 1))
        return xp.concat(blocks)[back]

    def _log_rows(self, rows: Any, columns: Any) -> FloatArray:
        """Log K between places, with the floor that the plain kernel has."""
        far, costs = self._cost.far(rows, columns), self._cost.places(rows, columns)
        logs: FloatArray = np.maximum(-costs / self._reg, -far / self._reg + np.log(_FLOOR)) - 1
        return logs
