"""torch in the names of the Python array API standard: the functions that the mathematics uses, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import (
    abs,  # noqa: A004
    bool,  # noqa: A004
    concat,
    exp,
    finfo,
    float64,
    full_like,
    isfinite,
    isnan,
    log,
    maximum,
    ones_like,
    reshape,
    sqrt,
    stack,
    zeros_like,
)

from gwntf.core import Array

__all__ = [
    "abs",
    "all",
    "any",
    "argsort",
    "asarray",
    "astype",
    "bool",
    "clip",
    "concat",
    "exp",
    "finfo",
    "float64",
    "full_like",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "max",
    "maximum",
    "min",
    "nonzero",
    "ones_like",
    "reshape",
    "sqrt",
    "squeeze",
    "stack",
    "sum",
    "where",
    "zeros_like",
]

Axis = int | Sequence[int] | None


def _dims(x: Array, axis: Axis) -> Any:
    """Return the axes as torch's reductions take them."""
    return tuple(range(x.ndim)) if axis is None else axis


def asarray(x: Array, *, copy: bool | None = None) -> Array:
    """Return the array, or a contiguous copy of it."""
    return x.clone(memory_format=torch.contiguous_format) if copy else x


def astype(x: Array, dtype: Any, *, copy: bool = True) -> Array:
    """Convert to another number type."""
    return x.to(dtype, copy=copy)


def isinf(x: Array) -> Array:
    """Whether entries are infinite."""
    return torch.isinf(x)


def sum(x: Array, *, axis: Axis = None, dtype: Any = None) -> Array:  # noqa: A001
    """Add up along some axes, by default all."""
    return torch.sum(x, _dims(x, axis), dtype=dtype)


def all(x: Array, *, axis: int | None = None) -> Array:  # noqa: A001
    """Whether all are true."""
    return torch.all(x) if axis is None else torch.all(x, dim=axis)


def any(x: Array, *, axis: int | None = None) -> Array:  # noqa: A001
    """Whether one is true."""
    return torch.any(x) if axis is None else torch.any(x, dim=axis)


def max(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Array:  # noqa: A001
    """Return the largest along some axes."""
    return torch.amax(x, _dims(x, axis), keepdims)


def min(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Array:  # noqa: A001
    """Return the smallest along some axes."""
    return torch.amin(x, _dims(x, axis), keepdims)


def clip(x: Array, low: float | None, high: float | None) -> Array:
    """Limit from below, above or both."""
    return torch.clamp(x, low, high)


def where(condition: Array, x: Array, y: Array) -> Array:
    """Choose from x or y."""
    return torch.where(condition, x, y)


def argsort(x: Array, *, stable: bool = True) -> Array:
    """Order of the entries."""
    return (
        torch.argsort(x.to(torch.uint8), stable=stable)
        if x.dtype == torch.bool
        else torch.argsort(x, stable=stable)
    )


def nonzero(x: Array) -> tuple[Array, ...]:
    """Places of the entries that are not zero."""
    places: tuple[Array, ...] = torch.nonzero(x, as_tuple=True)
    return places


def squeeze(x: Array, *, axis: int) -> Array:
    """Drop an axis of length one."""
    return torch.squeeze(x, axis)
