"""What the workers do: pure functions of a block of the data, its part of the sample factor, and small matrices.

Whatever travels is a NumPy array; data and scalings lie on the backend of the worker. What is large says how large it is
(`__sizeof__`), so that the scheduler leaves it where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gwntf.core import FloatArray
from gwntf.backends import Backend, get_backend
from gwntf.data import NonnegativeTensor
from gwntf.data.chunks import read


@dataclass(frozen=True)
class Place:
    """With which backend the workers compute."""

    device: str | None
    precision: str

    @cached_property
    def backend(self) -> Backend:
        """Made where it is first asked for."""
        return get_backend("auto", device=self.device, precision=self.precision)

    def __reduce__(self) -> Any:
        return Place, (self.device, self.precision)


@dataclass(frozen=True)
class Share:
    """What a block adds to a sum over all blocks: R_(1)' A(1) or X_(1)' A(1), A(1)' A(1), and the numbers of F."""

    others: FloatArray
    gram: FloatArray
    numbers: FloatArray

    def __sizeof__(self) -> int:
        return self.others.nbytes + self.gram.nbytes + self.numbers.nbytes

    def __add__(self, other: Share) -> Share:
        """Add part by part."""
        return Share(self.others + other.others, self.gram + other.gram, self.numbers + other.numbers)


def called(function: Callable[..., Any], block: NonnegativeTensor, *arguments: Any) -> Any:
    """Call a function with a block, in the session of its backend."""
    with block.backend.session(None):
        return function(block, *arguments)


def read_block(place: Place, source: Any, rows: slice, dtype: np.dtype[Any]) -> NonnegativeTensor:
    """Read some samples of a source, as they are."""
    return NonnegativeTensor(place.backend.asarray(read(source, rows), dtype), None, place.backend)


def in_type(block: NonnegativeTensor, dtype: np.dtype[Any]) -> NonnegativeTensor:
    """Bring a block into another number type."""
    return replace(block, values=block.backend.asarray(block.values, dtype))


def place_block(place: Place, block: NonnegativeTensor) -> NonnegativeTensor:
    """Bring a block to the backend of the worker."""
    backend = place.backend
    observed = None if block.observed is None else backend.asarray(block.observed)
    return NonnegativeTensor(backend.asarray(block.values), observed, backend)


def cut_columns(block: NonnegativeTensor, columns: slice) -> tuple[FloatArray, Any]:
    """Return some columns of the rows of a block, and which of their entries were observed."""
    host = block.on_host
    observed = None if host.observed is None else host.observed.reshape(host.rows.shape)[:, columns]
    return np.ascontiguousarray(host.rows[:, columns]), observed


def join_columns(place: Place, parts: Sequence[tuple[FloatArray, Any]]) -> NonnegativeTensor:
    """Put the parts of some columns that the blocks of samples have one below the other."""
    values, masks = zip(*parts, strict=True)
    holed = any(mask is not None for mask in masks)
    filled = [
        np.ones(part.shape, np.bool_) if mask is None else mask
        for part, mask in zip(values, masks, strict=True)
    ]
    observed = np.concatenate(filled) if holed else None
    return place_block(place, NonnegativeTensor(np.concatenate(values), observed))


def joined(parts: Sequence[FloatArray]) -> FloatArray:
    """Put rows one below the other."""
    return np.concatenate(parts)


def taken(rows: FloatArray, which: Any) -> FloatArray:
    """Return some rows."""
    return np.ascontiguousarray(rows[which])
