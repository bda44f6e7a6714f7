"""Transport kernels K = exp(-lam*C - 1) as objects that apply themselves.

The scaling loop asks a kernel only for K V and K' U, either plainly or on logarithms, so that a kernel may be
dense, a Kronecker product, a recursion or a sum of a sparse and a low-rank part.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from gwntf.backends import Backend, DenseForm, ExponentialForm, KernelForm, LineForm, SeparableForm
from gwntf.core import Array, FloatArray
from gwntf.geometry.costs import Cost, SeparableCost
from gwntf.geometry.near_far import NearFarCost
from gwntf.geometry.near_far_kernel import NearFarKernel
from gwntf.geometry.number_types import Retyped, lifting_shift, log_sum_exp, split_shift


class Kernel(Protocol):
    """A nonnegative linear map between the data side (rows) and the model side (columns) of a mode."""

    size: int  # Length of the fibers
    # S: `matmul` and `form` have exp(s) K, so that its smallest entry is one that the number type holds in full.
    # `log_matmul` has K itself.
    shift: float
    offsets: tuple[float, float]  # (a, b) with a + b = s; the scaling loop holds exp(-a) U and exp(-b) V
    # Whether s is large enough: whether products have no other rounding errors than relative ones
    whole: bool

    def astype(self, dtype: Any) -> Kernel:
        """Return the same kernel in another precision (a NumPy dtype)."""

    def form(self) -> KernelForm:
        """Return the kernel as compiled code takes it."""

    def line_form(self) -> LineForm | None:
        """Return the kernel for arithmetic on logarithms, where its cost is the distance between places on a line."""

    def matmul(self, v: Array, *, transposed: bool = False) -> Array:
        """exp(s) K V, or exp(s) K' V, for a matrix V of columns."""

    def log_matmul(self, log_v: Array, *, transposed: bool = False) -> Array:
        """log(K exp(log V)), or with K', without leaving the logarithm."""


class DenseKernel(Retyped):
    """K = exp(log_kernel) held as a matrix.

    Parameters
    ----------
    backend : Backend
        Where it lives.
    log_kernel : ndarray of shape (I, I)
        -lam*C - 1, in float64.
    dtype : NumPy dtype
        Precision of the products.
    """

    def __init__(self, backend: Backend, log_kernel: FloatArray, dtype: Any) -> None:
        self._backend, self._log_kernel, self._dtype = backend, log_kernel, np.dtype(dtype)
        self.size = len(log_kernel)
        self.shift, self.whole = lifting_shift(float(log_kernel.min()), float(log_kernel.max()), dtype)
        self.offsets = split_shift(self.shift, dtype)

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

    def form(self) -> DenseForm | ExponentialForm:
        return self._form

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


class SeparableKernel:
    """A Kronecker product of kernels, one per axis of a grid whose last axis varies fastest."""

    def __init__(self, axes: tuple[DenseKernel, ...], dtype: Any) -> None:
        self._axes = axes
        self.size = math.prod(axis.size for axis in axes)
        self.shift = sum(axis.shift for axis in axes)
        self.offsets = split_shift(self.shift, dtype)
        self.whole = all(axis.whole for axis in axes)

    def astype(self, dtype: Any) -> SeparableKernel:
        return SeparableKernel(tuple(axis.astype(dtype) for axis in self._axes), dtype)

    def form(self) -> SeparableForm:
        return self._form

    def line_form(self) -> None:
        return None

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


def build_kernel(cost: Cost, reg: float, backend: Backend, dtype: Any) -> Kernel:
    """Return K = exp(-C/reg - 1) for a cost, in the form that the cost allows."""
    if isinstance(cost, NearFarCost):
        return NearFarKernel(backend, cost, reg, dtype)
    if isinstance(cost, SeparableCost):
        first, *rest = cost.axes
        axes = [-first / reg - 1, *(-axis / reg for axis in rest)]
        return SeparableKernel(tuple(DenseKernel(backend, axis, dtype) for axis in axes), dtype)
    return DenseKernel(backend, -cost / reg - 1, dtype)


def _steps_on_a_line(log_kernel: FloatArray) -> FloatArray | None:
    """Return the distances between neighbours p_i where log K_ij = log c - |p_i - p_j|, else None."""
    steps = log_kernel[0, 0] - np.diagonal(log_kernel, 1)
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
