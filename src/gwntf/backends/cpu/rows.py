"""One pass over a block of samples under the least-squares loss: X_(1) A(-1), the update of A(1), X_(1)' A(1).

Factors have few columns, for which BLAS reaches half of the peak speed. This code processes four samples and four
components at a time, so that sixteen sums stay in registers, and a panel of samples is still in cache when it is read
again.
"""

from typing import Any

import numpy as np
from numba import njit

from gwntf.backends.cpu.cache import cached_njit
from gwntf.backends.cpu.products import LOOSE
from gwntf.backends.cpu.sources import digest_of_sources

PANEL, STRETCH = 32, 2048
"""Samples in a panel, and entries of a sample that are processed at a time."""

SKEW = 80
"""Padding of the rows of `others` and `sums`, without which the same entry of all rows could map to one cache set."""


@njit(**LOOSE)
def add_inner(x, i, b, c, start, stop, out):
    """Add the inner products of four rows of x with four of b, over some columns, to out."""
    x0, x1, x2, x3 = x[i, start:stop], x[i + 1, start:stop], x[i + 2, start:stop], x[i + 3, start:stop]
    b0, b1, b2, b3 = b[c, start:stop], b[c + 1, start:stop], b[c + 2, start:stop], b[c + 3, start:stop]
    s00 = s01 = s02 = s03 = x.dtype.type(0)
    s10 = s11 = s12 = s13 = x.dtype.type(0)
    s20 = s21 = s22 = s23 = x.dtype.type(0)
    s30 = s31 = s32 = s33 = x.dtype.type(0)
    for j in range(x0.size):
        p0, p1, p2, p3 = x0[j], x1[j], x2[j], x3[j]
        q0, q1, q2, q3 = b0[j], b1[j], b2[j], b3[j]
        s00, s01, s02, s03 = s00 + p0 * q0, s01 + p0 * q1, s02 + p0 * q2, s03 + p0 * q3
        s10, s11, s12, s13 = s10 + p1 * q0, s11 + p1 * q1, s12 + p1 * q2, s13 + p1 * q3
        s20, s21, s22, s23 = s20 + p2 * q0, s21 + p2 * q1, s22 + p2 * q2, s23 + p2 * q3
        s30, s31, s32, s33 = s30 + p3 * q0, s31 + p3 * q1, s32 + p3 * q2, s33 + p3 * q3
    for r, sums in enumerate(((s00, s01, s02, s03), (s10, s11, s12, s13), (s20, s21, s22, s23), (s30, s31, s32, s33))):
        out[i + r, c] += sums[0]
        out[i + r, c + 1] += sums[1]
        out[i + r, c + 2] += sums[2]
        out[i + r, c + 3] += sums[3]


@njit(**LOOSE)
def add_outer(x, i, a, c, start, stop, out):
    """Add four rows of x, over some columns, times the weights of four components to rows of out."""
    x0, x1, x2, x3 = x[i, start:stop], x[i + 1, start:stop], x[i + 2, start:stop], x[i + 3, start:stop]
    y0, y1 = out[c, start:stop], out[c + 1, start:stop]
    y2, y3 = out[c + 2, start:stop], out[c + 3, start:stop]
    a00, a01, a02, a03 = a[i, c], a[i, c + 1], a[i, c + 2], a[i, c + 3]
    a10, a11, a12, a13 = a[i + 1, c], a[i + 1, c + 1], a[i + 1, c + 2], a[i + 1, c + 3]
    a20, a21, a22, a23 = a[i + 2, c], a[i + 2, c + 1], a[i + 2, c + 2], a[i + 2, c + 3]
    a30, a31, a32, a33 = a[i + 3, c], a[i + 3, c + 1], a[i + 3, c + 2], a[i + 3, c + 3]
    for j in range(x0.size):
        p0, p1, p2, p3 = x0[j], x1[j], x2[j], x3[j]
        t0 = y0[j] + a00 * p0 + a10 * p1 + a20 * p2 + a30 * p3
        t1 = y1[j] + a01 * p0 + a11 * p1 + a21 * p2 + a31 * p3
        t2 = y2[j] + a02 * p0 + a12 * p1 + a22 * p2 + a32 * p3
        t3 = y3[j] + a03 * p0 + a13 * p1 + a23 * p2 + a33 * p3
        y0[j], y1[j], y2[j], y3[j] = t0, t1, t2, t3


@njit(**LOOSE)
def add_inner_row(x, i, b, c, start, stop, out):
    """`add_inner` for one row and one component."""
    row, other = x[i, start:stop], b[c, start:stop]
    total = x.dtype.type(0)
    for j in range(row.size):
        total += row[j] * other[j]
    out[i, c] += total


@njit(**LOOSE)
def add_outer_row(x, i, a, c, start, stop, out):
    """`add_outer` for one row and one component."""
    row, weight, sums = x[i, start:stop], a[i, c], out[c, start:stop]
    for j in range(row.size):
        sums[j] += weight * row[j]


@njit(**LOOSE)
def by_tiles(x, first, last, other, components, outer, out):
    """Add the inner or outer products of some samples with all components, whose number is a multiple of four.

    The branch in the loop is cheap compared with a tile; a function with a function as argument could not be cached.
    """
    even = last - (last - first) % 4
    for start in range(0, x.shape[1], STRETCH):
        stop = min(start + STRETCH, x.shape[1])
        for c in range(0, components, 4):
            for i in range(first, even, 4):
                if outer:
                    add_outer(x, i, other, c, start, stop, out)
                else:
                    add_inner(x, i, other, c, start, stop, out)
        for i in range(even, last):
            for c in range(components):
                if outer:
                    add_outer_row(x, i, other, c, start, stop, out)
                else:
                    add_inner_row(x, i, other, c, start, stop, out)


@njit(**LOOSE)
def move(a, attraction, denominator, product, moved):
    """Write a (product + attraction) / denominator of one sample to moved; return <moved, product>."""
    cross = 0.0
    for c in range(a.size):
        numerator = product[c] if attraction is None else product[c] + attraction[c]
        moved[c] = a[c] * numerator / denominator[c]
        cross += np.float64(moved[c] * product[c])
    return cross


def _compile(digest: int) -> Any:
    """Return the function that Python calls; see `sources` for the digest."""

    @cached_njit(**LOOSE)
    def step_rows(x, a, attraction, denominator, others, product, moved, sums):
        """Update some samples and add X_(1)' of them to sums, a panel at a time; return <moved, product>.

        `others` and `sums` have one row, and `moved` one column, for every component, padded with zeros to a multiple
        of four.
        """
        salt = digest  # noqa: F841
        cross = 0.0
        for first in range(0, x.shape[0], PANEL):
            last = min(first + PANEL, x.shape[0])
            product[first:last] = x.dtype.type(0)
            by_tiles(x, first, last, others, len(others), False, product)
            for i in range(first, last):
                pull = None if attraction is None else attraction[i]
                cross += move(a[i], pull, denominator[i], product[i], moved[i])
            by_tiles(x, first, last, moved, len(others), True, sums)
        return cross

    return step_rows


step_rows = _compile(digest_of_sources())
