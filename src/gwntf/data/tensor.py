"""A validated nonnegative tensor, samples first."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gwntf.core import Array, FloatArray, InputError
from gwntf.backends import Backend, get_backend, to_host
from gwntf.data.blocks import pieces, sample_blocks


@dataclass(frozen=True)
class NonnegativeTensor:
    """Entries and, where some are missing, which of them were observed.

    Attributes
    ----------
    values : array of the backend
        Finite and nonnegative, zero where nothing was observed.
    observed : array of bool or None
        None when every entry was.
    backend : Backend
        Owner of both; NumPy by default.
    """

    values: Array
    observed: Array | None = None
    backend: Backend = field(default_factory=lambda: get_backend("numpy"))

    def __reduce__(self) -> tuple[type[NonnegativeTensor], tuple[Any, ...]]:
        """Travel without what can be had again."""
        return NonnegativeTensor, (self.values, self.observed, self.backend)

    def __sizeof__(self) -> int:
        return int(self.values.nbytes) + (0 if self.observed is None else int(self.observed.nbytes))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values."""
        return tuple(self.values.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the values."""
        kind: np.dtype[Any] = self.backend.dtype(self.values)
        return kind

    @cached_property
    def rows(self) -> Array:
        """One row per sample."""
        return self.values.reshape(self.shape[0], -1)

    @property
    def on_host(self) -> NonnegativeTensor:
        """The same in NumPy arrays, for what only the host can do."""
        return self if isinstance(self.values, np.ndarray) else self._copy_on_host

    @cached_property
    def _copy_on_host(self) -> NonnegativeTensor:
        observed = None if self.observed is None else self.backend.to_numpy(self.observed)
        return NonnegativeTensor(self.backend.to_numpy(self.values), observed)

    def of(self, samples: slice) -> NonnegativeTensor:
        """Return some of the samples."""
        observed = None if self.observed is None else self.observed[samples]
        return replace(self, values=self.values[samples], observed=observed)

    @property
    def sample_sums(self) -> Array:
        """Sum of every sample, in float64."""
        xp = self.backend.xp
        return xp.sum(self.backend.asarray(self.rows), axis=1, dtype=xp.float64)

    @property
    def complete(self) -> bool:
        """Whether every entry was observed."""
        return self.observed is None

    @property
    def mass(self) -> float:
        """Sum of all entries."""
        xp = self.backend.xp
        return float(xp.sum(self.values, dtype=xp.float64))

    @property
    def largest(self) -> float:
        """Largest entry."""
        return float(self.backend.xp.max(self.values))

    def observed_sums(self, others: FloatArray) -> Array:
        """Which entries were observed, one row per sample, times a matrix with one row per entry of a sample."""
        backend, xp, observed = self.backend, self.backend.xp, self.observed
        placed = backend.asarray(others)
        if observed is None:
            return xp.zeros_like(self.rows[:, :1], dtype=placed.dtype) + xp.sum(placed, axis=0)
        seen = observed.reshape(*self.rows.shape)
        blocks = sample_blocks(self.shape, backend.block_entries)
        return xp.concat(backend.map(lambda rows: xp.astype(seen[rows], placed.dtype) @ placed, blocks))

    def batches(self, entries: int) -> Iterator[slice]:
        """Cut the samples into batches of about so many entries."""
        return pieces(self.shape[0], max(1, entries // max(1, math.prod(self.shape[1:]))))

    def normalised(self, norm: str | None) -> tuple[NonnegativeTensor, Array]:
        """See `normalise_samples`."""
        return normalise_samples(self, norm)

    def relative_error(self, model: Rows) -> float:
        """See `relative_error`."""
        return relative_error(self, model)

    def filled(self, model: Rows) -> Array:
        """See `fill_missing`."""
        return fill_missing(self, model)


def as_tensor(X: Any, *, name: str = "X", missing: str = "error", dtype: Any = None) -> NonnegativeTensor:
    """Check a nonnegative array of order N >= 2 and bring it into floating point.

    float32 and float64 are kept, everything else becomes float64, unless `dtype` asks for one of the two.
    With ``missing="ignore"`` NaN and the mask of a masked array mean "not observed".
    """
    values = _as_floats(masked_to_nan(X, name=name, missing=missing), name, dtype)
    check_shape(values.shape, name)
    return check_values(get_backend("numpy"), values, name=name, missing=missing)


def check_shape(shape: Sequence[int], name: str = "X") -> None:
    """Check that there are samples and features."""
    if len(shape) < 2:
        raise InputError(name, f"{len(shape)} dimension(s)", "2 or more dimensions, samples first")
    if 0 in shape:
        raise InputError(name, f"the empty shape {tuple(shape)}", "at least one entry along every axis")


def check_values(
    backend: Backend, values: Array, *, name: str = "X", missing: str = "error"
) -> NonnegativeTensor:
    """Check the entries of a floating-point array where it lives."""
    xp = backend.xp
    if bool(xp.any(xp.isinf(values))):
        raise InputError(name, "infinite entries", "finite nonnegative numbers")
    holes = xp.isnan(values)
    if not bool(xp.any(holes)):
        return NonnegativeTensor(_nonnegative(xp, values, name), None, backend)
    if missing == "error":
        allowed = "finite nonnegative numbers, or missing='ignore' to treat NaN as not observed"
        raise InputError(name, f"{int(xp.sum(holes))} NaN entries", allowed)
    unseen = xp.nonzero(xp.all(holes.reshape(values.shape[0], -1), axis=1))[0]
    if unseen.shape[0]:
        raise InputError(
            name, f"no observed entry in sample {int(unseen[0])}", "at least one in every sample"
        )
    whole = without_holes(NonnegativeTensor(values, None, backend))
    _nonnegative(xp, whole.values, name)
    return whole


def without_holes(tensor: NonnegativeTensor) -> NonnegativeTensor:
    """Put zero where NaN is, and note what was observed; where nothing is missing, return the same."""
    xp, values = tensor.backend.xp, tensor.values
    holes = xp.isnan(values)
    if not bool(xp.any(holes)):
        return tensor
    return NonnegativeTensor(xp.where(holes, xp.zeros_like(values), values), ~holes, tensor.backend)


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


def fold_samples(X: Array, sample_shape: tuple[int, ...] | None) -> Array:
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


def normalise_samples(tensor: NonnegativeTensor, norm: str | None) -> tuple[NonnegativeTensor, Array]:
    """Divide every sample by its norm ("l2", "l1" or None); return tensor and norms (1 for zeros).

    Where entries are missing the norm is that of the observed ones, scaled up as if the missing ones were
    like them, so that a sample does not grow because less of it was seen.
    """
    xp, values = tensor.backend.xp, tensor.values
    if norm is None:
        return tensor, xp.ones_like(tensor.rows[:, 0])
    scale = check_norms(tensor.backend, sample_norms(tensor, 2 if norm == "l2" else 1), tensor.dtype)
    divided = values / scale.reshape(-1, *(1,) * (len(tensor.shape) - 1))
    return replace(tensor, values=divided), scale


def sample_norms(tensor: NonnegativeTensor, power: int) -> Array:
    """Norm of every sample in float64, as if the missing entries were like those observed."""
    xp = tensor.backend.xp
    blocks = sample_blocks(tensor.shape, tensor.backend.block_entries)
    norms = xp.concat(tensor.backend.map(lambda rows: _norms(xp, tensor.rows[rows], power), blocks))
    if tensor.observed is not None:
        seen = tensor.observed.reshape(*tensor.rows.shape)
        norms = norms / (xp.sum(seen, axis=1, dtype=xp.float64) / seen.shape[1]) ** (1 / power)
    return norms


def check_norms(backend: Backend, norms: Array, dtype: np.dtype[Any]) -> Array:
    """Return norms in the number type of the samples, one for zeros, or refuse those that it does not hold."""
    xp = backend.xp
    largest = float(xp.max(norms))
    if largest > float(np.finfo(dtype).max):
        allowed = "smaller numbers, or dtype='float64' for float32 data"
        raise InputError("X", f"a sample whose norm {largest:g} is out of range", allowed)
    return backend.asarray(xp.where(norms > 0, norms, xp.ones_like(norms)), dtype)


def _norms(xp: Any, block: Array, power: int) -> Array:
    """Norms of some samples, summed in float64 without overflow."""
    rows = xp.astype(block, xp.float64)
    largest = xp.max(rows, axis=1)
    rows = rows / xp.where(largest > 0, largest, xp.ones_like(largest))[:, None]
    return largest * xp.sum(rows**power, axis=1) ** (1 / power)


class Rows(Protocol):
    """A tensor of which blocks of samples can be had: an array, or a model that forms them."""

    def __getitem__(self, rows: slice, /) -> Array:
        """Return a block of samples."""
        ...


def fill_missing(tensor: NonnegativeTensor, model: Rows) -> Array:
    """Copy the entries, with those of the model where nothing was observed, a block of samples at a time."""
    xp, observed = tensor.backend.xp, tensor.observed
    filled = xp.asarray(tensor.values, copy=True)
    if observed is None:
        return filled

    def visit(rows: slice) -> None:
        filled[rows] = xp.where(observed[rows], filled[rows], model[rows])

    tensor.backend.map(visit, sample_blocks(tensor.shape, tensor.backend.block_entries))
    return filled


def relative_error(tensor: NonnegativeTensor, model: Rows) -> float:
    """|X - X^| / |X| over the observed entries, in the Frobenius norm."""
    error, size = error_and_size(tensor, model)
    return error / size if size > 0 else error


def error_and_size(tensor: NonnegativeTensor, model: Rows) -> tuple[float, float]:
    """|X - X^| and |X| over the observed entries, a block of samples at a time."""
    xp = tensor.backend.xp

    def visit(rows: slice) -> tuple[float, float]:
        values = xp.astype(tensor.values[rows], xp.float64)
        difference = values - model[rows]
        if tensor.observed is not None:
            difference = xp.where(tensor.observed[rows], difference, xp.zeros_like(difference))
        return _norm(xp, difference), _norm(xp, values)

    blocks = sample_blocks(tensor.shape, tensor.backend.block_entries)
    errors, sizes = zip(*tensor.backend.map(visit, blocks), strict=True)
    return math.hypot(*errors), math.hypot(*sizes)


def _norm(xp: Any, values: Array) -> float:
    """Frobenius norm, without overflow."""
    largest = float(xp.max(xp.abs(values)))
    if largest == 0 or not math.isfinite(largest):
        return largest
    scaled = values / largest
    return largest * math.sqrt(float(xp.sum(scaled * scaled)))


def as_real_array(values: Any, name: str, allowed: str = "an array of real numbers") -> NDArray[Any]:
    """Return an array of real numbers of any kind, or say which argument is none."""
    if np.ma.is_masked(values):
        raise InputError(name, "masked entries", allowed)
    try:
        array = np.asarray(to_host(values))
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


def _nonnegative(xp: Any, values: Array, name: str) -> Array:
    smallest = float(xp.min(values))
    if smallest < 0:
        raise InputError(name, f"negative entries (smallest {smallest:g})", "nonnegative numbers")
    return values
