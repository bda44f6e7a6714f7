"""Ground costs C_n: named costs, cost matrices, and sums over the axes of a grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from gwntf.core import FloatArray, InputError
from gwntf.data import DataTensor, as_real_array, unfold
from gwntf.geometry.axis_cost import AxisCost
from gwntf.geometry.near_far import NearFarCost
from gwntf.geometry.neighbors import ObservedRows, distances_of, shared_distances

CostFunction: TypeAlias = Callable[[DataTensor, int], FloatArray | AxisCost]


NAMED_COSTS: dict[str, CostFunction] = {}
"""Cost functions by name, registered by `named_cost`."""

COSTS_OF_SLICES: set[str] = set()
"""Names of the costs that compare slices of the data; the others depend on indices only."""

COMPARED_COSTS = ("cosine", "euclidean")
"""Costs between slices of the data that a near-far kernel can approximate."""

PAIRS_LIMIT = 5000
"""Largest number of slices along a mode for which all pairs are compared without a warning: the cost is I x I."""


@dataclass(frozen=True, eq=False)
class SeparableCost:
    """A cost between the cells of a grid that is a sum over its axes.

    The cost between the cells (i, j, ...) and (i', j', ...), last axis fastest, is
    ``axes[0][i, i'] + axes[1][j, j'] + ...``. Its kernel is a Kronecker product; the full matrix is never formed.

    Parameters
    ----------
    axes : sequence of (I_k, I_k) arrays or AxisCost
        One cost per axis.

    Examples
    --------
    City-block distance on a 4 x 6 image, scaled to a cost of one between opposite corners:

    >>> from gwntf import SeparableCost
    >>> SeparableCost.on_grid((4, 6)).size
    24
    """

    axes: tuple[FloatArray | AxisCost, ...]

    def __init__(self, axes: Sequence[Any]) -> None:
        checked = tuple(_as_axis(axis, f"axes[{k}]") for k, axis in enumerate(axes))
        if not checked:
            raise InputError("axes", "no axis", "at least one cost")
        object.__setattr__(self, "axes", checked)

    @classmethod
    def on_grid(cls, shape: Sequence[int], power: int = 1) -> SeparableCost:
        """Return the cost |di|^power + |dj|^power + ... on a grid of this shape, scaled to a maximum of one.

        Examples
        --------
        >>> from gwntf import SeparableCost
        >>> SeparableCost.on_grid((2, 3)).to_matrix()[0]         # from the first corner to every cell
        array([0.        , 0.33333333, 0.66666667, 0.33333333, 0.66666667,
               1.        ])
        """
        longest = [(size - 1) ** power for size in shape]
        total = max(sum(longest), 1)
        return cls([grid_cost(size, power) * (far / total) for size, far in zip(shape, longest, strict=True)])

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(axis.size if isinstance(axis, AxisCost) else len(axis) for axis in self.axes)

    def to_matrix(self) -> FloatArray:
        """Return the full cost matrix, for solvers that need one.

        Examples
        --------
        >>> from gwntf import SeparableCost
        >>> SeparableCost([[[0, 1], [1, 0]], [[0, 2], [2, 0]]]).to_matrix()
        array([[0., 2., 1., 3.],
               [2., 0., 3., 1.],
               [1., 3., 0., 2.],
               [3., 1., 2., 0.]])
        """
        matrix = np.zeros((1, 1))
        for cost in self.axes:
            axis = cost.to_matrix() if isinstance(cost, AxisCost) else cost
            total = matrix[:, None, :, None] + axis[None, :, None, :]
            matrix = total.reshape(len(matrix) * len(axis), -1)
        return matrix


Cost: TypeAlias = FloatArray | AxisCost | SeparableCost | NearFarCost
CostSpec: TypeAlias = str | FloatArray | AxisCost | SeparableCost | None


def grid_cost(size: int, power: int = 1) -> FloatArray:
    """Return the (I, I) matrix of (|i - j| / (I - 1)) ** power; zero for a single element."""
    position = np.arange(size) / max(size - 1, 1)
    distance: FloatArray = np.abs(position[:, None] - position[None, :]) ** power
    return distance


def named_cost(name: str, *, of_slices: bool = False) -> Callable[[CostFunction], CostFunction]:
    """Register the decorated function as a named cost.

    The function takes the data and a mode with more than one element, and returns the (I, I) cost matrix or the
    `AxisCost` of that mode, scaled to at most one. `of_slices` marks costs that compare slices of the data; they are
    undefined for a pair of vectors.
    """

    def register(function: CostFunction) -> CostFunction:
        NAMED_COSTS[name] = function
        if of_slices:
            COSTS_OF_SLICES.add(name)
        return function

    return register


@named_cost("grid")
def _grid(tensor: DataTensor, mode: int) -> AxisCost:
    return _on_unit_axis(tensor.shape[mode], 1)


@named_cost("grid2")
def _squared_grid(tensor: DataTensor, mode: int) -> AxisCost:
    return _on_unit_axis(tensor.shape[mode], 2)


def _on_unit_axis(size: int, power: int) -> AxisCost:
    return AxisCost(np.arange(size), size - 1, power)


@named_cost("cosine", of_slices=True)
def _cosine(tensor: DataTensor, mode: int) -> FloatArray:
    return np.clip(_between_slices(tensor, mode, "cosine"), 0, 1)


@named_cost("euclidean", of_slices=True)
def _euclidean(tensor: DataTensor, mode: int) -> FloatArray:
    distances = _between_slices(tensor, mode, "euclidean")
    scaled: FloatArray = distances / max(distances.max(), np.finfo(np.float64).tiny)
    return scaled


def _between_slices(tensor: DataTensor, mode: int, metric: str) -> FloatArray:
    """Return the distances between the slices of the data along a mode, over entries observed in both.

    Runs on one thread, since the rounding depends on the number of threads.
    """
    if tensor.complete:
        with threadpool_limits(1):
            return distances_of(*tensor.slice_products(mode), metric)
    block = tensor.dense_block
    if block is None:
        allowed = "None, 'grid', 'grid2' or a cost matrix"
        raise InputError(f"costs[{mode}]", f"{metric!r} for chunked data with missing entries", allowed)
    rows = ObservedRows(unfold(block.host.values, mode).astype(np.float64), unfold(block.host.observed, mode))
    distances = shared_distances(rows, rows, metric)
    np.fill_diagonal(distances, 0)
    return distances


def check_costs(costs: Any, shape: Sequence[int], names: Sequence[Any] | None = None) -> tuple[CostSpec, ...]:
    """Check `costs` against the shape of X; return one specification per axis, samples first.

    "auto" is None for the samples, which are not transported, and "grid" for all other axes. `names` are the column
    names of X, if it is a data frame.
    """
    if isinstance(costs, str) and costs == "auto":
        return (None, *["grid"] * (len(shape) - 1))
    if isinstance(costs, str) or not isinstance(costs, Sequence) or len(costs) != len(shape):
        given = f"{len(costs)} entries" if isinstance(costs, list | tuple) else repr(costs)
        raise InputError("costs", given, f"'auto' or a sequence of {len(shape)}, one per axis of X")
    columns = [names if (mode, len(shape)) == (1, 2) else None for mode in range(len(shape))]
    return tuple(check_cost(cost, shape[mode], f"costs[{mode}]", columns[mode]) for mode, cost in enumerate(costs))


def resolve_costs(specs: Sequence[CostSpec], tensor: DataTensor) -> tuple[Cost | None, ...]:
    """Compute the costs of checked specifications; "cosine" and "euclidean" compare slices of the data."""
    return tuple(resolve_cost(spec, tensor, mode) for mode, spec in enumerate(specs))


def resolve_cost(spec: CostSpec, tensor: DataTensor, mode: int) -> Cost | None:
    """Compute the cost of one mode from its specification."""
    if not isinstance(spec, str):
        return spec
    return np.zeros((1, 1)) if tensor.shape[mode] == 1 else NAMED_COSTS[spec](tensor, mode)


def check_cost(cost: Any, size: int, name: str, columns: Sequence[Any] | None = None) -> CostSpec:
    """Check the cost of one mode of the given size; `name` is the argument in error messages.

    `columns` are the column names of X, if the entries of the mode are its columns.
    """
    if cost is None:
        return None
    if isinstance(cost, str):
        if cost not in NAMED_COSTS:
            allowed = f"one of {', '.join(map(repr, NAMED_COSTS))}, an array, an AxisCost, a SeparableCost or None"
            raise InputError(name, repr(cost), allowed)
        return cost
    if isinstance(cost, AxisCost):
        found = cost.at_columns(columns, name) if cost.named else cost
        if found.size != size:
            raise InputError(name, f"an AxisCost with {found.size} positions", f"{size}, the length of that axis of X")
        return found
    if isinstance(cost, SeparableCost):
        if cost.size != size:
            raise InputError(name, f"a SeparableCost over {cost.size} cells", f"one over {size}")
        return cost
    matrix = _as_cost(cost, name)
    if len(matrix) != size:
        raise InputError(name, f"shape {matrix.shape}", f"shape {(size, size)}")
    return matrix


def _as_axis(cost: Any, name: str) -> FloatArray | AxisCost:
    """Check the cost of one axis of a grid."""
    if not isinstance(cost, AxisCost):
        return _as_cost(cost, name)
    if cost.named:
        raise InputError(name, repr(cost), "an AxisCost with an array of positions")
    return cost


def _as_cost(cost: Any, name: str) -> FloatArray:
    """Check a cost matrix; it is never rescaled."""
    allowed = "a square matrix of real numbers"
    matrix = as_real_array(cost, name, allowed)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(name, f"shape {matrix.shape}", allowed)
    if not np.isfinite(matrix).all() or (matrix.size and matrix.min() < 0):
        raise InputError(name, "negative or non-finite entries", "finite nonnegative costs")
    return matrix.astype(np.float64)
