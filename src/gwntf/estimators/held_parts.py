"""Held parts: components that are given and that a fit does not change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gwntf.backends import to_host
from gwntf.core import FloatArray, InputError
from gwntf.data import as_real_array, khatri_rao, rank_one

_ROUNDING = 1e3
"""Relative distance from a tensor of rank one up to which a part counts as one, in multiples of the precision."""


def check_parts(parts: Any, sample_shape: Sequence[int], rank: int) -> list[FloatArray]:
    """Check the parameter `parts`; return the factors of the held components, whose columns sum to one.

    Parameters
    ----------
    parts : None, array or list of arrays
        An array has one part per row, of the shape of a sample or flattened; a list has one (I_n, k) factor per axis of
        a sample.
    sample_shape : sequence of int
        Shape of one sample in the model.
    rank : int
        Number of all components.

    Returns
    -------
    list of arrays
        Empty without parts. One factor per axis, or a single one, of shape (size of a sample, k), if the parts are
        tensors that are not of rank one; then all components must be held.
    """
    if parts is None:
        return []
    listed = isinstance(parts, list | tuple)
    factors = _listed(parts, sample_shape) if listed else [_stacked(parts, sample_shape)]
    for index, factor in enumerate(factors):
        _check_entries(factor, f"parts[{index}]" if listed else "parts", "column" if listed else "part")
    count = factors[0].shape[1]
    if count > rank:
        raise InputError("parts", f"{count} parts", f"at most n_components={rank}")
    if len(factors) < len(sample_shape):
        separate = _separate(factors[0], sample_shape, as_real_array(parts, "parts").dtype)
        if separate is None and count < rank:
            given = f"{count} tensors that are not of rank one, with n_components={rank}"
            raise InputError("parts", given, "n_components equal to the number of parts, or parts of rank one")
        factors = separate or factors
    return [factor / factor.sum(axis=0) for factor in factors]


def _listed(parts: Sequence[Any], sample_shape: Sequence[int]) -> list[FloatArray]:
    """Return the factors of a list with one factor per axis."""
    if len(parts) != len(sample_shape):
        given, count = f"{len(parts)} factors", len(sample_shape)
        raise InputError("parts", given, f"a list of {count}, one per axis of a sample, or an array of parts")
    factors: list[FloatArray] = [
        as_real_array(to_host(factor), f"parts[{n}]").astype(np.float64) for n, factor in enumerate(parts)
    ]
    for index, (factor, size) in enumerate(zip(factors, sample_shape, strict=True)):
        if factor.ndim != 2 or len(factor) != size or factor.shape[1] != factors[0].shape[-1] or not factor.size:
            allowed = f"shape ({size}, {factors[0].shape[-1]}), one column per part"
            raise InputError(f"parts[{index}]", f"shape {factor.shape}", allowed)
    return factors


def _stacked(parts: Any, sample_shape: Sequence[int]) -> FloatArray:
    """Return an array with one part per row as one factor for all axes."""
    stacked = as_real_array(to_host(parts), "parts").astype(np.float64)
    size = math.prod(sample_shape)
    if stacked.ndim < 2 or not len(stacked) or stacked.size != len(stacked) * size:
        shape = ", ".join(map(str, sample_shape))
        raise InputError("parts", f"shape {stacked.shape}", f"shape (n_parts, {shape}), one part per row")
    return np.ascontiguousarray(stacked.reshape(len(stacked), size).T)


def _check_entries(factor: FloatArray, name: str, what: str) -> None:
    if not np.isfinite(factor).all():
        raise InputError(name, "NaN or infinite entries", "finite nonnegative numbers")
    if factor.min() < 0:
        given = f"negative entries, the lowest {factor.min():.3g}"
        raise InputError(name, given, "finite nonnegative numbers: set negative noise to zero, for example")
    empty = np.flatnonzero(factor.sum(axis=0) == 0)
    if empty.size:
        raise InputError(name, f"only zeros in {what} {empty[0]}", f"a positive sum in every {what}")


def _separate(factor: FloatArray, sample_shape: Sequence[int], dtype: Any) -> list[FloatArray] | None:
    """Return one factor per axis if all parts are of rank one, else None."""
    own = dtype if dtype in (np.float32, np.float64) else np.float64
    limit, columns = _ROUNDING * float(np.finfo(own).eps), []
    for part in factor.T:
        vectors, _ = rank_one(part.reshape(*sample_shape))
        model = khatri_rao([vector[:, None] for vector in vectors])[:, 0]
        scale = float(part @ model)
        if np.linalg.norm(part - scale * model) > limit * np.linalg.norm(part):
            return None
        columns.append([np.maximum(vector, 0) for vector in vectors])
    return [np.stack(axis, axis=1) for axis in zip(*columns, strict=True)]
