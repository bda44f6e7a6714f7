"""Choices made from the data alone: the scale of the cost, and the price of mass that is not moved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gwntf.core import FloatArray

REG = 0.008
"""Weight of the entropy in relation to the cost of moving a unit of mass by the scale."""

_OUTSIDE = 0.005
"""Fraction of the mean part on either side of its extent."""

_COUNTS, _LEAST, _MOST = 1 / 60, 0.2, 2.0
"""Price per root of the counts, and its limits."""

_MEDIAN = 0.455
"""Median of the square of a standard normal number."""


def extent(positions: FloatArray, parts: FloatArray) -> float:
    """Return the length of the axis that has all but one percent of the mean part; parts are the columns, of sum one.

    The mass of a place is spread evenly over its cell. The extent depends neither on the samples nor on empty places at
    both ends of the axis.
    """
    total = np.concatenate([[0.0], np.cumsum(parts.mean(axis=1))])
    first, last = np.interp([_OUTSIDE, 1 - _OUTSIDE], total / total[-1], cell_edges(positions))
    return float(last - first)


def cell_edges(positions: FloatArray) -> FloatArray:
    """Return the ends of the cells around places, in the middle between neighbours."""
    middle = (positions[1:] + positions[:-1]) / 2
    return np.concatenate([[2 * positions[0] - middle[0]], middle, [2 * positions[-1] - middle[-1]]])


def effective_counts(rows: FloatArray) -> NDArray[np.float64]:
    """Return the number of counts whose Poisson noise would be as large as that of every row, whatever its unit.

    The noise is seen in the differences between a value and the mean of its neighbours, whose variance is 3/2 of that
    of a value: the median of their squares over the mean of the three values is that of a squared normal number.
    """
    left, middle, right = rows[:, :-2], rows[:, 1:-1], rows[:, 2:]
    means, differences = (left + middle + right) / 3, middle - (left + right) / 2
    known = means > 0
    ratios = np.sort(np.where(known, differences**2 / (1.5 * np.where(known, means, 1.0)), np.inf), axis=1)
    count = np.maximum(known.sum(axis=1), 1)[:, None]
    low, high = (np.take_along_axis(ratios, place, axis=1)[:, 0] for place in ((count - 1) // 2, count // 2))
    noise = (low + high) / (2 * _MEDIAN)
    seen = (noise > 0) & np.isfinite(noise)
    return np.where(seen, rows.sum(axis=1) / np.where(seen, noise, 1.0), np.inf)


def price_of_counts(counts: FloatArray) -> FloatArray:
    """Return the price of creating or removing a unit of mass, in units of the cost of moving it by the scale.

    Few counts need a low price, because most of the difference is noise, which should not be moved.
    """
    prices: FloatArray = np.clip(np.sqrt(counts) * _COUNTS, _LEAST, _MOST)
    return prices
