"""Checks and scaling of the factors of a CP model, samples first."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gwntf.core import Array, FloatArray, InputError
from gwntf.data.algebra import khatri_rao
from gwntf.data.checks import as_real_array


def as_factors(factors: Any, shape: Sequence[int], rank: int, *, name: str = "init") -> list[FloatArray]:
    """Check given factors: one nonnegative (I_n, R) matrix per mode, no column empty."""
    if not isinstance(factors, Sequence) or len(factors) != len(shape):
        count = len(factors) if isinstance(factors, Sequence) else type(factors).__name__
        raise InputError(name, str(count), f"a sequence of {len(shape)} factors, one per axis of X")
    checked: list[FloatArray] = []
    for mode, (factor, length) in enumerate(zip(factors, shape, strict=True)):
        label = f"{name}[{mode}]"
        matrix = as_real_array(factor, label).astype(np.float64)
        if matrix.shape != (length, rank):
            raise InputError(label, f"shape {matrix.shape}", f"shape {(length, rank)}")
        if not np.isfinite(matrix).all() or matrix.min() < 0:
            raise InputError(label, "negative or non-finite entries", "finite nonnegative numbers")
        empty = np.flatnonzero(matrix.sum(axis=0) == 0)
        if empty.size:
            raise InputError(label, f"only zeros in column {empty[0]}", "a positive sum in every column")
        checked.append(matrix)
    return checked


def to_simplex(factors: Sequence[FloatArray]) -> list[FloatArray]:
    """Make the columns of every factor but the first sum to one; all scale moves to the samples."""
    samples, *rest = factors
    for factor in rest:
        samples = samples * factor.sum(axis=0)
    return [samples, *(factor / factor.sum(axis=0) for factor in rest)]


class KruskalRows:
    """The model of factors, of which blocks of samples are formed when they are asked for."""

    def __init__(self, factors: Sequence[Array]) -> None:
        self.factors = list(factors)

    @cached_property
    def _others(self) -> Array:
        return khatri_rao(self.factors[1:])

    def __getitem__(self, rows: slice, /) -> Array:
        """Return a block of samples."""
        block = self.factors[0][rows] @ self._others.T
        return block.reshape(block.shape[0], *(factor.shape[0] for factor in self.factors[1:]))
