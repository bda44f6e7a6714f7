"""Range and counts of the entries of an array, before a fit."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

_BLOCK_ENTRIES = 2**22


@dataclass
class Summary:
    """Shape and type of an array, range of its finite entries, and numbers of entries that are 0, NaN and so on."""

    shape: tuple[int, ...]
    dtype: str
    sparse: bool  # whether it is a SciPy sparse array
    smallest: float = math.nan  # NaN without finite entries
    largest: float = math.nan
    zeros: int = 0
    missing: int = 0  # NaN
    infinite: int = 0
    negative: int = 0
    entries: int = 0  # all of them


def summarise(X: Any) -> Summary:
    """Return the summary of an array, read in blocks of samples where it is on disk."""
    shape = tuple(map(int, X.shape))
    found = Summary(shape, str(X.dtype), hasattr(X, "tocsr"), entries=math.prod(shape))
    blocks: Iterable[Any] = [X.data] if found.sparse else _blocks(X, found.entries)
    if found.sparse and X.nnz < found.entries:
        found.zeros, found.smallest, found.largest = found.entries - X.nnz, 0.0, 0.0
    for block in map(np.asarray, blocks):
        finite = block[np.isfinite(block)]
        found.missing += int(np.isnan(block).sum())
        found.infinite += int(np.isinf(block).sum())
        found.zeros += int((finite == 0).sum())
        found.negative += int((finite < 0).sum())
        if finite.size:
            found.smallest = float(np.fmin(found.smallest, finite.min()))
            found.largest = float(np.fmax(found.largest, finite.max()))
    return found


def _blocks(X: Any, entries: int) -> Iterable[Any]:
    rows = max(1, _BLOCK_ENTRIES * X.shape[0] // max(1, entries))
    return (X[start : start + rows] for start in range(0, X.shape[0], rows))
