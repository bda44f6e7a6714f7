"""Kernels as compiled code takes them: plain arrays, one named tuple for each way to multiply."""

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
    """A symmetric kernel of clusters: a far field between all pairs, corrected at near ones."""

    # (P,) int64 array: element at each place; places are sorted by cluster, -1 pads a cluster to a multiple of four
    order: Array
    bounds: Array  # (C + 1,) int64 array: where each cluster begins; C is a multiple of four
    # (P, C) array E: the far field between i and j is E[i, cluster of j] * E[j, cluster of i]; zero at padded places
    field: Array
    transposed: Array  # (C, P) array: the transpose of E, in rows
    starts: Array  # starts, neighbors, excess: K minus the far field at near pairs, as a sparse matrix in rows
    neighbors: Array
    excess: Array


class LineForm(NamedTuple):
    """K_ij = 2^(log2_scale - |p_i - p_j|) for places p in order, for arithmetic on logarithms in float64."""

    log2_scale: Any
    # (I - 1,) arrays: p_(i+1) - p_i as the sum of a whole number and a part between zero and one
    whole: Array
    part: Array


KernelForm: TypeAlias = DenseForm | ExponentialForm | SeparableForm | NearFarForm | LineForm
