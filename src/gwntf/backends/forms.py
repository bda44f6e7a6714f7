"""Kernels as plain arrays for compiled code, one named tuple for each algorithm of multiplication."""

from typing import Any, NamedTuple, TypeAlias

from gwntf.core import Array


class DenseForm(NamedTuple):
    """A matrix K and its transpose, both in row-major order."""

    matrix: Array
    transposed: Array


class ExponentialForm(NamedTuple):
    """K_ij = scale * ratio^|i-j| for 0 <= i, j < size."""

    size: int
    scale: Any
    ratio: Any


class UnevenForm(NamedTuple):
    """K_ij = scale * the product of roots[k]^2 over all k with min(i, j) <= k < max(i, j)."""

    scale: Any
    roots: Array  # (I - 1,) array: a root is a normal number where its square underflows


class SeparableForm(NamedTuple):
    """A Kronecker product: one form per axis, all of the same type, the last axis fastest."""

    axes: tuple[DenseForm, ...] | tuple[ExponentialForm, ...] | tuple[UnevenForm, ...]


class NearFarForm(NamedTuple):
    """A symmetric kernel over clusters of elements: a far field between all pairs, with corrections for near pairs."""

    # (P,) int64 array: the elements sorted by cluster; -1 pads a cluster to a multiple of four
    order: Array
    bounds: Array  # (C + 1,) int64 array: where each cluster begins; C is a multiple of four
    # (P, C) array E: the far field between i and j is E[i, cluster of j] * E[j, cluster of i]; zero at padding
    field: Array
    transposed: Array  # (C, P) array: the transpose of E, in row-major order
    starts: Array  # starts, neighbors, excess: K minus the far field at near pairs, as a CSR matrix
    neighbors: Array
    excess: Array


class LineForm(NamedTuple):
    """K_ij = 2^(log2_scale - |p_i - p_j|) for sorted coordinates p, for arithmetic on logarithms in float64."""

    log2_scale: Any
    # (I - 1,) arrays: integer and fractional parts of p_(i+1) - p_i
    integer: Array
    fraction: Array


KernelForm: TypeAlias = DenseForm | ExponentialForm | UnevenForm | SeparableForm | NearFarForm | LineForm
