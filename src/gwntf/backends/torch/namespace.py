"""The functions of the Python array API standard that the library uses, in torch.

torch's own functions also take the standard's keywords `axis` and `keepdims`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import bool  # noqa: A004

from gwntf.core import Array

abs, all, any, sum = torch.abs, torch.all, torch.any, torch.sum  # noqa: A001
broadcast_to, clip, concat, exp, finfo, float64, full_like = (
    torch.broadcast_to, torch.clip, torch.concat, torch.exp, torch.finfo, torch.float64, torch.full_like,
)  # fmt: skip
isfinite, isinf, isnan, log, logaddexp, maximum = (
    torch.isfinite, torch.isinf, torch.isnan, torch.log, torch.logaddexp, torch.maximum,
)  # fmt: skip
ones_like, reshape, sqrt, squeeze, stack = (
    torch.ones_like, torch.reshape, torch.sqrt, torch.squeeze, torch.stack,
)  # fmt: skip
where, zeros_like = torch.where, torch.zeros_like

Axis = int | Sequence[int] | None


def asarray(x: Array, *, copy: bool | None = None) -> Array:
    """Return the array, or a contiguous copy of it."""
    return x.clone(memory_format=torch.contiguous_format) if copy else x


def astype(x: Array, dtype: Any, *, copy: bool = True) -> Array:
    """Convert to another dtype."""
    return x.to(dtype, copy=copy)


def max(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Array:  # noqa: A001
    """Return the largest entry along some axes, by default all."""
    return torch.amax(x, () if axis is None else axis, keepdims)


def min(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Array:  # noqa: A001
    """Return the smallest entry along some axes, by default all."""
    return torch.amin(x, () if axis is None else axis, keepdims)


def argsort(x: Array, *, stable: bool = True) -> Array:
    """Return the order of the entries; CUDA does not sort booleans."""
    return torch.argsort(x.to(torch.uint8) if x.dtype == torch.bool else x, stable=stable)


def nonzero(x: Array) -> tuple[Array, ...]:
    """Return the indices of the entries that are not zero, one array for each axis."""
    indices: tuple[Array, ...] = torch.nonzero(x, as_tuple=True)
    return indices
