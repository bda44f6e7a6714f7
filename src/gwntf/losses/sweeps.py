"""Coordinate descent for the least-squares loss (HALS): cheap sweeps over the components of one factor.

With c = X_(n) A(-n) and G the Gram matrix of A(-n), the loss of a row a is 1/2 a G a' - c a' + const. A sweep minimises
it over one component after the other (A. Cichocki and A.-H. Phan, *Fast local algorithms for large scale nonnegative
matrix and tensor factorizations*, 2009). Once c and G are known, sweeps need no data: they are repeated (N. Gillis and
F. Glineur, *Accelerated multiplicative updates and hierarchical ALS algorithms*, Neural Computation 24, 2012).
"""

from __future__ import annotations

from typing import Any

from gwntf.backends import Backend
from gwntf.core import Array
from gwntf.transport import positive


def sweep_rows(backend: Backend, a: Array, c: Array, gram: Array, curvature: Any, count: int) -> Array:
    """Minimise 1/2 a (G + k I) a' - c a' over a >= 0 for every row, by `count` sweeps; k is a number or a column.

    A component without curvature does not change.
    """
    xp, columns, linear = backend.xp, *_by_component(backend, a, c)
    extra = (xp.zeros_like(a[:, :1]) + curvature)[:, 0]
    if backend.fused_sweeps is not None:
        backend.fused_sweeps.rows(columns, linear, gram, extra, count)
        return columns.T
    for _ in range(count):
        for r in range(a.shape[1]):
            slope = gram[r] @ columns + extra * columns[r] - linear[r]
            bend = gram[r, r] + extra
            columns[r] = xp.where(bend > 0, xp.clip(columns[r] - slope / positive(xp, bend), 0.0, None), columns[r])
    return columns.T


def sweep_unit_columns(backend: Backend, a: Array, c: Array, gram: Array, count: int) -> Array:
    """Minimise 1/2 tr(A G A') - tr(c' A) over A >= 0 with columns of length one, by `count` sweeps over the columns.

    At fixed length the loss of a column is linear, so that its minimum is the positive part of its negative slope,
    divided by its norm. A column whose negative slope has no positive part does not change.
    """
    xp, columns, linear = backend.xp, *_by_component(backend, a, c)
    if backend.fused_sweeps is not None:
        backend.fused_sweeps.unit_columns(columns, linear, gram, count)
        return columns.T
    for _ in range(count):
        for r in range(a.shape[1]):
            rise = xp.clip(linear[r] - gram[r] @ columns + gram[r, r] * columns[r], 0.0, None)
            largest = xp.max(rise)  # after division by it, squares do not overflow
            rise = rise / positive(xp, largest)
            norm = xp.sqrt(xp.sum(rise * rise))
            columns[r] = xp.where(norm > 0, rise / positive(xp, norm), columns[r])
    return columns.T


def _by_component(backend: Backend, a: Array, c: Array) -> tuple[Array, Array]:
    """Return a copy of a factor and its linear term as arrays of components, in C order."""
    return backend.xp.asarray(backend.asarray(a.T), copy=True), backend.asarray(c.T)


def unit_columns(xp: Any, a: Array) -> tuple[Array, Array]:
    """Return the columns scaled to Euclidean length one, and their lengths; columns of zeros are not scaled."""
    norms = xp.sqrt(xp.sum(a * a, axis=0))
    norms = xp.where(norms > 0, norms, xp.ones_like(norms))
    return a / norms, norms
