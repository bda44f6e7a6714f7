"""Whether a number type holds the data: entries when they are brought into it, and what is made of them later."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gwntf.core import Array, InputError


def check_largest(largest: Array, dtype: Any, *, every: bool) -> None:
    """Check the largest entry of each sample against a number type, before the data are brought into it.

    What is below the smallest normal number has lost its digits, or is zero. Beside a larger entry that is a rounding
    error like any other, so only samples are refused that have nothing else, if `every` sample is to be scaled by its
    own norm, and else only data that have nothing else.

    Parameters
    ----------
    largest : (n_samples,) array of any backend
        In the number type in which the data were given.
    dtype : NumPy dtype
        The one in which they will be worked with.
    every : bool
        Whether every sample counts for itself.
    """
    info = np.finfo(dtype)
    top, least, most = float(largest.max()), float(info.smallest_normal), float(info.max)
    if math.isfinite(top) and top > most:
        raise InputError(
            "X", f"numbers up to {top:g}", f"at most {most:.3g} in {info.dtype}, or {_other(info)}"
        )
    lowest = top
    if every:
        counted = largest[largest > 0]
        lowest = float(counted.min()) if counted.shape[0] else 0.0
    if 0 < lowest < least:
        given = f"a sample whose largest entry is {lowest:g}" if every else f"no entry larger than {lowest:g}"
        allowed = f"at least {least:.3g}, below which {info.dtype} loses digits, or {_other(info)}"
        raise InputError("X", given, allowed)


def check_unscaled(dtype: Any, largest: float, mass: float, degrees: tuple[int, int]) -> None:
    """Check data whose samples are not scaled: a number type must hold the powers of them that the objective takes.

    Parameters
    ----------
    dtype : NumPy dtype
        In which they are worked with.
    largest, mass : float
        Their largest entry, and their sum.
    degrees : (int, int)
        Powers of the one that must be a normal number with digits to spare, and of the other that must be finite.
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
    raise InputError("X", f"{given}, without sample_norm", f"{allowed}, sample_norm='l2', or {_other(info)}")


def _other(info: Any) -> str:
    """Say how to leave the ends of a number type."""
    return "other units" if info.dtype == np.float64 else "dtype='float64'"
