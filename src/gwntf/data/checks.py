"""Validation of entries: one set of checks and messages for all kinds of data."""

import math
import numbers
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import Backend, is_tensor, to_host
from gwntf.core import Array, InputError

FINITE = "finite nonnegative numbers"

REAL = "an array of real numbers"

_CONVERT = f"{REAL}. Convert text and dates to numbers first, or leave them out"


class Summary(NamedTuple):
    """Extremes and counts of the entries of a block."""

    tops: Array  # Largest entry of every sample, zero if it has no entries
    smallest: float  # Smallest entry
    negative: int = 0  # Number of negative entries
    missing: int = 0  # Number of NaN entries
    empty: int | None = None  # Index of a sample without observed entries
    sparse: bool = False  # Whether entries that are not stored are observed zeros


_MAX_SUM_FRACTION = 1 / 16
"""Largest sum of a sample as a fraction of the largest number, because the sum of its model may be slightly larger."""


def check_entries(found: Sequence[Summary], slices: Sequence[slice], missing: str, *, name: str = "X") -> bool:
    """Raise an error for invalid entries; return whether none is missing."""
    if any(math.isinf(block.smallest) or bool((block.tops == math.inf).any()) for block in found):
        raise InputError(name, "infinite entries", FINITE)
    missing_count = sum(block.missing for block in found)
    if missing_count and found[0].sparse:
        allowed = f"{FINITE}, or a dense array with missing='ignore'; in a sparse array no entry can be missing"
        raise InputError(name, _count(missing_count, "NaN"), allowed)
    if missing_count and missing == "error":
        allowed = f"{FINITE}, or missing='ignore' to treat NaN as not observed"
        raise InputError(name, _count(missing_count, "NaN"), allowed)
    negative = sum(block.negative for block in found)
    if negative:
        given = f"{_count(negative, 'negative')} (smallest {min(block.smallest for block in found):g})"
        allowed = (
            "nonnegative numbers. Negative values in data that are noise can be set to zero, np.maximum(X, 0); if X "
            "was centred or standardised, use the original values"
        )
        raise InputError(name, given, allowed)
    for part, block in zip(slices, found, strict=True):
        if block.empty is not None:
            given = f"no observed entry in sample {part.start + block.empty}"
            raise InputError(name, given, "at least one in every sample")
    return missing_count == 0


def check_shape(shape: Sequence[int], name: str = "X") -> None:
    """Check that there is at least one sample and one feature."""
    if len(shape) < 2:
        raise InputError(name, f"{len(shape)} dimension(s)", "2 or more dimensions, samples first")
    if 0 in shape:
        raise InputError(name, f"the empty shape {tuple(shape)}", "at least one entry along every axis")


def check_kind(dtype: Any, name: str = "X", allowed: str = REAL) -> None:
    """Check that a dtype, of NumPy or of another library, is one of real numbers."""
    kind = getattr(dtype, "kind", None)
    if (kind is None and "complex" in str(dtype)) or (kind is not None and kind not in "fiub"):
        text = kind is not None and kind in "SUTmM" and allowed == REAL
        raise InputError(name, f"entries of type {dtype}", _CONVERT if text else allowed)


def check_layout(values: Any, name: str = "X") -> None:
    """Raise an error for sparse torch tensors."""
    if is_tensor(values) and str(values.layout) != "torch.strided":
        allowed = "a dense tensor (X.to_dense()), or a sparse array of SciPy or the `sparse` library"
        raise InputError(name, f"a tensor of layout {values.layout}", allowed)


def refuse_text(X: Any, name: str = "X") -> Any:
    """Raise an error for text and dates, which NumPy would convert; return lists as arrays, all else unchanged."""
    dtypes = X.dtypes if hasattr(X, "columns") else [getattr(X, "dtype", None)]
    if all(getattr(dtype, "kind", "O") in "fiubc" for dtype in dtypes):
        return X
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InputError(name, f"a {type(X).__name__} that cannot be converted to an array ({error})", REAL) from error
    if array.dtype.kind in "SUTmM":
        check_kind(array.dtype, name)
    if array.dtype.kind == "O":
        for entry in array.flat:
            if isinstance(entry, str | bytes | date | timedelta | np.datetime64 | np.timedelta64):
                raise InputError(name, f"entries that are not numbers, such as {entry!r}", _CONVERT)
    return array if isinstance(X, list | tuple) else X


