"""The interface of a block of samples, dense or sparse, and the results of comparing it with the model.

Entries of the data are accessed only by methods of a block and by functions of one block, which run where the block is
stored: in this process or on a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gwntf.backends import Backend
from gwntf.core import Array, FloatArray
from gwntf.data.algebra import KruskalRows, other_mode_product
from gwntf.data.checks import Summary


class Sums(dict[Any, Any]):
    """Partial sums by name, arrays or nested `Sums`; those of different samples are added name by name."""

    def __add__(self, more: Mapping[Any, Any]) -> Sums:
        return Sums({name: value + more[name] for name, value in self.items()})

    def __sizeof__(self) -> int:
        return sum(getattr(value, "nbytes", 0) or value.__sizeof__() for value in self.values())

    def map(self, function: Callable[[Array], Any]) -> Sums:
        """Apply a function to every array, in order."""
        return Sums({name: v.map(function) if isinstance(v, Sums) else function(v) for name, v in self.items()})


Products: TypeAlias = Sums
"""Sums over samples of an array with the shape of the data times A(1), by mode.

Dense blocks have {0: R_(1)' A(1)}, from which the products of all other modes follow; sparse blocks, whose samples may
be too large for that, have R_(n) A(-n) for some modes n.
"""


def mode_product(products: Products, factors: Sequence[Array], mode: int) -> Array:
    """Return R_(n) A(-n) for a mode n other than the samples, from `Products`."""
    return other_mode_product(products[0], factors, mode) if 0 in products else products[mode]


class Tile(NamedTuple):
    """Part of the data and the same part of the model."""

    # Index of the first sample, fiber, entry or column of the tile, the same in every pass
    start: int
    x: Array  # Data
    y: Array  # Model, of the same shape
    mask: Array | None  # Which entries were observed, if not all were
    axes: Mapping[int, int]  # Axis of x for every transported mode
    backend: Backend  # Backend of the arrays


class TileResult(NamedTuple):
    """Result of comparing a tile with the model."""

    # Arrays of the shape of the tile, to be multiplied with the factors; for example Psi_bar / X^
    arrays: tuple[Array, ...]
    # (K, n) array in float64: every cost, summed over all axes of the tile but the first
    costs: Array
    done: Callable[[], None] | None = None  # Called after the products have been computed


CompareTile: TypeAlias = Callable[[Tile], TileResult]
"""Compares a tile of the data with the model."""


RowUpdate: TypeAlias = Callable[[slice, Array], Array]
"""Returns the new rows of A(1) of some samples, given the samples and their rows of X_(1) A(-1)."""


class SweepResult(NamedTuple):
    """Result of comparing a block with the model."""

    # (K, n) array in float64: costs of every sample; for transport along the samples, their sums, (K, 1)
    costs: Array
    rows: list[Array]  # (n, R) arrays: R_(1) A(-1) for every array R of the tile results
    sums: list[Products]  # Products over the samples of every array R
    # (M, n) array in float64: sum of the model over the compared entries along each mode, for every sample; None if
    # all entries were compared
    mass: Array | None = None


class Block(Protocol):
    """Some samples: nonnegative entries of one dtype on one backend.

    `sparse` is True if only nonzero entries are stored.
    """

    sparse: ClassVar[bool]

    @property
    def backend(self) -> Backend:
        """Backend of the arrays."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, samples first."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the entries."""

    @property
    def complete(self) -> bool:
        """Whether every entry was observed."""

    # --- conversions ---

    def on(self, backend: Backend) -> Self:
        """Return the same block on another backend."""

    def parts(self) -> dict[str, Any]:
        """Return the entries on the host, for a file: see `DataTensor.from_parts`."""

    def astype(self, dtype: Any) -> Self:
        """Return the same block in another dtype."""

    def reshape(self, sample_shape: Sequence[int]) -> Self:
        """Return the same samples with another sample shape."""

    def divided(self, scale: Array) -> Self:
        """Divide every sample by its scale."""

    def without_nan(self) -> Self:
        """Mark NaN as not observed and put zero there."""

    def select(self, samples: slice) -> Self:
        """Return some of the samples."""

    def take(self, samples: Array) -> Self:
        """Return samples given by their indices, in ascending order."""

    def taken_state(self, state: Any, samples: Array) -> Any:
        """Return the part of a state of the loss, or of a tuple of arrays by sample, that belongs to `take`."""

    def batches(self, entries: int) -> Iterator[slice]:
        """Split the samples into batches whose processing takes memory for about that many entries."""

    # --- statistics ---

    def summary(self) -> Summary:
        """Summarise the entries, for `checks`."""

    def sums(self) -> Array:
        """Sum of every sample, in float64."""

    def norms(self, power: int) -> Array:
        """Norm of every sample in float64, extrapolated from the observed entries to all entries."""

    def half_squares(self) -> Array:
        """1/2 |x|^2 of every sample, in float64."""

    def observed_sums(self, others: FloatArray) -> Array:
        """Multiply the mask of observed entries, one row per sample, by a matrix with one row per entry of a sample."""

    def error_and_size(self, model: KruskalRows) -> tuple[float, float]:
        """|X - X^| and |X| over the observed entries."""

    def filled(self, model: KruskalRows) -> Array:
        """Return the entries, with missing ones replaced by the model."""

    # --- on the host, in float64 ---

    def host_rows(self) -> NDArray[Any] | csr_array:
        """Return one row per sample, dense or sparse, on the host, in the dtype of the block."""

    def float64_rows(self) -> Iterator[tuple[slice, Any]]:
        """Yield batches of samples as rows, dense or sparse, on the host in float64."""

    def float64_unfoldings(self, mode: int) -> Iterator[Any]:
        """Yield the unfoldings X_(n) of batches of samples, dense or sparse, on the host in float64."""

    def columns(self) -> Any:
        """Return X_(1) as a `columns.ColumnBlock`; the block must contain all samples."""

    def column_part(self, columns: slice) -> Self:
        """Return some columns of X_(1) of these samples, on the host."""

    @staticmethod
    def join_columns(parts: Sequence[Any], slices: Sequence[slice], first: int, backend: Backend, /) -> Any:
        """Join the `column_part` of all blocks, whose first column is `first`, to a `columns.ColumnBlock`.

        Block k contains the samples ``slices[k]``.
        """

    # --- passes of a fit ---

    def sweep(
        self,
        compare: CompareTile,
        a: Array,
        rest: Sequence[Array],
        modes: Sequence[int] = (),
        *,
        rows: bool = True,
        sums: bool = True,
        zeros: bool = True,
    ) -> SweepResult:
        """Compare the block with the model tile by tile.

        Parameters
        ----------
        compare : CompareTile
            The comparison.
        a, rest : arrays
            Rows of A(1) of these samples, and the other factors.
        modes : sequence of int
            Modes along which whole fibers are compared; if empty, entries are compared one by one.
        rows, sums : bool
            Which products to compute.
        zeros : bool
            Whether zero entries of the data must be compared; otherwise sparse blocks skip them.
        """

    def row_product(self, rest: Sequence[Array]) -> Array:
        """Return X_(1) A(-1)."""

    def sum_products(self, a: Array, rest: Sequence[Array], mode: int) -> Products:
        """Return the products over the samples of X itself, at least for the given mode."""

    def row_step(self, rest: Sequence[Array], update: RowUpdate) -> tuple[Array, Products, Array]:
        """Update rows of A(1), which are independent given X_(1) A(-1).

        Returns the new rows, their products over the samples for the mode after the samples, and
        <new rows, X_(1) A(-1)> in float64. Dense data are read once.
        """

    def fiber_count(self, mode: int) -> int:
        """Total length of the first axis of all tiles along a mode: the number of samples, or of nonzero fibers."""
