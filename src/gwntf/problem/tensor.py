"""A validated nonnegative tensor, samples first."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gwntf.core import FloatArray, InputError
from gwntf.problem.blocks import sample_blocks


@dataclass(frozen=True)
class NonnegativeTensor:
    """Entries and, where some are missing, which of them were observed.

    Attributes
    ----------
    values : ndarray
        Finite and nonnegative, zero where nothing was observed.
    observed : ndarray of bool or None
        None when every entry was.
    """

    values: FloatArray
    observed: NDArray[np.bool_] | None = None


def as_tensor(X: Any, *, name: str = "X", missing: str = "error", dtype: Any = None) -> NonnegativeTensor:
    """Check a nonnegative array of order N >= 2 and bring it into floating point.

    float32 and float64 are kept, everything else becomes float64, unless `dtype` asks for one of the two.
    With ``missing="ignore"`` NaN and the mask of a masked array mean "not observed".
    """
    values = _as_floats(masked_to_nan(X, name=name, missing=missing), name, dtype)
    if values.ndim < 2:
        raise InputError(name, f"{values.ndim} dimension(s)", "2 or more dimensions, samples first")
    if values.size == 0:
        raise InputError(name, f"the empty shape {values.shape}", "at least one entry along every axis")
    if np.isinf(values).any():
        raise InputError(name, "infinite entries", "finite nonnegative numbers")
    holes = np.isnan(values)
    if not holes.any():
        return NonnegativeTensor(_nonnegative(values, name))
    if missing == "error":
        allowed = "finite nonnegative numbers, or missing='ignore' to treat NaN as not observed"
        raise InputError(name, f"{int(holes.sum())} NaN entries", allowed)
    unseen = np.flatnonzero(holes.reshape(len(values), -1).all(axis=1))
    if unseen.size:
        raise InputError(name, f"no observed entry in sample {unseen[0]}", "at least one in every sample")
    return NonnegativeTensor(_nonnegative(np.where(holes, 0, values), name), ~holes)


def masked_to_nan(X: Any, *, name: str = "X", missing: str = "error") -> Any:
    """Write the mask of a masked array into its entries, as NaN; anything else is returned as it is.

    What lies under the mask is never looked at. float32 stays float32, everything else becomes float64.
    """
    if not isinstance(X, np.ma.MaskedArray):
        return X
    count = int(np.ma.getmaskarray(X).sum())
    if count and missing == "error":
        allowed = "no mask, or missing='ignore' to treat masked entries as not observed"
        raise InputError(name, f"{count} masked entries", allowed)
    if not count:
        return X.data
    if X.dtype.kind not in "fiub":
        raise InputError(name, f"entries of type {X.dtype}", "an array of real numbers")
    return np.ma.filled(X.astype(X.dtype if X.dtype == np.float32 else np.float64), np.nan)


def fold_samples(X: FloatArray, sample_shape: tuple[int, ...] | None) -> FloatArray:
    """Give every row of a 2-D X the shape `sample_shape`."""
    if sample_shape is None:
        return X
    if X.ndim != 2:
        raise InputError("sample_shape", f"{sample_shape} for X of {X.ndim} dimensions", "2-dimensional X")
    whole = all(isinstance(size, numbers.Integral) and int(size) > 0 for size in list[Any](sample_shape))
    if not whole or math.prod(sample_shape) != X.shape[1]:
        allowed = f"positive sizes whose product is the number of features of X, {X.shape[1]}"
        raise InputError("sample_shape", str(tuple(sample_shape)), allowed)
    return X.reshape(len(X), *sample_shape)


def normalise_samples(tensor: NonnegativeTensor, norm: str | None) -> tuple[NonnegativeTensor, FloatArray]:
    """Divide every sample by its norm ("l2", "l1" or None); return tensor and norms (1 for zeros).

    Where entries are missing the norm is that of the observed ones, scaled up as if the missing ones were
    like them, so that a sample does not grow because less of it was seen.
    """
    values = tensor.values
    axes = tuple(range(1, values.ndim))
    if norm is None:
        return tensor, np.ones(len(values), values.dtype)
    power = 2 if norm == "l2" else 1
    norms = np.concatenate([_sample_norms(values[rows], power) for rows in sample_blocks(values.shape)])
    if tensor.observed is not None:
        norms /= tensor.observed.mean(axis=axes) ** (1 / power)
    if norms.max() > np.finfo(values.dtype).max:
        allowed = "smaller numbers, or dtype='float64' for float32 data"
        raise InputError("X", f"a sample whose norm {norms.max():g} is out of range", allowed)
    scale = np.where(norms > 0, norms, 1).astype(values.dtype)
    divided = values / scale.reshape(-1, *(1,) * len(axes))
    return NonnegativeTensor(divided, tensor.observed), scale


def _sample_norms(block: FloatArray, power: int) -> FloatArray:
    """Norms of some samples, summed in float64 without overflow."""
    rows = block.reshape(len(block), -1).astype(np.float64)
    largest = rows.max(axis=1)
    rows /= np.where(largest > 0, largest, 1)[:, None]
    norms: FloatArray = largest * (rows**power).sum(axis=1) ** (1 / power)
    return norms


class Rows(Protocol):
    """A tensor of which blocks of samples can be had: an array, or a model that forms them."""

    def __getitem__(self, rows: slice, /) -> FloatArray:
        """Return a block of samples."""
        ...


def fill_missing(tensor: NonnegativeTensor, model: Rows) -> FloatArray:
    """Copy the entries, with those of the model where nothing was observed, a block of samples at a time."""
    filled = tensor.values.copy()
    if tensor.observed is not None:
        for rows in sample_blocks(filled.shape):
            np.copyto(filled[rows], model[rows], where=~tensor.observed[rows], casting="same_kind")
    return filled


def relative_error(tensor: NonnegativeTensor, model: Rows) -> float:
    """|X - X^| / |X| over the observed entries, in the Frobenius norm, a block of samples at a time."""
    errors, sizes = [], []
    for rows in sample_blocks(tensor.values.shape):
        values = tensor.values[rows].astype(np.float64)
        difference = values - model[rows]
        if tensor.observed is not None:
            difference[~tensor.observed[rows]] = 0
        errors.append(_norm(difference))
        sizes.append(_norm(values))
    error, size = math.hypot(*errors), math.hypot(*sizes)
    return error / size if size > 0 else error


def _norm(values: FloatArray) -> float:
    """Frobenius norm, without overflow."""
    largest = float(np.abs(values).max())
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * math.sqrt(np.square(values / largest).sum())


def as_real_array(values: Any, name: str, allowed: str = "an array of real numbers") -> NDArray[Any]:
    """Return an array of real numbers of any kind, or say which argument is none."""
    if np.ma.is_masked(values):
        raise InputError(name, "masked entries", allowed)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(name, f"{type(values).__name__} that is no array ({error})", allowed) from error
    if array.dtype.kind not in "fiub":
        raise InputError(name, f"entries of type {array.dtype}", allowed)
    return array


def _as_floats(X: Any, name: str, dtype: Any) -> FloatArray:
    values = as_real_array(X, name)
    keep = values.dtype in (np.float32, np.float64)
    target = dtype if dtype is not None else (values.dtype if keep else np.float64)
    return np.ascontiguousarray(values, dtype=target)


def _nonnegative(values: FloatArray, name: str) -> FloatArray:
    if values.min() < 0:
        raise InputError(name, f"negative entries (smallest {values.min():g})", "nonnegative numbers")
    return values