def as_real_array(values: Any, name: str, allowed: str = REAL) -> NDArray[Any]:
    """Convert an argument to an array of real numbers, or raise an error that names it."""
    if np.ma.is_masked(values):
        raise InputError(name, "masked entries", allowed)
    try:
        array = np.asarray(to_host(values))
    except (ValueError, TypeError) as error:
        given = f"a {type(values).__name__} that cannot be converted to an array ({error})"
        raise InputError(name, given, allowed) from error
    check_kind(array.dtype, name, allowed)
    return array


def check_sample_shape(sample_shape: Sequence[Any], shape: Sequence[int]) -> tuple[int, ...]:
    """Check the shape into which every row of a 2-dimensional X is folded."""
    if len(shape) != 2:
        raise InputError("sample_shape", f"{sample_shape} for X of {len(shape)} dimensions", "2-dimensional X")
    valid = all(isinstance(size, numbers.Integral) and int(size) > 0 for size in sample_shape)
    if not valid or math.prod(sample_shape) != shape[1]:
        allowed = f"positive sizes whose product is the number of features of X, {shape[1]}"
        raise InputError("sample_shape", str(tuple(sample_shape)), allowed)
    return tuple(int(size) for size in sample_shape)


def check_range(tops: Array, dtype: Any, *, every: bool, name: str = "X") -> None:
    """Check that the largest entries of the samples are in the range of a dtype, before the data are converted to it.

    Entries below the smallest normal number lose digits or become zero, which does not matter next to larger entries.
    Therefore an error is raised only if all entries are that small: all those of a sample if `every` sample is scaled
    by its norm, otherwise all those of the data.
    """
    info = np.finfo(dtype)
    top, least, most = float(tops.max()), float(info.smallest_normal), float(info.max)
    if top > most:
        raise InputError(name, f"numbers up to {top:g}", f"at most {most:.3g} for {info.dtype}, or {_remedy(info)}")
    lowest = top
    if every:
        counted = tops[tops > 0]
        lowest = float(counted.min()) if counted.shape[0] else 0.0
    if 0 < lowest < least:
        given = f"a sample whose largest entry is {lowest:g}" if every else f"no entry larger than {lowest:g}"
        allowed = f"at least {least:.3g}, below which {info.dtype} loses digits, or {_remedy(info)}"
        raise InputError(name, given, allowed)


def check_unscaled(dtype: Any, largest: float, mass: float, degrees: tuple[int, int]) -> None:
    """Check the range of data whose samples are not scaled: the powers in the objective must not under- or overflow.

    `degrees` are the power of the largest entry that must be well above the smallest normal number, and the power of
    the sum of all entries that must be finite.
    """
    info = np.finfo(dtype)
    least = (float(info.smallest_normal) / float(info.eps)) ** (1 / degrees[0])
    most = float(info.max) ** (1 / degrees[1])
    if largest < least:
        given, allowed = f"no entry larger than {largest:g}", f"some entries of at least {least:.1g}"
    elif mass > most:
        given, allowed = f"entries whose sum is {mass:g}", f"a sum of at most {most:.1g}"
    else:
        return
    raise InputError("X", f"{given}, without sample_norm", f"{allowed}, sample_norm='l2', or {_remedy(info)}")


def check_norms(backend: Backend, norms: Array, dtype: np.dtype[Any], ratio: float) -> Array:
    """Return norms in the dtype of the samples, with zeros replaced by one; raise an error if sums may overflow.

    `ratio` is the largest possible ratio of the sum of a sample to its norm. Embeddings are in the units of these sums.
    """
    xp = backend.xp
    largest = ratio * float(xp.max(norms))
    if largest > _MAX_SUM_FRACTION * float(np.finfo(dtype).max):
        allowed = "smaller numbers, or dtype='float64' for float32 data"
        raise InputError("X", f"a sample whose entries may sum to {largest:g}, which is out of range", allowed)
    return backend.asarray(xp.where(norms > 0, norms, xp.ones_like(norms)), dtype)


def _count(number: int, kind: str) -> str:
    return f"{number} {kind} {'entry' if number == 1 else 'entries'}"


def _remedy(info: Any) -> str:
    """Return advice for data out of the range of a dtype."""
    return "other units" if info.dtype == np.float64 else "dtype='float64'"
