"""What entries a fit can work with: one set of checks and messages for every kind of data."""

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

    tops: Array  # Largest entry of every sample, zero if it has none
    smallest: float  # Smallest entry
    # negative, missing: How many entries are negative, and how many are NaN
    negative: int = 0
    missing: int = 0
    empty: int | None = None  # A sample with no observed entry
    sparse: bool = False  # Whether entries that are not stored are observed zeros


_ROOM = 1 / 16
"""Part of the range of a number type that the sum of a sample may reach: that of its model may be a little larger."""


def check_entries(found: Sequence[Summary], slices: Sequence[slice], missing: str, *, name: str = "X") -> bool:
    """Refuse entries that no fit can use; return whether none is missing."""
    if any(math.isinf(block.smallest) or bool((block.tops == math.inf).any()) for block in found):
        raise InputError(name, "infinite entries", FINITE)
    holes = sum(block.missing for block in found)
    if holes and found[0].sparse:
        allowed = f"{FINITE}: entries that a sparse array does not store are zeros, none is missing. Data with missing "
        raise InputError(name, _count(holes, "NaN"), f"{allowed}entries need a dense array and missing='ignore'")
    if holes and missing == "error":
        allowed = f"{FINITE}, or missing='ignore' to treat NaN as not observed"
        raise InputError(name, _count(holes, "NaN"), allowed)
    negative = sum(block.negative for block in found)
    if negative:
        given = f"{_count(negative, 'negative')} (smallest {min(block.smallest for block in found):g})"
        allowed = (
            "nonnegative numbers. Negative values in data that are noise may be set to zero, np.maximum(X, 0); data "
            "that were centred or standardised have to be given as they were before"
        )
        raise InputError(name, given, allowed)
    for part, block in zip(slices, found, strict=True):
        if block.empty is not None:
            given = f"no observed entry in sample {part.start + block.empty}"
            raise InputError(name, given, "at least one in every sample")
    return holes == 0


def check_shape(shape: Sequence[int], name: str = "X") -> None:
    """Check that there are samples and features."""
    if len(shape) < 2:
        raise InputError(name, f"{len(shape)} dimension(s)", "2 or more dimensions, samples first")
    if 0 in shape:
        raise InputError(name, f"the empty shape {tuple(shape)}", "at least one entry along every axis")


def check_kind(dtype: Any, name: str = "X", allowed: str = REAL) -> None:
    """Check that entries are real numbers, given a dtype of NumPy or of another library."""
    kind = getattr(dtype, "kind", None)
    if (kind is None and "complex" in str(dtype)) or (kind is not None and kind not in "fiub"):
        text = kind is not None and kind in "SUTmM" and allowed == REAL
        raise InputError(name, f"entries of type {dtype}", _CONVERT if text else allowed)


def check_layout(values: Any, name: str = "X") -> None:
    """Refuse sparse tensors of torch."""
    if is_tensor(values) and str(values.layout) != "torch.strided":
        allowed = "a dense tensor (X.to_dense()), or a sparse array of SciPy or of the `sparse` library"
        raise InputError(name, f"a tensor of layout {values.layout}", allowed)


def refuse_text(X: Any, name: str = "X") -> Any:
    """Refuse text and dates, which NumPy would convert to numbers; return lists as arrays, all else unchanged."""
    dtypes = X.dtypes if hasattr(X, "columns") else [getattr(X, "dtype", None)]
    if all(getattr(dtype, "kind", "O") in "fiubc" for dtype in dtypes):
        return X
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InputError(name, f"{type(X).__name__} that is no array ({error})", REAL) from error
    if array.dtype.kind in "SUTmM":
        check_kind(array.dtype, name)
    if array.dtype.kind == "O":
        for entry in array.flat:
            if isinstance(entry, str | bytes | date | timedelta | np.datetime64 | np.timedelta64):
                raise InputError(name, f"entries that are no numbers, such as {entry!r}", _CONVERT)
    return array if isinstance(X, list | tuple) else X


