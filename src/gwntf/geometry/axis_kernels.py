"""Kernels of distances on a line and on a circle, without a stored matrix.

`LineKernel` also serves cost matrices that are distances on a line: see `build`.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from gwntf.backends import Backend, DenseForm, ExponentialForm, KernelForm, LineForm, UnevenForm
from gwntf.core import Array, FloatArray
from gwntf.geometry.kernels import DenseKernel, Kernel, lifting_shift
from gwntf.geometry.scans import Arithmetic, Logarithms, Numbers, Scan

_EVEN = 1e-12
"""Largest distance of equally spaced points from their exact places, as a fraction of the line, or of one if longer."""


class LineKernel(Kernel):
    """log K_ij = log_scale - |p_i - p_j| for points on a line, given by the steps p_{i+1} - p_i >= 0, at least one.

    Compiled code multiplies by recursion, O(I) per column. Arrays are multiplied by a matrix up to the length at which
    that is fastest, and above it by a `Scan`, O(I log I).
    """

    def __init__(self, backend: Backend, steps: FloatArray, log_scale: float, dtype: Any) -> None:
        self._backend, self._steps, self._log_scale = backend, steps, log_scale
        self._places = np.concatenate([[0.0], np.cumsum(steps)])
        shift, all_normal = lifting_shift(log_scale - float(self._places[-1]), log_scale, dtype)
        super().__init__(len(self._places), shift, all_normal, dtype)

    def _at(self, dtype: Any) -> LineKernel:
        return LineKernel(self._backend, self._steps, self._log_scale, dtype)

    @cached_property
    def _dense(self) -> DenseKernel:
        log_kernel = self._log_scale - np.abs(self._places[:, None] - self._places)
        return DenseKernel(self._backend, log_kernel, self._dtype)

    @property
    def _short(self) -> bool:
        return self.size <= self._backend.long_fibers

    @cached_property
    def _form(self) -> KernelForm | None:
        kind, scale = self._dtype.type, math.exp(self._log_scale + self.shift)
        normal = float(self._steps.max()) < -math.log(float(np.finfo(self._dtype).smallest_normal))
        length = float(self._places[-1])
        even = np.abs(self._places - np.linspace(0, length, self.size)).max() <= _EVEN * max(1.0, length)
        if normal and even:
            return ExponentialForm(self.size, kind(scale), kind(math.exp(-length / (self.size - 1))))
        if self._backend.uneven_lines:
            return self.uneven_form()
        return self.dense_form() if self._short else None

    def uneven_form(self) -> UnevenForm:
        """Return K as a recursion with one factor for every step."""
        kind = self._dtype.type
        scale = kind(math.exp(self._log_scale + self.shift))
        return UnevenForm(scale, self._backend.asarray(np.exp(-self._steps / 2), self._dtype))

    def dense_form(self) -> DenseForm:
        return self._dense.dense_form()

    def line_form(self) -> LineForm:
        steps, scale = self._steps / math.log(2), self._log_scale / math.log(2)
        return LineForm(scale, np.floor(steps), steps - np.floor(steps))

    @cached_property
    def _numbers(self) -> Scan:
        return Scan(Numbers(self._backend, self._dtype), self._steps)

    @cached_property
    def _logarithms(self) -> Scan:
        return Scan(Logarithms(self._backend, self._dtype), self._steps)

    def matmul(self, v: Array, *, transposed: bool = False) -> Array:
        if self._short:
            return self._dense.matmul(v, transposed=transposed)
        return self._numbers.both(math.exp(self._log_scale + self.shift) * v)

    def log_matmul(self, log_v: Array, *, transposed: bool = False) -> Array:  # noqa: ARG002
        return self._logarithms.both(self._log_scale + log_v)


class CircleKernel(Kernel):
    """log K_ij = log_scale - (the shorter way from p_i to p_j around a circle), for many points.

    The circle is cut into two halves, inside which the shorter way is the straight one. From a point of one half, the
    shorter way to the first points of the other half leads over one end of that half, and to the others over the other
    end; so the sum over them is a prefix sum and a suffix sum, each discounted to one end. O(I log I) per column.
    """

    def __init__(self, backend: Backend, places: FloatArray, period: float, log_scale: float, dtype: Any) -> None:
        self._backend, self._places, self._period, self._log_scale = backend, places - places[0], period, log_scale
        super().__init__(len(places), *lifting_shift(log_scale - period / 2, log_scale, dtype), dtype)

    def _at(self, dtype: Any) -> CircleKernel:
        return CircleKernel(self._backend, self._places, self._period, self._log_scale, dtype)

    @cached_property
    def _numbers(self) -> _CircleSums:
        return _CircleSums(Numbers(self._backend, self._dtype), self._places, self._period)

    @cached_property
    def _logarithms(self) -> _CircleSums:
        return _CircleSums(Logarithms(self._backend, self._dtype), self._places, self._period)

    def matmul(self, v: Array, *, transposed: bool = False) -> Array:  # noqa: ARG002
        return self._numbers.of(math.exp(self._log_scale + self.shift) * v)

    def log_matmul(self, log_v: Array, *, transposed: bool = False) -> Array:  # noqa: ARG002
        return self._logarithms.of(self._log_scale + log_v)


class _CircleSums:
    """Sums over all points of a circle, discounted along the shorter way."""

    def __init__(self, arithmetic: Arithmetic, places: FloatArray, period: float) -> None:
        self._arithmetic = arithmetic
        self._half = int(np.searchsorted(places, period / 2))
        left, right = places[: self._half], places[self._half :]
        self._inside = [Scan(arithmetic, np.diff(part)) for part in (left, right)]
        self._plain = [Scan(arithmetic, np.zeros(len(part) - 1)) for part in (left, right)]
        # the straight way between the halves leads over the first point of the right one, the other way over the cut
        self._straight = [arithmetic.weights(distances) for distances in (right[0] - left, right - right[0])]
        self._across = [arithmetic.weights(distances) for distances in (left, period - right)]
        # number of points of the right half that are nearest by the straight way; of the left half that are not
        reached = np.searchsorted(right, left + period / 2, "right")
        self._reached = arithmetic.backend.asarray(reached)
        self._left_out = arithmetic.backend.asarray(np.searchsorted(reached, np.arange(len(right)), "right"))

    def of(self, values: Array) -> Array:
        """Return the sums for every column."""
        add, damped = self._arithmetic.add, self._arithmetic.damped
        left, right = values[: self._half], values[self._half :]
        straight = damped(self._up_to(1, damped(right, self._straight[1]))[self._reached], self._straight[0])
        across = damped(self._from(1, damped(right, self._across[1]))[self._reached], self._across[0])
        first = add(self._inside[0].both(left), add(straight, across))
        straight = damped(self._from(0, damped(left, self._straight[0]))[self._left_out], self._straight[1])
        across = damped(self._up_to(0, damped(left, self._across[0]))[self._left_out], self._across[1])
        second = add(self._inside[1].both(right), add(straight, across))
        return self._arithmetic.xp.concat([first, second])

    def _up_to(self, half: int, values: Array) -> Array:
        """Return the sums of the first 0, 1, 2, ... points of a half."""
        sums = self._plain[half].before(values)
        return self._arithmetic.xp.concat([self._arithmetic.row_of_zeros(values), sums])

    def _from(self, half: int, values: Array) -> Array:
        """Return the sums of all but the first 0, 1, 2, ... points of a half."""
        sums = self._plain[half].behind(values)
        return self._arithmetic.xp.concat([sums, self._arithmetic.row_of_zeros(values)])
