"""Transport kernels K = exp(-lam*C - 1) as linear maps.

The scaling loop uses only the products K V and K' U, in ordinary or logarithmic arithmetic, so a kernel may be dense, a
Kronecker product, a recursion or a sum of a sparse and a low-rank part.

Where the data are zero and the model is not, V is very large far from the data and U very small. Unscaled, they would
overflow float32 at one end of its range and leave the other end unused. Kernel, U and V are therefore multiplied by
powers of e (`lifting_shift`, `split_shift`) that bring them into the range of the number type.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from gwntf.backends import Backend, DenseForm, KernelForm, LineForm, NearFarForm
from gwntf.core import Array, FloatArray
from gwntf.geometry.near_far import NearFarCost

_FLOOR = 1e-4
"""Smallest fraction of the far field that remains at a near pair, so that the correction never cancels it entirely."""

_STEP = 4
_BLOCK_ENTRIES = 2**22


class Kernel(ABC):
    """A nonnegative linear map between the data side (rows) and the model side (columns) of a mode."""

    _form: Any = None  # the result of `form`, a cached property of the subclasses with a compiled product

    def __init__(self, size: int, shift: float, all_normal: bool, dtype: Any) -> None:
        self.size = size  # length of the fibers
        # s: `matmul` and `form` use exp(s) K, whose smallest entry is a normal number; `log_matmul` uses K itself
        self.shift = shift
        self.offsets = split_shift(shift, dtype)  # (a, b), a + b = s: the scaling loop stores exp(-a) U and exp(-b) V
        self.all_normal = all_normal  # whether s is large enough for all entries of the kernel to be normal numbers
        self._dtype = np.dtype(dtype)

    def astype(self, dtype: Any) -> Self:
        """Return the same kernel in another precision (a NumPy dtype)."""
        if np.dtype(dtype) == self._dtype:
            return self
        return self._wide if np.dtype(dtype) == np.float64 else self._at(dtype)

    @cached_property
    def _wide(self) -> Self:
        """The kernel in float64, the fallback for columns that lost their accuracy."""
        return self._at(np.float64)

    @abstractmethod
    def _at(self, dtype: Any) -> Self:
        """Build the same kernel in another precision."""

    def form(self) -> KernelForm | None:
        """Return the kernel as arrays for compiled code, or None if there is no compiled product."""
        form: KernelForm | None = self._form
        return form

    def line_form(self) -> LineForm | None:
        """Return the kernel for logarithmic arithmetic if its cost is the distance of points on a line, else None."""
        return None

    @abstractmethod
    def matmul(self, v: Array, *, transposed: bool = False) -> Array:
        """Return exp(s) K V, or exp(s) K' V, for a matrix V of columns."""

    @abstractmethod
    def log_matmul(self, log_v: Array, *, transposed: bool = False) -> Array:
        """Return log(K exp(log V)), or the same with K', in logarithmic arithmetic."""


class DenseKernel(Kernel):
    """K = exp(log_kernel) stored as a matrix.

    `log_kernel` is -lam*C - 1 in float64; products are computed in `dtype`.
    """

    def __init__(self, backend: Backend, log_kernel: FloatArray, dtype: Any) -> None:
        self._backend, self._log_kernel = backend, log_kernel
        shift, all_normal = lifting_shift(float(log_kernel.min()), float(log_kernel.max()), dtype)
        super().__init__(len(log_kernel), shift, all_normal, dtype)

    def _at(self, dtype: Any) -> DenseKernel:
        return DenseKernel(self._backend, self._log_kernel, dtype)

    @cached_property
    def _matrix(self) -> Array:
        with self._backend.quiet():
            return self._backend.asarray(np.exp(self._log_kernel + self.shift), self._dtype)

    @cached_property
    def _log_matrix(self) -> Array:
        return self._backend.asarray(self._log_kernel, self._dtype)

    def dense_form(self) -> DenseForm:
        """Return K as a matrix."""
        form: DenseForm = self._form
        return form

    @cached_property
    def _form(self) -> DenseForm:
        symmetric = np.array_equal(self._log_kernel, self._log_kernel.T)
        return DenseForm(self._matrix, self._matrix if symmetric else self._backend.asarray(self._matrix.T))

    def matmul(self, v: Array, *, transposed: bool = False) -> Array:
        return (self._matrix.T if transposed else self._matrix) @ v

    def log_matmul(self, log_v: Array, *, transposed: bool = False) -> Array:
        xp = self._backend.xp
        log_kernel = self._log_matrix.T if transposed else self._log_matrix
        return xp.stack([log_sum_exp(xp, log_kernel[i, :, None] + log_v, 0) for i in range(self.size)])


