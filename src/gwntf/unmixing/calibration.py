"""Calibration: one shift or stretch of the axis for every sample.

Displaced parts are fitted by nonnegative least squares on a grid of displacements. The best one has the smallest sum of
(x - y)^2 / (x + y), which weighs a residual by the noise of counts; the transport objective would prefer displacements
that the plans explain as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import get_backend
from gwntf.core import FloatArray
from gwntf.unmixing.rules import cell_edges

KINDS = ("shift", "stretch")
"""Forms of a displacement: all places by the same distance, or in proportion to their positions."""

_STEP, _REACH = 0.004, 15
"""Distance between neighbouring displacements in relation to the scale, and their number on either side."""

_ACCEPTED = 0.7
"""Largest misfit of the best displacement, in relation to that without one, at which it is used."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Displacements of the parts of one axis.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    positions : (I,) array
        Strictly increasing.
    parts : (I, R) array
        Parts of sum one.
    scale : float
        Scale of the cost.
    reach : float or None
        Largest displacement, in the units of the axis, or largest stretch; by default fifteen steps of 0.004 scales.
    """

    kind: str
    positions: FloatArray
    parts: FloatArray
    scale: float
    reach: float | None = None

    @cached_property
    def amounts(self) -> FloatArray:
        """Return the displacements, shifts in units of the axis or stretches minus one, with zero in the middle."""
        step = _STEP * self.scale
        if self.kind == "stretch":
            step /= float(np.abs(self.positions).max())
        count = _REACH if self.reach is None else max(1, round(self.reach / step))
        step = step if self.reach is None else self.reach / count
        return step * np.arange(-count, count + 1)

    @cached_property
    def moved(self) -> FloatArray:
        """Return the parts at every displacement, (S, I, R); mass that leaves the axis is lost."""
        return np.stack([displaced(self.parts, self.positions, self.kind, amount) for amount in self.amounts])

    def misfits(self, rows: FloatArray) -> FloatArray:
        """Return the misfit of every row, of sum one, at every displacement."""
        from gwntf.backends.cpu import newton

        moved = self.moved
        grams, found = np.einsum("sir,siq->srq", moved, moved), np.empty((len(rows), len(moved)))
        backend: Any = get_backend("cpu")

        def fit(part: slice) -> None:
            newton.misfit_rows(np.ascontiguousarray(rows[part]), moved, grams, found[part])

        backend.run_rows("the calibration", newton.misfit_rows, fit, len(rows))
        return found

    def choose(self, rows: FloatArray) -> NDArray[np.int_]:
        """Return the index of the displacement of every row; that of zero where no other one is much better."""
        found, middle = self.misfits(rows), len(self.amounts) // 2
        best = np.argmin(found, axis=1)
        better = found[np.arange(len(rows)), best] < _ACCEPTED * found[:, middle]
        return np.where(better, best, middle)


def displaced(parts: FloatArray, positions: FloatArray, kind: str, amount: Any) -> FloatArray:
    """Return parts, the columns, moved along the axis: by an amount, or in proportion to the positions."""
    if amount == 0:
        return parts
    edges = cell_edges(positions)
    before = edges - amount if kind == "shift" else edges / (1 + amount)
    total = np.vstack([np.zeros(parts.shape[1]), np.cumsum(parts, axis=0)])
    return np.stack([np.diff(np.interp(before, edges, column)) for column in total.T], axis=1)
