"""Kernels as compiled code takes them: plain arrays, one named tuple for each way to multiply."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from gwntf.core import Array


class DenseForm(NamedTuple):
    """A matrix K and its transpose, both in rows."""

    matrix: Array
    transposed: Array


class ExponentialForm(NamedTuple):
    """K_ij = scale * ratio^|i-j| over `size` places."""

    size: int
    scale: Any
    ratio: Any


class SeparableForm(NamedTuple):
    """A Kronecker product: one form per axis, all of one kind, the last axis fastest."""

    axes: tuple[DenseForm, ...] | tuple[ExponentialForm, ...]


class NearFarForm(NamedTuple):
    """A symmetric kernel of clusters: a far field between all pairs, corrected at near ones.

    Attributes
    ----------
    order : (I,) int64 array
        Place of the k-th element when they are sorted by cluster; all else is in that order.
    bounds : (C + 1,) int64 array
        Where each cluster begins.
    cluster : (I,) int64 array
        Cluster of each element.
    field : (I, C) array
        E: the far field between i and j is E[i, cluster of j] * E[j, cluster of i].
    starts, neighbors, excess
        The near pairs as a sparse matrix in rows: what K has above the far field.
    """

    order: Array
    bounds: Array
    cluster: Array
    field: Array
    starts: Array
    neighbors: Array
    excess: Array


KernelForm: TypeAlias = DenseForm | ExponentialForm | SeparableForm | NearFarForm