class NearFarKernel(Kernel):
    """K = exp(-lam C - 1) for a `NearFarCost`, symmetric and positive everywhere.

    With E = exp(-lam H - (1 - s)/2) the far field is E[i, d] E[j, c]. It is applied to all pairs; for near pairs a
    sparse matrix adds the difference between the exact kernel and the far field.
    """

    def __init__(self, backend: Backend, cost: NearFarCost, reg: float, dtype: Any) -> None:
        self._backend, self._cost, self._reg = backend, cost, reg
        super().__init__(cost.size, *lifting_shift(-2 * float(cost.half.max()) / reg - 1, -1.0, dtype), dtype)

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
        """Cluster sizes and the number of clusters are padded to multiples of four, the step of compiled code."""
        cost, excess = self._cost, self._excess
        sizes = np.diff(cost.bounds)
        full = -(-sizes // _STEP) * _STEP
        clusters = -(-len(sizes) // _STEP) * _STEP
        bounds = np.zeros(clusters + 1, np.int64)
        bounds[1 : len(sizes) + 1] = np.cumsum(full)
        bounds[len(sizes) + 1 :] = bounds[len(sizes)]
        slot = np.arange(self.size) + (bounds[:-1][: len(sizes)] - cost.bounds[:-1])[cost.cluster]
        order = np.full(bounds[-1], -1, np.int64)
        order[slot] = cost.order
        field = np.zeros((bounds[-1], clusters))
        field[slot, : len(sizes)] = self._field
        counts = np.zeros(bounds[-1], np.int64)
        counts[slot] = np.diff(excess.indptr)
        return NearFarForm(
            order,
            bounds,
            self._backend.asarray(field, self._dtype),
            self._backend.asarray(field.T, self._dtype),
            np.concatenate([[0], np.cumsum(counts)]),
            slot[excess.indices],
            self._backend.asarray(excess.data, self._dtype),
        )

    @cached_property
    def _binned(self) -> tuple[Array, Array, Array, Array]:
        """Return far field (bins, slots, bins), element of each slot, slot of each element, and the near pairs.

        All bins have the same number of slots, so that one batched product computes all of them. A cluster is one bin,
        or several if it has more than twice the mean size; the far field of an empty slot is zero.
        """
        backend, cost = self._backend, self._cost
        sizes = np.diff(cost.bounds)
        width = min(int(sizes.max()), -(-2 * self.size // len(sizes)))
        counts = -(-sizes // width)
        first = np.concatenate([[0], np.cumsum(counts)])
        slot = first[:-1][cost.cluster] * width + np.arange(self.size) - cost.bounds[cost.cluster]
        bins, cluster_of = int(first[-1]), np.repeat(np.arange(len(sizes)), counts)
        field = np.zeros((bins * width, bins))
        field[slot] = self._field[:, cluster_of]
        element = np.zeros(bins * width, np.int64)
        element[slot] = cost.order
        back = np.argsort(cost.order)
        return (
            backend.asarray(field.reshape(bins, width, bins), self._dtype),
            backend.asarray(element),
            backend.asarray(slot[back]),
            backend.sparse(csr_array(self._excess[back][:, back]), self._dtype),
        )

    def matmul(self, v: Array, *, transposed: bool = False) -> Array:  # noqa: ARG002
        """Return exp(s) K V: the far field by sums over clusters, plus the correction of near pairs."""
        field, element, slot, excess = self._binned
        sent = field.swapaxes(1, 2) @ v[element].reshape(*field.shape[:2], -1)
        spread = field @ sent.swapaxes(0, 1)
        return spread.reshape(-1, v.shape[1])[slot] + excess @ v

    def log_matmul(self, log_v: Array, *, transposed: bool = False) -> Array:  # noqa: ARG002
        """Return log(K exp(log V)), computed for a block of rows of K at a time."""
        xp = self._backend.xp
        order = self._backend.asarray(self._cost.order)
        back = self._backend.asarray(np.argsort(self._cost.order))
        log_v = log_v[order]
        step = max(1, _BLOCK_ENTRIES // (self.size * log_v.shape[1]))
        blocks = []
        for start in range(0, self.size, step):
            log_kernel = self._log_rows(np.arange(start, min(start + step, self.size)), np.arange(self.size))
            terms = self._backend.asarray(log_kernel, self._dtype)[:, :, None] + log_v[None]
            blocks.append(log_sum_exp(xp, terms, 1))
        return xp.concat(blocks)[back]

    def _log_rows(self, rows: Any, columns: Any) -> FloatArray:
        """Return log K for some rows and columns in sorted order, with the same floor as in `_excess`."""
        far, costs = self._cost.far(rows, columns), self._cost.between(rows, columns)
        logs: FloatArray = np.maximum(-costs / self._reg, -far / self._reg + np.log(_FLOOR)) - 1
        return logs


def lifting_shift(smallest: float, largest: float, dtype: Any) -> tuple[float, bool]:
    """Return s >= 0 for which exp(s + smallest) is a normal number of the type, and whether such an s fits.

    exp(s + largest) stays below the square root of the largest number, which leaves range for U and V; if this is not
    possible, the largest s that fits is returned.
    """
    info = np.finfo(dtype)
    wanted = max(0.0, math.log(float(info.smallest_normal)) + 1 - smallest)
    room = max(0.0, 0.5 * math.log(float(info.max)) - largest)
    return min(wanted, room), wanted <= room


def split_shift(shift: float, dtype: Any) -> tuple[float, float]:
    """Return (a, b) with a + b = s: U is stored as exp(-a) U and V as exp(-b) V, which raises U and lowers V."""
    gauge = 0.3 * math.log(float(np.finfo(dtype).max))
    return shift / 2 - gauge, shift / 2 + gauge


def log_sum_exp(xp: Any, terms: Array, axis: int) -> Array:
    """Return log(sum(exp(terms))) along an axis; -inf where all terms are -inf."""
    top = xp.max(terms, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    return xp.squeeze(top, axis=axis) + xp.log(xp.sum(xp.exp(terms - top), axis=axis))
