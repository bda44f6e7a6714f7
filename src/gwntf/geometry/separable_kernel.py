"""The kernel of a cost that is a sum over the axes of a grid."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from gwntf.backends import ExponentialForm, SeparableForm
from gwntf.core import Array
from gwntf.geometry.axis_kernels import LineKernel
from gwntf.geometry.kernels import DenseKernel, Kernel


class SeparableKernel(Kernel):
    """A Kronecker product of kernels, one per axis of a grid whose last axis varies fastest."""

    def __init__(self, axes: tuple[DenseKernel | LineKernel, ...], dtype: Any) -> None:
        self._axes = axes
        size, shift = math.prod(axis.size for axis in axes), sum(axis.shift for axis in axes)
        super().__init__(size, shift, all(axis.all_normal for axis in axes), dtype)

    def _at(self, dtype: Any) -> SeparableKernel:
        return SeparableKernel(tuple(axis.astype(dtype) for axis in self._axes), dtype)

    @cached_property
    def _form(self) -> SeparableForm:
        lines = tuple(axis for axis in self._axes if isinstance(axis, LineKernel))
        if len(lines) < len(self._axes):
            return SeparableForm(tuple(axis.dense_form() for axis in self._axes))
        even = tuple(form for form in (axis.form() for axis in lines) if isinstance(form, ExponentialForm))
        if len(even) == len(lines):
            return SeparableForm(even)
        return SeparableForm(tuple(axis.uneven_form() for axis in lines))

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
