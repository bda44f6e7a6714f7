"""The kernel of a cost, in the cheapest form."""

from __future__ import annotations

from typing import Any

import numpy as np

from gwntf.backends import Backend
from gwntf.core import FloatArray, InputError
from gwntf.geometry.axis_cost import AxisCost
from gwntf.geometry.axis_kernels import CircleKernel, LineKernel
from gwntf.geometry.costs import Cost, SeparableCost
from gwntf.geometry.kernels import DenseKernel, Kernel, NearFarKernel
from gwntf.geometry.near_far import NearFarCost
from gwntf.geometry.separable_kernel import SeparableKernel
from gwntf.geometry.squared_kernels import squared_kernel

_ROUNDING = 1e-12

_LONGEST_DENSE = 2**14
"""Length up to which a kernel along an axis may be stored as a matrix."""


def build_kernel(cost: Cost, reg: float, backend: Backend, dtype: Any) -> Kernel:
    """Return K = exp(-C/reg - 1), in the cheapest form for the cost."""
    if isinstance(cost, NearFarCost):
        return NearFarKernel(backend, cost, reg, dtype)
    if isinstance(cost, SeparableCost):
        axes = (_factor(axis, reg, backend, dtype, -1.0 if k == 0 else 0.0) for k, axis in enumerate(cost.axes))
        return SeparableKernel(tuple(axes), dtype)
    if isinstance(cost, AxisCost) and not cost.is_line and cost.size > backend.long_fibers:
        return _along_long_axis(cost, reg, backend, dtype)
    return _factor(cost, reg, backend, dtype, -1.0)


def _along_long_axis(cost: AxisCost, reg: float, backend: Backend, dtype: Any) -> Kernel:
    """Return the kernel of distances on a circle, or of squared distances, between many places."""
    if cost.power == 1 and cost.period is not None:
        unit = cost.scale * reg
        return CircleKernel(backend, np.asarray(cost.positions) / unit, cost.period / unit, -1.0, dtype)
    kernel = squared_kernel(backend, cost, reg, dtype)
    if kernel is None and cost.size > _LONGEST_DENSE:
        given = f"2 for {cost.size} places on a circle, most of which are less than the reach of the kernel apart"
        raise InputError("power", given, "power=1, a smaller scale, or fewer places")
    return kernel or _factor(cost, reg, backend, dtype, -1.0)


def _factor(
    cost: FloatArray | AxisCost, reg: float, backend: Backend, dtype: Any, log_scale: float
) -> DenseKernel | LineKernel:
    """Return exp(log_scale - C/reg) for a cost matrix or a cost on an axis, by recursion for distances on a line."""
    if isinstance(cost, AxisCost):
        if cost.is_line:
            return LineKernel(backend, np.diff(cost.positions) / (cost.scale * reg), log_scale, dtype)
        return DenseKernel(backend, log_scale - cost.to_matrix() / reg, dtype)
    log_kernel = log_scale - cost / reg
    steps = _steps_on_a_line(log_kernel)
    if steps is None or not steps.size:
        return DenseKernel(backend, log_kernel, dtype)
    return LineKernel(backend, steps, float(log_kernel[0, 0]), dtype)


def _steps_on_a_line(log_kernel: FloatArray) -> FloatArray | None:
    """Return the steps p_(i+1) - p_i if log K_ij = log c - |p_i - p_j| for some points p, else None."""
    steps: FloatArray = log_kernel[0, 0] - np.diagonal(log_kernel, 1)
    if (steps < 0).any():
        return None
    points = np.concatenate([[0.0], np.cumsum(steps)])
    most = _ROUNDING * max(1.0, float(np.abs(log_kernel).max()))
    for point, row in zip(points, log_kernel, strict=True):  # most other costs fail at the first row
        if np.abs(log_kernel[0, 0] - np.abs(points - point) - row).max() > most:
            return None
    return steps
