"""The data of a fit, and statistics that are computed block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add, methodcaller
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from gwntf.backends import Backend
from gwntf.core import Array, FloatArray
from gwntf.data.algebra import KruskalRows
from gwntf.data.block import Block
from gwntf.data.blocks import Blocks, InMemory
from gwntf.data.checks import check_norms
from gwntf.data.dense import DenseBlock
from gwntf.data.fibers import changes
from gwntf.data.partition import pieces
from gwntf.data.sparse import SparseBlock
from gwntf.data.stream import temporary_array

if TYPE_CHECKING:
    from gwntf.data.dask import Cluster

_PRODUCT_ENTRIES = 2**24
"""Entries of the rows in `_row_products` that are processed at a time."""


@dataclass(frozen=True, eq=False)
class DataTensor:
    """Checked nonnegative samples in blocks."""

    blocks: Blocks  # Blocks of samples
    shape: tuple[int, ...]  # Shape, samples first
    dtype: np.dtype[Any]  # Dtype of the entries
    complete: bool = True  # Whether every entry was observed

    @classmethod
    def of_block(cls, block: Block) -> DataTensor:
        """Return the data of one block in memory."""
        return cls(InMemory(block), block.shape, block.dtype, block.complete)

    @classmethod
    def of_array(cls, values: Array, observed: Array | None = None) -> DataTensor:
        """Return the data of NumPy arrays that have been checked."""
        return cls.of_block(DenseBlock(values, observed))

    @classmethod
    def from_parts(
        cls, values: FloatArray, observed: NDArray[np.bool_] | None, places: Any, shape: tuple[int, ...]
    ) -> DataTensor:
        """Build data in memory from their `parts`; raise ValueError if these are inconsistent.

        `places`, the name in files, are the coordinates of the entries of sparse data, else None.
        """
        fits = [values.dtype.kind == "f", bool((values >= 0).all()), np.isfinite(values).all(), len(shape) > 1]
        if places is None:
            fits += [values.shape == shape, observed is None or (observed.shape == shape and observed.dtype == bool)]
        else:
            ends = np.array(shape)[:, None]
            fits += [observed is None, places.shape == (len(shape), len(values)), places.dtype == np.int64]
            fits += [bool(((places >= 0) & (places < ends)).all()), bool((values > 0).all())]
            fits += [bool((np.diff(np.lexsort(places[::-1])) == 1).all() and changes(places).all())]
        if not all(fits):
            raise ValueError("the stored samples are inconsistent")
        return cls.of_block(DenseBlock(values, observed) if places is None else SparseBlock(places, values, shape))

    @property
    def parts(self) -> dict[str, Any]:
        """The arguments of `from_parts` for data in memory, to be stored in a file."""
        (parts,) = self._each("parts")
        return dict(parts)

    def __len__(self) -> int:
        """Return the number of samples."""
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Order of the tensor."""
        return len(self.shape)

    @property
    def backend(self) -> Backend:
        """Backend of shared arrays."""
        return self.blocks.backend

    @property
    def dense_block(self) -> DenseBlock | None:
        """All samples as one dense block in memory, or None."""
        return self.blocks.dense_block

    @property
    def in_memory(self) -> bool:
        """Whether all samples are one block, dense or sparse, in the memory of this process."""
        return self.blocks.in_memory

    @property
    def sparse(self) -> bool:
        """Whether blocks store only nonzero entries."""
        return self.blocks.sparse

    def on_cluster(self, cluster: Cluster | None) -> DataTensor:
        """Return the same data on the backend of the workers, if there is a cluster."""
        return self if cluster is None else replace(self, blocks=cluster.to_workers(self.blocks))

    def split(self, rows: Any) -> list[Any]:
        """Split an array with one row per sample into the rows of each block."""
        return [rows[part] for part in self.blocks.slices]

    def _each(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every block, where the block is stored."""
        return self.blocks.map(methodcaller(method, *arguments))

    def _concat(self, parts: Sequence[Array]) -> Array:
        return self.backend.xp.concat([self.backend.asarray(part) for part in parts])

    def reshape(self, sample_shape: Sequence[int]) -> DataTensor:
        """Return the same samples with another sample shape."""
        if tuple(sample_shape) == self.shape[1:]:
            return self
        blocks = self.blocks.prepared(methodcaller("reshape", tuple(sample_shape)))
        return replace(self, blocks=blocks, shape=(self.shape[0], *sample_shape))

    def normalised(self, norm: str | None) -> tuple[DataTensor, Array]:
        """Divide every sample by its norm ("l2", "l1" or None); return tensor and norms (1 for zero samples)."""
        if norm is None:
            return self, self.backend.asarray(np.ones(self.shape[0], self.dtype))
        norms = self._concat(self._each("norms", 2 if norm == "l2" else 1))
        ratio = math.sqrt(math.prod(self.shape[1:])) if norm == "l2" else 1.0
        scale = check_norms(self.backend, norms, self.dtype, ratio)
        return replace(self, blocks=self.blocks.prepared(_divided, self.split(scale))), scale

    @cached_property
    def sample_sums(self) -> Array:
        """Sum of every sample, in float64."""
        return self._concat(self._each("sums"))

    @property
    def mass(self) -> float:
        """Sum of all entries."""
        return float(self.sample_sums.sum())

    @property
    def largest(self) -> float:
        """Largest entry."""
        return max(float(found.tops.max()) for found in self._each("summary"))

    def observed_sums(self, others: FloatArray) -> Array:
        """Multiply the mask of observed entries, one row per sample, by a matrix with one row per entry of a sample."""
        return self._concat(self._each("observed_sums", others))

    def relative_error(self, model: KruskalRows) -> float:
        """|X - X^| / |X| over the observed entries."""
        found = self._of_model("error_and_size", model)
        error, size = (math.hypot(*parts) for parts in zip(*found, strict=True))
        return error / size if size > 0 else error

    def filled(self, model: KruskalRows) -> Array:
        """Return all entries in memory, with missing ones replaced by the model."""
        return self._concat(self._of_model("filled", model))

    def _of_model(self, method: str, model: KruskalRows) -> list[Any]:
        """Call a method of every block with the model of its samples, where the block is stored."""
        first, *rest = model.factors
        return self.blocks.map(partial(_call_with_model, method), [[part, *rest] for part in self.split(first)])

    def times(self, matrix: FloatArray) -> FloatArray:
        """Return X_(1) times a matrix, in float64, on the host."""
        return np.concatenate(self.blocks.map(partial(_times, matrix=matrix)))

    def transposed_times(self, matrix: FloatArray) -> FloatArray:
        """Return X_(1)' times a matrix, in float64, on the host."""
        product: FloatArray = reduce(add, self.blocks.stream(_transposed_times, self.split(matrix)))
        return product

    def host_rows(self) -> Any:
        """Return one row per sample on the host: see `stacked`."""
        return self.stacked(methodcaller("host_rows"))

    def stacked(self, function: Callable[[Block], Any]) -> Any:
        """Stack the rows that a function returns for the samples of every block.

        Returns
        -------
        ndarray, memmap or csr_array
            Dense rows of more than one block are in a temporary file; of sparse rows empty columns are removed.
        """
        slices = self.blocks.slices
        if len(slices) == 1:
            rows = self.blocks.map(function)[0]
            return _without_empty_columns(rows) if _is_csr(rows) else rows
        file: np.memmap[Any, Any] | None = None
        stored: list[csr_array] = []
        for part, rows in zip(slices, self.blocks.stream(function), strict=True):
            if _is_csr(rows):
                stored.append(rows)
                continue
            if file is None:
                file = temporary_array((self.shape[0], rows.shape[1]), rows.dtype)
            file[part] = rows
        return _without_empty_columns(vstack(stored, format="csr")) if file is None else file

    def slice_products(self, mode: int) -> tuple[FloatArray, NDArray[np.int32]]:
        """Return the inner products of the slices along a mode, in float64, and exponents e_i of their scales.

        Slice i is divided by 2^e_i, which is exact and makes its largest entry about one, so that no square overflows
        or underflows.
        """
        if mode == 0:
            return _row_products(self.host_rows())
        tops = reduce(np.maximum, self.blocks.map(partial(_slice_tops, mode=mode)))
        exponents = np.frexp(tops)[1]
        scaled = partial(_slice_products, mode=mode, exponents=exponents)
        products: FloatArray = reduce(add, self.blocks.stream(scaled))
        return products, exponents

    def samples(self, indices: NDArray[np.intp]) -> Any:
        """Return a few samples as rows, dense or sparse, on the host, in the given order."""
        ends = [part.stop for part in self.blocks.slices]
        block = np.searchsorted(ends, indices, side="right")
        wanted = [indices[block == k] - part.start for k, part in enumerate(self.blocks.slices)]
        found = self.blocks.map(_pick_rows, wanted)
        rows = vstack(found, format="csr") if _is_csr(found[0]) else np.concatenate(found)
        return rows[np.argsort(np.argsort(block, kind="stable"), kind="stable")]

    def checksums(self) -> FloatArray:
        """Return checksums of every sample, which do not depend on the blocks."""
        return np.concatenate(self.blocks.map(partial(_checksums, complete=self.complete)))


def stacked_alike(first: DataTensor, second: DataTensor, function: Callable[[Block], Any]) -> tuple[Any, Any]:
    """Return `DataTensor.stacked` of two tensors with the same columns; rows are sparse if either tensor is."""
    if not first.sparse and not second.sparse:
        return first.stacked(function), second.stacked(function)
    found = [csr_array(rows) for data in (first, second) for rows in data.blocks.stream(function)]
    rows = _without_empty_columns(vstack(found, format="csr"))
    return rows[: len(first)], rows[len(first) :]


def _is_csr(rows: Any) -> TypeGuard[csr_array]:
    return hasattr(rows, "indptr")


def _divided(block: Block, scale: Array) -> Block:
    return block.divided(scale)


def _call_with_model(method: str, block: Block, factors: Sequence[Array]) -> Any:
    return getattr(block, method)(KruskalRows([block.backend.asarray(factor) for factor in factors]))


def _times(block: Block, matrix: FloatArray) -> FloatArray:
    return np.concatenate([rows @ matrix for _, rows in block.float64_rows()])


def _transposed_times(block: Block, matrix: FloatArray) -> Any:
    return reduce(add, (rows.T @ matrix[part] for part, rows in block.float64_rows()))


def _slice_tops(block: Block, mode: int) -> Any:
    return reduce(np.maximum, map(_row_tops, block.float64_unfoldings(mode)))


def _slice_products(block: Block, mode: int, exponents: NDArray[np.int32]) -> Any:
    return reduce(add, (_product(_scaled(rows, exponents)) for rows in block.float64_unfoldings(mode)))


def _row_products(rows: Any) -> tuple[FloatArray, NDArray[np.int32]]:
    """Return the inner products of rows, which may be in a file, from some columns at a time."""
    exponents = np.frexp(_row_tops(rows))[1]
    if _is_csr(rows):
        return _product(_scaled(rows.astype(np.float64), exponents)), exponents
    products: FloatArray = np.zeros((len(rows), len(rows)))
    for part in pieces(rows.shape[1], max(1, _PRODUCT_ENTRIES // len(rows))):
        products += _product(_scaled(rows[:, part].astype(np.float64), exponents))
    return products, exponents


def _product(rows: Any) -> Any:
    product = rows @ rows.T
    return product.toarray() if _is_csr(product) else product


def _row_tops(rows: Any) -> Any:
    return rows.max(axis=1).toarray().ravel() if _is_csr(rows) else rows.max(axis=1)


def _scaled(rows: Any, exponents: NDArray[np.int32]) -> Any:
    """Divide rows, dense or sparse, by powers of two."""
    if not _is_csr(rows):
        return np.ldexp(rows, -exponents[:, None])
    scaled = rows.copy()
    scaled.data = np.ldexp(rows.data, -np.repeat(exponents, np.diff(rows.indptr)))
    return scaled


def _pick_rows(block: Block, indices: NDArray[np.intp]) -> Any:
    return block.host_rows()[indices]


def _checksums(block: Block, complete: bool) -> FloatArray:
    """Return sum and weighted sum of every sample and, if entries are missing, the weight of the observed ones."""
    parts = []
    for _, rows in block.float64_rows():
        weighted = rows.copy()
        if _is_csr(rows):
            weighted.data = rows.data * np.cos(rows.indices)
        else:
            weighted *= np.cos(np.arange(rows.shape[1]))
        parts.append(np.stack([np.asarray(part.sum(axis=1)).ravel() for part in (rows, weighted)], axis=1))
    checksums = np.concatenate(parts)
    if complete:
        return checksums
    # Integers, whose sums are exact in any order
    weights = np.random.default_rng(0).integers(2**20, size=(math.prod(block.shape[1:]), 1)).astype(np.float64)
    return np.concatenate([checksums, block.backend.to_numpy(block.observed_sums(weights))], axis=1)


def _without_empty_columns(rows: csr_array) -> csr_array:
    columns, indices = np.unique(rows.indices, return_inverse=True)
    return csr_array((rows.data, indices, rows.indptr), shape=(rows.shape[0], max(1, len(columns))))
