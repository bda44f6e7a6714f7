"""A validated nonnegative tensor that goes by in blocks of samples and is never in memory as a whole."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gwntf.core import Array, FloatArray, InputError
from gwntf.backends import Backend
from gwntf.data import chunks
from gwntf.data.algebra import unfold
from gwntf.data.blocks import pieces
from gwntf.data.chunks import Blocks, StreamedBlocks, check_source, file_state, fit_dtype, seen_dtype
from gwntf.data.factors import KruskalRows
from gwntf.data.ranges import check_largest
from gwntf.data.tensor import (
    NonnegativeTensor,
    check_norms,
    error_and_size,
    fill_missing,
    sample_norms,
    without_holes,
)

_WIDE_ENTRIES = 2**21
"""Entries of a block that are in float64 at a time."""


@dataclass(frozen=True, eq=False)
class ChunkedTensor:
    """Blocks of samples, and what is known of all of them; every quantity is found block by block.

    Attributes
    ----------
    blocks : Blocks
        The data.
    shape : tuple of int
        Samples first.
    dtype : dtype
        Of the entries.
    backend : Backend
        Who works on the blocks.
    complete : bool
        Whether every entry was observed.
    """

    blocks: Blocks
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    backend: Backend
    complete: bool = True

    def __len__(self) -> int:
        """Count the samples."""
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Order of the tensor."""
        return len(self.shape)

    def split(self, rows: Any) -> list[Any]:
        """Cut something with one row per sample as the samples are cut into blocks."""
        return [rows[part] for part in self.blocks.slices]

    def reshape(self, *shape: int) -> ChunkedTensor:
        """Return the same samples under another shape of one sample."""
        sizes = shape[1:]
        if -1 in sizes:
            known = math.prod(size for size in sizes if size != -1)
            sizes = tuple(math.prod(self.shape[1:]) // known if size == -1 else size for size in sizes)
        if sizes == self.shape[1:]:
            return self
        blocks = self.blocks.prepared(partial(_reshaped, shape=sizes))
        return replace(self, blocks=blocks, shape=(self.shape[0], *sizes))

    def normalised(self, norm: str | None) -> tuple[ChunkedTensor, Array]:
        """Divide every sample by its norm ("l2", "l1" or None); return tensor and norms (1 for zeros)."""
        if norm is None:
            return self, self.backend.asarray(np.ones(self.shape[0], self.dtype))
        xp = self.backend.xp
        norms = xp.concat(self.blocks.map(partial(sample_norms, power=2 if norm == "l2" else 1)))
        scale = check_norms(self.backend, norms, self.dtype)
        return replace(self, blocks=self.blocks.prepared(_divided, self.split(scale))), scale

    @cached_property
    def sample_sums(self) -> Array:
        """Sum of every sample, in float64."""
        return self.backend.xp.concat(self.blocks.map(_sums))

    @property
    def mass(self) -> float:
        """Sum of all entries."""
        return float(self.sample_sums.sum())

    @property
    def largest(self) -> float:
        """Largest entry."""
        found: list[float] = self.blocks.map(_largest)
        return max(found)

    def observed_sums(self, others: FloatArray) -> Array:
        """Which entries were observed, one row per sample, times a matrix with one row per entry of a sample."""
        return self.backend.xp.concat(self.blocks.map(partial(_observed_sums, others=others)))

    def relative_error(self, model: KruskalRows) -> float:
        """|X - X^| / |X| over the observed entries."""
        models = self._models(model)
        errors, sizes = zip(*self.blocks.map(error_and_size, models), strict=True)
        error, size = math.hypot(*errors), math.hypot(*sizes)
        return error / size if size > 0 else error

    def filled(self, model: KruskalRows) -> Array:
        """All entries, in memory, with those of the model where nothing was observed."""
        return self.backend.xp.concat(self.blocks.map(fill_missing, self._models(model)))

    def _models(self, model: KruskalRows) -> list[KruskalRows]:
        """Cut a model as the samples are cut into blocks."""
        first, *rest = model.factors
        return [KruskalRows([part, *rest]) for part in self.split(first)]

    def times(self, matrix: FloatArray) -> FloatArray:
        """X_(1) times a matrix, in float64, on the host."""
        parts: list[FloatArray] = self.blocks.map(partial(_times, matrix=matrix))
        return np.concatenate(parts)

    def transposed_times(self, matrix: FloatArray) -> FloatArray:
        """X_(1)' times a matrix, in float64, on the host."""
        product: FloatArray = self.blocks.gather(_transposed_times, None, self.split(matrix)).total
        return product

    def slice_products(self, mode: int) -> FloatArray:
        """X_(n) X_(n)', the inner products of the slices along a mode, in float64."""
        if mode == 0:
            return self._sample_products()
        products: FloatArray = self.blocks.gather(partial(_slice_products, mode=mode), None).total
        return products

    def _sample_products(self) -> FloatArray:
        """X_(1) X_(1)', from the transposed copy."""
        products: FloatArray = np.zeros((self.shape[0],) * 2)
        step = max(1, chunks.BLOCK_BYTES // (8 * self.shape[0]))
        for part in pieces(len(self.columns), step):
            columns = self.columns[part].astype(np.float64)
            products += columns.T @ columns
        return products

    def samples(self, places: NDArray[np.intp]) -> FloatArray:
        """Return a few samples as rows, on the host, in the given order."""
        ends = [part.stop for part in self.blocks.slices]
        starts = [part.start for part in self.blocks.slices]
        block = np.searchsorted(ends, places, side="right")
        wanted = [places[block == k] - start for k, start in enumerate(starts)]
        found = np.concatenate(self.blocks.map(_picked, wanted))
        rows = np.empty_like(found)
        rows[np.argsort(block, kind="stable")] = found
        return rows

    @cached_property
    def columns(self) -> np.memmap[Any, Any]:
        """X_(1)' in a temporary file, one row per entry of a sample; NaN where nothing was observed.

        The file is written once, block by block, and is gone when nobody refers to it any more.
        """
        size = math.prod(self.shape[1:])
        file = temporary_rows((size, self.shape[0]), self.dtype)
        for part, block in zip(self.blocks.slices, self.blocks.stream(_columns), strict=True):
            file[:, part] = block
        return file


def as_chunked_tensor(
    X: Any, backend: Backend, *, missing: str = "error", dtype: Any = None, scaled: bool = False
) -> ChunkedTensor:
    """Check a source of order N >= 2 (see `is_chunked`), all its entries, block by block.

    Samples are `scaled` if each will be divided by its norm.
    """
    check_source(X)
    kind = fit_dtype(X, dtype)
    looked_at = StreamedBlocks(X, backend, seen_dtype(X, kind), kind, written=file_state(X))
    complete = check_entries(looked_at, kind, backend, missing, scaled)
    return chunked_tensor(replace(looked_at, dtype=kind), X.shape, kind, backend, complete)


def chunked_tensor(
    blocks: Blocks, shape: Sequence[int], dtype: np.dtype[Any], backend: Backend, complete: bool
) -> ChunkedTensor:
    """Return a tensor of blocks that were checked, with NaN where nothing was observed."""
    ready = blocks if complete else blocks.prepared(without_holes)
    return ChunkedTensor(ready, tuple(int(size) for size in shape), dtype, backend, complete)


def check_entries(blocks: Blocks, dtype: np.dtype[Any], backend: Backend, missing: str, scaled: bool) -> bool:
    """Look at all entries, in their own number type, before they are brought into another; say if none is missing."""
    seen: list[_Seen] = blocks.map(_look)
    _check_seen(blocks, seen, missing)
    check_largest(backend.xp.concat([block.tops for block in seen]), dtype, every=scaled)
    return not any(block.holes for block in seen)


def _check_seen(blocks: Blocks, seen: Sequence[_Seen], missing: str) -> None:
    """Refuse entries that no fit can use."""
    if any(block.infinite for block in seen):
        raise InputError("X", "infinite entries", "finite nonnegative numbers")
    holes = sum(block.holes for block in seen)
    if holes and missing == "error":
        allowed = "finite nonnegative numbers, or missing='ignore' to treat NaN as not observed"
        raise InputError("X", f"{holes} NaN entries", allowed)
    smallest = min(block.smallest for block in seen)
    if smallest < 0:
        raise InputError("X", f"negative entries (smallest {smallest:g})", "nonnegative numbers")
    for part, block in zip(blocks.slices, seen, strict=True):
        if block.unseen is not None:
            given = f"no observed entry in sample {part.start + block.unseen}"
            raise InputError("X", given, "at least one in every sample")


def temporary_rows(shape: tuple[int, int], dtype: Any) -> np.memmap[Any, Any]:
    """Return an array in a temporary file (in the folder that `tempfile` chooses), which goes when the array does."""
    with tempfile.TemporaryFile(prefix="gwntf-") as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)


class _Seen(NamedTuple):
    """What was seen in a block.

    Whether an entry is infinite, the largest entry of each sample, NaNs, the smallest entry, a sample that is all NaN.
    """

    infinite: bool
    tops: Array
    smallest: float
    holes: int = 0
    unseen: int | None = None


def _look(block: NonnegativeTensor) -> _Seen:
    xp, rows = block.backend.xp, block.rows
    tops, smallest = xp.max(rows, axis=1), float(xp.min(rows))
    if not math.isnan(smallest):
        return _Seen(_infinite(xp, tops, smallest), tops, smallest)
    holes = xp.isnan(rows)
    known = xp.where(holes, xp.zeros_like(rows), rows)
    tops, smallest = xp.max(known, axis=1), float(xp.min(known))
    unseen = xp.nonzero(xp.all(holes, axis=1))[0]
    first = int(unseen[0]) if unseen.shape[0] else None
    return _Seen(_infinite(xp, tops, smallest), tops, smallest, int(xp.sum(holes)), first)


def _infinite(xp: Any, tops: Array, smallest: float) -> bool:
    return math.isinf(smallest) or math.isinf(float(xp.max(tops)))


def _reshaped(block: NonnegativeTensor, shape: tuple[int, ...]) -> NonnegativeTensor:
    whole = (block.shape[0], *shape)
    observed = None if block.observed is None else block.observed.reshape(*whole)
    return NonnegativeTensor(block.values.reshape(*whole), observed, block.backend)


def _divided(block: NonnegativeTensor, scale: Array) -> NonnegativeTensor:
    scale = block.backend.asarray(scale)
    return replace(block, values=block.values / scale.reshape(-1, *(1,) * (len(block.shape) - 1)))


def _sums(block: NonnegativeTensor) -> Array:
    return block.sample_sums


def _largest(block: NonnegativeTensor) -> float:
    return block.largest


def _observed_sums(block: NonnegativeTensor, others: FloatArray) -> Array:
    return block.observed_sums(others)


def _wide(block: NonnegativeTensor) -> Iterator[FloatArray]:
    """Give the samples of a block on the host and in float64, some at a time."""
    values = block.on_host.values
    return (values[part].astype(np.float64) for part in block.batches(_WIDE_ENTRIES))


def _times(block: NonnegativeTensor, matrix: FloatArray) -> FloatArray:
    return np.concatenate([samples.reshape(len(samples), -1) @ matrix for samples in _wide(block)])


def _transposed_times(
    block: NonnegativeTensor, state: None, matrix: FloatArray
) -> tuple[None, FloatArray, None]:
    parts = zip(block.batches(_WIDE_ENTRIES), _wide(block), strict=True)
    products = (samples.reshape(len(samples), -1).T @ matrix[part] for part, samples in parts)
    return None, reduce(add, products), state


def _slice_products(block: NonnegativeTensor, state: None, mode: int) -> tuple[None, FloatArray, None]:
    slices = (unfold(samples, mode) for samples in _wide(block))
    return None, reduce(add, (rows @ rows.T for rows in slices)), state


def _picked(block: NonnegativeTensor, places: NDArray[np.intp]) -> FloatArray:
    rows: FloatArray = block.on_host.rows[places]
    return rows


def _columns(block: NonnegativeTensor) -> FloatArray:
    host = block.on_host
    rows: FloatArray = host.rows
    if host.observed is not None:
        rows = np.where(host.observed.reshape(rows.shape), rows, np.nan)
    return rows.T
