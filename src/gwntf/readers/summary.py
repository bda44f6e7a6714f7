"""What data look like before anything is done with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_ENTRIES = 2**22


@dataclass(frozen=True)
class Summary:
    """Shape, type and values of an array; the range is over entries that are finite.

    Attributes
    ----------
    shape, dtype
        Of the array.
    sparse : bool
        Whether only some entries are stored.
    smallest, largest : float
        Finite entries; NaN where there are none.
    zeros, missing, infinite, negative : int
        Entries that are 0, NaN, infinite or below 0.
    entries : int
        All entries.
    """

    shape: tuple[int, ...]
    dtype: str
    sparse: bool
    smallest: float
    largest: float
    zeros: int
    missing: int
    infinite: int
    negative: int
    entries: int


def summarise(X: Any) -> Summary:
    """Look at every entry, a block of samples at a time, of an array that may lie on disk."""
    shape = tuple(int(length) for length in X.shape)
    entries = int(np.prod([float(length) for length in shape]))
    if hasattr(X, "tocsr"):
        parts = [np.asarray(X.data)]
        zeros = entries - X.nnz
    else:
        rows = max(1, _ENTRIES * shape[0] // max(1, entries))
        parts = (np.asarray(X[start : start + rows]) for start in range(0, shape[0], rows))  # type: ignore[assignment]
        zeros = 0
    smallest, largest, missing, infinite, negative = np.inf, -np.inf, 0, 0, 0
    for part in parts:
        finite = part[np.isfinite(part)]
        missing += int(np.isnan(part).sum())
        infinite += int(np.isinf(part).sum())
        zeros += int((finite == 0).sum())
        negative += int((finite < 0).sum())
        if finite.size:
            smallest, largest = min(smallest, float(finite.min())), max(largest, float(finite.max()))
    if hasattr(X, "tocsr") and entries > X.nnz:
        smallest, largest = min(smallest, 0.0), max(largest, 0.0)
    found = smallest <= largest
    return Summary(
        shape,
        str(X.dtype),
        hasattr(X, "tocsr"),
        smallest if found else np.nan,
        largest if found else np.nan,
        zeros,
        missing,
        infinite,
        negative,
        entries,
    )
