"""Transport kernels K = exp(-lam*C - 1) as objects that apply themselves.

The scaling loop uses only K V and K' U, either plainly or on logarithms, so that a kernel may be dense, a Kronecker
product, a recursion or a sum of a sparse and a low-rank part.

Data have zeros where their model has none, so V has to be large far away from the data, and U small at them: stored as
they are, both would leave the range of float32 at one end while the other end is empty. Kernel, U and V are therefore
multiplied by powers of e (`lifting_shift`, `split_shift`) that bring them into the range of the number type.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from gwntf.backends import (
    Backend,
    DenseForm,
    ExponentialForm,
    KernelForm,
    LineForm,
    NearFarForm,
    SeparableForm,
)
from gwntf.core import Array, FloatArray
from gwntf.geometry.costs import Cost, SeparableCost
from gwntf.geometry.near_far import NearFarCost

_FLOOR = 1e-4
"""Smallest part of the far field that remains at a near pair, so that the correction never cancels it entirely."""

_STEP = 4
_BLOCK_ENTRIES = 2**22


class Kernel(ABC):
    """A nonnegative linear map between the data side (rows) and the model side (columns) of a mode."""

    _form: Any  # the result of `form`, a cached property of every subclass

    def __init__(self, size: int, shift: float, whole: bool, dtype: Any) -> None:
        self.size = size  # length of the fibers
        # s: `matmul` and `form` have exp(s) K, so that its smallest entry is a normal number; `log_matmul` has K itself
        self.shift = shift
        self.offsets = split_shift(shift, dtype)  # (a, b) with a + b = s; the scaling loop has exp(-a) U and exp(-b) V
        self.whole = whole  # whether s is large enough: whether products have relative rounding errors only
        self._dtype = np.dtype(dtype)

    def astype(self, dtype: Any) -> Self:
        """Return the same kernel in another precision (a NumPy dtype)."""
        if np.dtype(dtype) == self._dtype:
            return self
        return self._wide if np.dtype(dtype) == np.float64 else self._at(dtype)

    @cached_property
    def _wide(self) -> Self:
        """The kernel in float64, in which columns that lost their accuracy are solved again."""
        return self._at(np.float64)

    @abstractmethod
    def _at(self, dtype: Any) -> Self:
        """Build the same kernel in another precision."""

    def form(self) -> KernelForm:
        """Return the kernel as compiled code takes it."""
        form: KernelForm = self._form
        return form

    def line_form(self) -> LineForm | None:
        """Return the kernel for arithmetic on logarithms, where its cost is the distance between places on a line."""
        return None

    @abstractmethod
    def matmul(self, v: Array, *, transposed: bool = False) -> Array:
        """exp(s) K V, or exp(s) K' V, for a matrix V of columns."""

    @abstractmethod
    def log_matmul(self, log_v: Array, *, transposed: bool = False) -> Array:
        """log(K exp(log V)), or with K', without leaving the logarithm."""


class DenseKernel(Kernel):
    """K = exp(log_kernel) stored as a matrix; `log_kernel` is -lam*C - 1 in float64, `dtype` that of the products."""

    def __init__(self, backend: Backend, log_kernel: FloatArray, dtype: Any) -> None:
        self._backend, self._log_kernel = backend, log_kernel
        shift, whole = lifting_shift(float(log_kernel.min()), float(log_kernel.max()), dtype)
        super().__init__(len(log_kernel), shift, whole, dtype)

    def _at(self, dtype: Any) -> DenseKernel:
        return DenseKernel(self._backend, self._log_kernel, dtype)

    @cached_property
    def _matrix(self) -> Array:
        with self._backend.quiet():
            return self._backend.asarray(np.exp(self._log_kernel + self.shift), self._dtype)

    @cached_property
    def _log_matrix(self) -> Array:
        return self._backend.asarray(self._log_kernel, self._dtype)

    @cached_property
    def _steps(self) -> FloatArray | None:
        return _steps_on_a_line(self._log_kernel)

    @cached_property
    def _form(self) -> DenseForm | ExponentialForm:
        steps = self._steps
        if steps is None or not steps.size or np.ptp(steps) > _rounding(self._log_kernel):
            return self.dense_form()
        kind = self._dtype.type
        return ExponentialForm(self.size, kind(np.exp(self._log_kernel[0, 0] + self.shift)), kind(np.exp(-steps[0])))

    def line_form(self) -> LineForm | None:
        if self._steps is None:
            return None
        steps, scale = self._steps / math.log(2), float(self._log_kernel[0, 0]) / math.log(2)
        return LineForm(scale, np.floor(steps), steps - np.floor(steps))

    def dense_form(self) -> DenseForm:
        """Return K as a matrix."""
        symmetric = np.array_equal(self._log_kernel, self._log_kernel.T)
        return DenseForm(self._matrix, self._matrix if symmetric else self._backend.asarray(self._matrix.T))

    def matmul(self, v: Array, *, transposed: bool = False) -> Array:
        return (self._matrix.T if transposed else self._matrix) @ v

    def log_matmul(self, log_v: Array, *, transposed: bool = False) -> Array:
        xp = self._backend.xp
        log_kernel = self._log_matrix.T if transposed else self._log_matrix
        return xp.stack([log_sum_exp(xp, log_kernel[i, :, None] + log_v, 0) for i in range(self.size)])


