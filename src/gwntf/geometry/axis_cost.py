"""Ground cost between places along an axis in its own units, such as ppm, nanometres, hours or degrees."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gwntf.core import FloatArray, InputError
from gwntf.data import as_real_array

COLUMNS = "columns"
"""Value of `positions` for the column names of a data frame."""

_ROUNDING = 1e-9
"""Relative excess of a scale over the axis, or of the axis over the period, that is considered rounding."""

_MOST = 1e9
"""Largest range of the positions in units of the scale, where differences of positions are accurate."""

_SHOWN = 6


@dataclass(frozen=True, eq=False, repr=False)
class AxisCost:
    """The cost (distance / scale) ** power between places along an axis, in the units of the axis.

    The places need not be equally spaced, and no matrix is formed: with power 1 the time and memory of a product with
    the kernel are proportional to the number of places (`docs/mathematics.md`).

    Parameters
    ----------
    positions : array-like of shape (I,) or "columns"
        Position of every place, strictly increasing. "columns" takes them from the column names of a data frame X,
        which must be numbers.
    scale : float
        Distance with a cost of one, in the units of the positions: how far a feature may move. At most the range of
        the positions or, with a period, half the period.
    power : {1, 2}, default=1
        1 is the distance, 2 its square, with which short moves are nearly free. 2 takes longer on long axes.
    period : float, optional
        Circumference of a circle on which the places are, such as 24 for hours or 360 for degrees; the distance is then
        the shorter way around. By default the axis is a line.

    Examples
    --------
    Spectra over 200 chemical shifts, whose peaks may move by about 0.05 ppm:

    >>> import numpy as np
    >>> from gwntf import GWNTF, AxisCost
    >>> ppm = np.linspace(0.5, 9.5, 200)
    >>> cost = AxisCost(ppm, scale=0.05)
    >>> cost
    AxisCost(200 positions from 0.5 to 9.5, scale=0.05)
    >>> peaks = np.exp(-0.5 * ((ppm - [[2.0], [2.03], [7.0], [7.02]]) / 0.1) ** 2)
    >>> GWNTF(2, costs=(None, cost), graph_reg=0, max_iter=20, tol=0, random_state=0).fit_transform(peaks).shape
    (4, 2)

    Hours on a clock, one at the far side:

    >>> AxisCost(np.arange(24), scale=12, period=24).to_matrix()[23, [0, 5, 11]].round(3)
    array([0.083, 0.5  , 1.   ])
    """

    positions: FloatArray | str
    scale: float
    power: int
    period: float | None

    def __init__(self, positions: Any, scale: float, power: int = 1, period: float | None = None) -> None:
        if not (isinstance(positions, str) and positions == COLUMNS):
            positions = _as_positions(positions, "positions")
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "scale", _positive(scale, "scale"))
        if isinstance(power, bool) or power not in (1, 2):
            raise InputError("power", repr(power), "1 or 2")
        object.__setattr__(self, "power", int(power))
        object.__setattr__(self, "period", None if period is None else _positive(period, "period"))
        if not self.named:
            self._check_lengths()

    @property
    def named(self) -> bool:
        """Whether the positions are the column names of X, which are known in `fit`."""
        return isinstance(self.positions, str)

    @property
    def size(self) -> int:
        """Number of places."""
        if self.named:
            raise InputError("positions", repr(COLUMNS), "an array of positions where there is no data frame")
        return len(self.positions)

    @property
    def straight(self) -> bool:
        """Whether the places are on a line, or on so small a part of a circle that the period makes no difference."""
        positions = np.asarray(self.positions)
        return self.period is None or bool(positions[-1] - positions[0] <= self.period / 2)

    @property
    def is_line(self) -> bool:
        """Whether it is the distance between several places on a line."""
        return self.power == 1 and self.size > 1 and self.straight

    def at_columns(self, names: Sequence[Any] | None, name: str) -> AxisCost:
        """Return the cost at the positions given by the column names of X; `name` is the argument in error messages."""
        if names is None:
            allowed = "a data frame X with one column for every entry of the axis, or an array of positions"
            raise InputError(name, f"AxisCost({COLUMNS!r}) for an axis of X without column names", allowed)
        return AxisCost(_as_positions([_number(n, k) for k, n in enumerate(names)], "X.columns"), **self._rest())

    def to_matrix(self) -> FloatArray:
        """Return the full cost matrix, for solvers that need one.

        Examples
        --------
        >>> from gwntf import AxisCost
        >>> AxisCost([0.0, 1.0, 4.0], scale=2.0).to_matrix()
        array([[0. , 0.5, 2. ],
               [0.5, 0. , 1.5],
               [2. , 1.5, 0. ]])
        """
        places = np.arange(self.size)
        return self.between(places[:, None], places)

    def between(self, rows: Any, columns: Any) -> FloatArray:
        """Return the costs between places with given indices, which are broadcast."""
        positions = np.asarray(self.positions)
        distances = np.abs(positions[rows] - positions[columns])
        if self.period is not None:
            distances = np.minimum(distances, np.maximum(self.period - distances, 0))
        costs: FloatArray = (distances / self.scale) ** self.power
        return costs

    def _check_lengths(self) -> None:
        """Check scale and period against the range of the positions."""
        positions = np.asarray(self.positions)
        reach = float(positions[-1] - positions[0])
        if self.period is not None and self.period < reach * (1 - _ROUNDING):
            raise InputError("period", repr(self.period), f"at least the range of the positions, {reach:g}")
        longest = reach if self.period is None else self.period / 2
        if len(positions) > 1 and self.scale > longest * (1 + _ROUNDING):
            what = "the range of the positions" if self.period is None else "half the period"
            raise InputError("scale", repr(self.scale), f"at most {what}, {longest:g}: the distance with a cost of one")
        if self.scale < reach / _MOST:
            raise InputError("scale", repr(self.scale), f"at least {reach / _MOST:g}, a part in {_MOST:g} of the axis")

    def _rest(self) -> dict[str, Any]:
        return {"scale": self.scale, "power": self.power, "period": self.period}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AxisCost):
            return NotImplemented
        return self._rest() == other._rest() and np.array_equal(self.positions, other.positions)

    def __hash__(self) -> int:
        places = self.positions if isinstance(self.positions, str) else self.positions.tobytes()
        return hash((places, self.scale, self.power, self.period))

    def __reduce__(self) -> tuple[type[AxisCost], tuple[Any, ...]]:
        """Copy and pickle through the constructor, so that copies are immutable too."""
        return AxisCost, (self.positions, self.scale, self.power, self.period)

    def __repr__(self) -> str:
        places = self.positions
        if isinstance(places, str):
            shown = repr(places)
        elif len(places) <= _SHOWN:
            shown = str(places.tolist())
        else:
            shown = f"{len(places)} positions from {places[0]:g} to {places[-1]:g}"
        options = "" if self.power == 1 else f", power={self.power}"
        options += "" if self.period is None else f", period={self.period:g}"
        return f"AxisCost({shown}, scale={self.scale:g}{options})"


def _as_positions(values: Any, name: str) -> FloatArray:
    """Return strictly increasing positions as an immutable float64 array."""
    allowed = "a vector of at least one finite number, strictly increasing"
    positions = as_real_array(values, name, f"{allowed}, or {COLUMNS!r}").astype(np.float64) + 0.0  # no -0.0
    if positions.ndim != 1:
        raise InputError(name, f"{positions.ndim} dimension(s)", allowed)
    if not positions.size:
        raise InputError(name, "no position", allowed)
    wrong = np.flatnonzero(~np.isfinite(positions))
    if wrong.size:
        raise InputError(name, f"{positions[wrong[0]]} at index {wrong[0]}", allowed)
    wrong = np.flatnonzero(np.diff(positions) <= 0)
    if wrong.size:
        k = wrong[0]
        given = f"{positions[k + 1]:g} at index {k + 1} after {positions[k]:g} at index {k}"
        raise InputError(name, given, "strictly increasing positions: sort X along the axis, or add up equal places")
    positions.flags.writeable = False
    return positions


def _positive(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < math.inf:
        raise InputError(name, repr(value), "a positive finite number")
    return float(value)


def _number(label: Any, index: int) -> float:
    """Return a column name as a number."""
    try:
        return float(label)
    except (TypeError, ValueError) as error:
        allowed = f"column names that are numbers, for AxisCost({COLUMNS!r})"
        raise InputError("X.columns", f"{label!r} at index {index}", allowed) from error