def as_real_array(values: Any, name: str, allowed: str = REAL) -> NDArray[Any]:
    """Return an array of real numbers of any kind, or say which argument is none."""
    if np.ma.is_masked(values):
        raise InputError(name, "masked entries", allowed)
    try:
        array = np.asarray(to_host(values))
    except (ValueError, TypeError) as error:
        raise InputError(name, f"{type(values).__name__} that is no array ({error})", allowed) from error
    check_kind(array.dtype, name, allowed)
    return array


def check_sample_shape(sample_shape: Sequence[Any], shape: Sequence[int]) -> tuple[int, ...]:
    """Check the shape that every row of a 2-D X is to have."""
    if len(shape) != 2:
        raise InputError("sample_shape", f"{sample_shape} for X of {len(shape)} dimensions", "2-dimensional X")
    whole = all(isinstance(size, numbers.Integral) and int(size) > 0 for size in sample_shape)
    if not whole or math.prod(sample_shape) != shape[1]:
        allowed = f"positive sizes whose product is the number of features of X, {shape[1]}"
        raise InputError("sample_shape", str(tuple(sample_shape)), allowed)
    return tuple(int(size) for size in sample_shape)


def check_range(tops: Array, dtype: Any, *, every: bool, name: str = "X") -> None:
    """Check the largest entry of each sample against a number type, before the data are converted to it.

    Numbers below the smallest normal number have lost digits, or are zero. Beside a larger entry that is a rounding
    error like any other, so only samples are refused that have nothing else, if `every` sample is to be scaled by its
    own norm, and else only data that have nothing else.
    """
    info = np.finfo(dtype)
    top, least, most = float(tops.max()), float(info.smallest_normal), float(info.max)
    if top > most:
        raise InputError(name, f"numbers up to {top:g}", f"at most {most:.3g} in {info.dtype}, or {_remedy(info)}")
    lowest = top
    if every:
        counted = tops[tops > 0]
        lowest = float(counted.min()) if counted.shape[0] else 0.0
    if 0 < lowest < least:
        given = f"a sample whose largest entry is {lowest:g}" if every else f"no entry larger than {lowest:g}"
        allowed = f"at least {least:.3g}, below which {info.dtype} loses digits, or {_remedy(info)}"
        raise InputError(name, given, allowed)


def check_unscaled(dtype: Any, largest: float, mass: float, degrees: tuple[int, int]) -> None:
    """Check data whose samples are not scaled: a number type must hold the powers of them that the objective takes.

    `degrees` are the power of the largest entry that must be a normal number with digits to spare, and the power of the
    sum of all entries that must be finite.
    """
    info = np.finfo(dtype)
    least = (float(info.smallest_normal) / float(info.eps)) ** (1 / degrees[0])
    most = float(info.max) ** (1 / degrees[1])
    if largest < least:
        given, allowed = f"no entry larger than {largest:g}", f"some of at least {least:.1g}"
    elif mass > most:
        given, allowed = f"entries whose sum is {mass:g}", f"a sum of at most {most:.1g}"
    else:
        return
    raise InputError("X", f"{given}, without sample_norm", f"{allowed}, sample_norm='l2', or {_remedy(info)}")


def check_norms(backend: Backend, norms: Array, dtype: np.dtype[Any], ratio: float) -> Array:
    """Return norms in the number type of the samples, one for zeros, or refuse samples whose sum it does not hold.

    `ratio` is the largest one that the sum of a sample has to its norm. Embeddings are in the units of these sums.
    """
    xp = backend.xp
    largest = ratio * float(xp.max(norms))
    if largest > _ROOM * float(np.finfo(dtype).max):
        allowed = "smaller numbers, or dtype='float64' for float32 data"
        raise InputError("X", f"a sample whose entries may sum to {largest:g}, which is out of range", allowed)
    return backend.asarray(xp.where(norms > 0, norms, xp.ones_like(norms)), dtype)


def _count(number: int, kind: str) -> str:
    return f"{number} {kind} {'entry' if number == 1 else 'entries'}"


def _remedy(info: Any) -> str:
    """Say how to stay inside a number type."""
    return "other units" if info.dtype == np.float64 else "dtype='float64'"