class SeparableKernel(Kernel):
    """A Kronecker product of kernels, one per axis of a grid whose last axis varies fastest."""

    def __init__(self, axes: tuple[DenseKernel, ...], dtype: Any) -> None:
        self._axes = axes
        size, shift = math.prod(axis.size for axis in axes), sum(axis.shift for axis in axes)
        super().__init__(size, shift, all(axis.whole for axis in axes), dtype)

    def _at(self, dtype: Any) -> SeparableKernel:
        return SeparableKernel(tuple(axis.astype(dtype) for axis in self._axes), dtype)

    @cached_property
    def _form(self) -> SeparableForm:
        forms = [axis.form() for axis in self._axes]
        exponential = tuple(form for form in forms if isinstance(form, ExponentialForm))
        if len(exponential) == len(forms):
            return SeparableForm(exponential)
        return SeparableForm(tuple(axis.dense_form() for axis in self._axes))

    def matmul(self, v: Array, *, transposed: bool = False) -> Array:
        return self._along_axes("matmul", v, transposed)

    def log_matmul(self, log_v: Array, *, transposed: bool = False) -> Array:
        return self._along_axes("log_matmul", log_v, transposed)

    def _along_axes(self, product: str, v: Array, transposed: bool) -> Array:
        columns, before = v.shape[1], 1
        for axis in self._axes:
            after = self.size // (before * axis.size) * columns
            stack = v.reshape(before, axis.size, after).swapaxes(0, 1).reshape(axis.size, -1)
            stack = getattr(axis, product)(stack, transposed=transposed)
            v = stack.reshape(axis.size, before, after).swapaxes(0, 1).reshape(self.size, columns)
            before *= axis.size
        return v


class NearFarKernel(Kernel):
    """K = exp(-lam C - 1) for a `NearFarCost`, symmetric and positive everywhere.

    With E = exp(-lam H - (1 - s)/2) the far field is E[i, d] E[j, c]. It is applied to all pairs, near ones included,
    where the sparse part adds what the exact kernel has above it.
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

    @cached_property
    def _placed(self) -> tuple[Array, Array, Array, Array]:
        """Far field (bins, slots, bins), element of each slot, slot of each element, and the near pairs.

        A cluster is one bin, or several if it has more than twice the mean size, so that all bins have the same number
        of slots and one batched product computes all of them; in an empty slot the far field is zero.
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
        """exp(s) K V: the sums of every cluster for every other, spread over its elements, and the near pairs."""
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
        step = max(1, _BLOCK_ENTRIES // (self.size * log_v.shape[1]))
        blocks = []
        for start in range(0, self.size, step):
            log_kernel = self._log_rows(np.arange(start, min(start + step, self.size)), np.arange(self.size))
            terms = self._backend.asarray(log_kernel, self._dtype)[:, :, None] + log_v[None]
            blocks.append(log_sum_exp(xp, terms, 1))
        return xp.concat(blocks)[back]

    def _log_rows(self, rows: Any, columns: Any) -> FloatArray:
        """Log K between places, with the floor that the plain kernel has."""
        far, costs = self._cost.far(rows, columns), self._cost.places(rows, columns)
        logs: FloatArray = np.maximum(-costs / self._reg, -far / self._reg + np.log(_FLOOR)) - 1
        return logs


def build_kernel(cost: Cost, reg: float, backend: Backend, dtype: Any) -> Kernel:
    """Return K = exp(-C/reg - 1) for a cost, in the form that the cost allows."""
    if isinstance(cost, NearFarCost):
        return NearFarKernel(backend, cost, reg, dtype)
    if isinstance(cost, SeparableCost):
        first, *rest = cost.axes
        axes = [-first / reg - 1, *(-axis / reg for axis in rest)]
        return SeparableKernel(tuple(DenseKernel(backend, axis, dtype) for axis in axes), dtype)
    return DenseKernel(backend, -cost / reg - 1, dtype)


def lifting_shift(smallest: float, largest: float, dtype: Any) -> tuple[float, bool]:
    """Return s >= 0 that makes exp(s + smallest) a normal number of that type, and whether there is room for it.

    exp(s + largest) stays below the square root of the largest number, to leave room for U and V.
    """
    info = np.finfo(dtype)
    wanted = max(0.0, math.log(float(info.smallest_normal)) + 1 - smallest)
    room = max(0.0, 0.5 * math.log(float(info.max)) - largest)
    return min(wanted, room), wanted <= room


def split_shift(shift: float, dtype: Any) -> tuple[float, float]:
    """Return (a, b) with a + b = s: U is stored as exp(-a) U and V as exp(-b) V, U lifted and V lowered."""
    gauge = 0.3 * math.log(float(np.finfo(dtype).max))
    return shift / 2 - gauge, shift / 2 + gauge


def log_sum_exp(xp: Any, terms: Array, axis: int) -> Array:
    """log(sum(exp(terms))) along an axis; -inf where all are -inf."""
    top = xp.max(terms, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    return xp.squeeze(top, axis=axis) + xp.log(xp.sum(xp.exp(terms - top), axis=axis))


def _steps_on_a_line(log_kernel: FloatArray) -> FloatArray | None:
    """Return the distances between neighbours p_i where log K_ij = log c - |p_i - p_j|, else None."""
    steps: FloatArray = log_kernel[0, 0] - np.diagonal(log_kernel, 1)
    if (steps < 0).any():
        return None
    places = np.concatenate([[0.0], np.cumsum(steps)])
    most = _rounding(log_kernel)
    for place, row in zip(places, log_kernel, strict=True):  # the first row decides, unless it is a line indeed
        if np.abs(log_kernel[0, 0] - np.abs(places - place) - row).max() > most:
            return None
    return steps


def _rounding(log_kernel: FloatArray) -> float:
    """Return by how much entries may differ that are equal but for rounding."""
    return 1e-12 * max(1.0, float(np.abs(log_kernel).max()))
