"""What every block of samples can do, dense or sparse, and what a comparison with the model returns.

A block is the only way to the entries of the data: whatever touches them is a method of a block or a function of one
block. It runs where the block is: in this process or on a worker.
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
    """Partial results by name, arrays or `Sums` of arrays; those of other samples are added name by name."""

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
    """R_(n) A(-n) for one mode n but the first, from `Products`."""
    return other_mode_product(products[0], factors, mode) if 0 in products else products[mode]


class Tile(NamedTuple):
    """Some data and the model there, of one shape."""

    # Number of the first sample, fiber, entry or column of the tile, by which it is known in every pass
    start: int
    # x, y: data and model
    x: Array
    y: Array
    mask: Array | None  # Which entries were observed, if not all were
    axes: Mapping[int, int]  # For every mode to be transported, the axis of x along which it lies
    backend: Backend  # Owner of the arrays


class Looked(NamedTuple):
    """What a comparison of a tile with the model found."""

    # Of the shape of the tile, to be multiplied with the factors; for example Psi_bar / X^
    arrays: tuple[Array, ...]
    # (K, n) array in float64: For every kind of cost its sum over each place on the first axis of the tile
    costs: Array
    done: Callable[[], None] | None = None  # To be called when the products are formed


Look: TypeAlias = Callable[[Tile], Looked]
"""Compares data with the model."""


class Swept(NamedTuple):
    """What a comparison of a block with the model found."""

    # (K, n) array in float64: Costs by sample; for transport along the samples, their sums, (K, 1)
    costs: Array
    rows: list[Array]  # (n, R) arrays: R_(1) A(-1) for every array R that the comparison returned
    sums: list[Products]  # Its products over the samples
    # (M, n) array in float64: Sum of the model at the places that were compared along each mode, as the costs; None
    # if that was everywhere
    mass: Array | None = None


class Block(Protocol):
    """Some samples: nonnegative entries in one number type on one backend.

    `sparse` says whether only nonzero entries are stored.
    """

    sparse: ClassVar[bool]

    @property
    def backend(self) -> Backend:
        """Owner of the arrays."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Samples first."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the entries."""

    @property
    def complete(self) -> bool:
        """Whether every entry was observed."""

    # --- other forms of the same samples ---

    def on(self, backend: Backend) -> Self:
        """Return the same block on another backend."""

    def parts(self) -> dict[str, Any]:
        """Entries on the host, for a file: see `DataTensor.from_parts`."""

    def astype(self, dtype: Any) -> Self:
        """Return the same block in another number type."""

    def reshape(self, sample_shape: Sequence[int]) -> Self:
        """Return the same samples under another shape of one sample."""

    def divided(self, scale: Array) -> Self:
        """Divide every sample by its scale."""

    def without_nan(self) -> Self:
        """Mark NaN as not observed and put zero there."""

    def select(self, samples: slice) -> Self:
        """Return some of the samples."""

    def batches(self, entries: int) -> Iterator[slice]:
        """Split the samples into batches on which work takes memory for about so many entries."""

    # --- quantities, block by block ---

    def summary(self) -> Summary:
        """Describe the entries, for `checks`."""

    def sums(self) -> Array:
        """Sum of every sample, in float64."""

    def norms(self, power: int) -> Array:
        """Norm of every sample in float64, as if the missing entries were like those observed."""

    def half_squares(self) -> Array:
        """1/2 |x|^2 of every sample, in float64."""

    def observed_sums(self, others: FloatArray) -> Array:
        """Multiply which entries were observed, one row per sample, with a matrix of one row per entry of a sample."""

    def error_and_size(self, model: KruskalRows) -> tuple[float, float]:
        """|X - X^| and |X| over the observed entries."""

    def filled(self, model: KruskalRows) -> Array:
        """Return the entries with those of the model where nothing was observed."""

    # --- on the host, in float64 ---

    def host_rows(self) -> NDArray[Any] | csr_array:
        """Return one row per sample, dense or sparse, on the host in the number type of the block."""

    def wide_rows(self) -> Iterator[tuple[slice, Any]]:
        """Give batches of samples as rows, dense or sparse, on the host in float64."""

    def wide_slices(self, mode: int) -> Iterator[Any]:
        """Give batches of samples as unfoldings X_(n), dense or sparse, on the host in float64."""

    def columns(self) -> Any:
        """Return X_(1) by its columns, a `columns.ColumnBlock`; the block has all samples."""

    def column_part(self, columns: slice) -> Self:
        """Return what these samples have in some columns of X_(1), on the host."""

    @staticmethod
    def join_columns(parts: Sequence[Any], slices: Sequence[slice], first: int, backend: Backend, /) -> Any:
        """Join what all blocks have in some columns, which begin with the column `first`, to a `columns.ColumnBlock`.

        Block k has the samples ``slices[k]``.
        """

    # --- one pass of a fit ---

    def sweep(
        self,
        look: Look,
        a: Array,
        rest: Sequence[Array],
        modes: Sequence[int] = (),
        *,
        rows: bool = True,
        sums: bool = True,
        zeros: bool = True,
    ) -> Swept:
        """Compare the block with the model of its rows a of A(1) and the other factors, tile by tile.

        Parameters
        ----------
        look : Look
            The comparison.
        a, rest : arrays
            A(1) of these samples, and the other factors.
        modes : sequence of int
            Modes along which whole fibers are compared; without any, entries are compared by themselves.
        rows, sums : bool
            Which products are wanted.
        zeros : bool
            Whether entries must be compared where data are zero. If not, sparse blocks leave them out.
        """

    def row_product(self, rest: Sequence[Array]) -> Array:
        """X_(1) A(-1)."""

    def sum_products(self, a: Array, rest: Sequence[Array], mode: int) -> Products:
        """Products over the samples of X itself, at least for the given mode."""

    def ratio_step(
        self, a: Array, rest: Sequence[Array], attraction: Array | None, denominator: Array
    ) -> tuple[Array, Products, Array]:
        """Move rows of A(1) to a (X_(1) A(-1) + attraction) / denominator.

        Returns the new rows, the products over the samples with them for the mode after the samples, and
        <new rows, X_(1) A(-1)> in float64: all from one reading of the data where they are dense.
        """

    def fiber_count(self, mode: int) -> int:
        """Length of the first axis of all tiles along a mode, one after the other: samples, or nonzero fibers."""
