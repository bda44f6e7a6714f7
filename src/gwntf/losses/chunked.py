"""One pass over data that go by in blocks: each is compared with the model as dense data are, and sums are kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from gwntf.core import Array
from gwntf.backends import Backend
from gwntf.geometry import SampleGraph
from gwntf.data import ChunkedTensor, NonnegativeTensor, chunks, khatri_rao, other_mode_product
from gwntf.losses.dense import DenseUnfoldings, Sums
from gwntf.losses.sweep import (
    Products,
    Sweep,
    Swept,
    WarmStarts,
    by_columns,
    by_samples,
    joined,
    product_of,
)
from gwntf.transport import PlanTerms
from gwntf.updates import Pull


class ChunkedPass:
    """A pass over blocks of samples, for `TransportLoss`; the samples' own mode is read from a transposed copy."""

    def __init__(self, backend: Backend, tensor: ChunkedTensor) -> None:
        self._engine, self._tensor = backend, tensor

    def scaling_bytes(self, modes: Sequence[int]) -> int:
        """Bytes of the scalings along some modes."""
        return len(modes) * math.prod(self._tensor.shape) * self._tensor.dtype.itemsize

    def __call__(self, sweep: Sweep, factors: Sequence[Array]) -> Swept:
        """Compare the data with the model of these factors."""
        first, other = factors[0], khatri_rao(factors[1:])
        parts = []
        if sweep.modes != (0,):
            parts.append(self._by_samples(sweep, first, other))
        if 0 in sweep.modes:
            parts.append(by_columns(sweep, _StoredColumns(self._tensor), first, other))
        return joined(parts)

    def product(self, products: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        """Return (Psi_bar / X^)_(n) A(-n) for one n, from what a pass found."""
        return product_of(products, factors, mode)

    def _by_samples(self, sweep: Sweep, first: Array, other: Array) -> Swept:
        """Sweep over the blocks; what each keeps for the next sweep stays with it."""
        tensor, xp = self._tensor, self._engine.xp
        kernels = (None, *sweep.kernels[1:])  # that of the samples may be large, and is of no use here
        task = replace(sweep, kernels=kernels, warm=WarmStarts(self._engine, sweep.warm.enabled))
        found = tensor.blocks.gather(
            partial(sweep_block, sweep=task, other=other), sweep.warm.elsewhere, tensor.split(first)
        )
        sweep.warm.elsewhere = found.state
        by_sample, samples = (xp.concat(list(parts)) for parts in zip(*found.own, strict=True))
        return Swept(found.total.terms, by_sample, Products(samples, found.total.others))


@dataclass(frozen=True)
class _Shared:
    """What the blocks have in common: cost of every mode, and (Psi/X^)_(1)' A(1)."""

    terms: dict[int, PlanTerms]
    others: Array

    def __add__(self, more: _Shared) -> _Shared:
        terms = {mode: part + more.terms[mode] for mode, part in self.terms.items()}
        return _Shared(terms, self.others + more.others)


def sweep_block(
    block: NonnegativeTensor, warm: WarmStarts | None, first: Array, *, sweep: Sweep, other: Array
) -> tuple[tuple[Array, Array], _Shared, WarmStarts | None]:
    """Compare one block with its part of the model, beginning with what it has kept.

    Own are the cost of every sample and (Psi/X^)_(1) A(-1).
    """
    own = WarmStarts(block.backend, sweep.warm.enabled) if warm is None else warm
    found = by_samples(replace(sweep, warm=own), block.values, block.observed, first, other)
    samples, others = found.products
    return (found.by_sample, samples), _Shared(found.terms, others), own if own.enabled else None


class _StoredColumns:
    """Columns of data whose transposed copy lies in a file."""

    def __init__(self, tensor: ChunkedTensor) -> None:
        self._file, self._complete = tensor.columns, tensor.complete

    def of(self, backend: Backend, columns: slice) -> tuple[Array, Array | None]:
        """Read them."""
        values = backend.asarray(np.ascontiguousarray(self._file[columns].T))
        if self._complete:
            return values, None
        holes = backend.xp.isnan(values)
        return backend.xp.where(holes, backend.xp.zeros_like(values), values), ~holes

    def step(self, backend: Backend) -> int:
        """Return what the backend likes, but no more than a block has."""
        length: int = self._file.shape[1]
        most = chunks.BLOCK_BYTES // (length * int(self._file.dtype.itemsize))
        return max(1, min(backend.tile_columns(length), most))


class ChunkedUnfoldings:
    """Products of blocks of samples with the factors, for `FrobeniusLoss`."""

    def __init__(self, backend: Backend, tensor: ChunkedTensor) -> None:
        self._xp, self._tensor = backend.xp, tensor
        self.holed = not tensor.complete

    def half_squares(self) -> Array:
        """1/2 |x|^2 of every sample."""
        return self._xp.concat(self._tensor.blocks.map(_half_squares))

    def begin(self, first: Array) -> Array:
        """X_(1)' A(1)."""
        return self._tensor.blocks.gather(_begin, None, self._tensor.split(first)).total

    def product(self, begun: Array, factors: Sequence[Array], mode: int) -> Array:
        """X_(n) A(-n) for one n but the first, from X_(1)' A(1)."""
        return other_mode_product(begun, factors, mode)

    def sample_product(self, factors: Sequence[Array]) -> Array:
        """X_(1) A(-1)."""
        return self._xp.concat(self._tensor.blocks.map(partial(_sample_product, rest=list(factors[1:]))))

    def step(self, factors: Sequence[Array], grams: Array, graph: SampleGraph | None) -> tuple[Array, Sums]:
        """Move the samples; return the new A(1), and the sums with it, from one reading of every block."""
        first, *rest = factors
        blocks, split = self._tensor.blocks, self._tensor.split
        pulls: list[Pull | None] = [None] * len(blocks.slices)
        if graph is not None:
            rows = zip(split(graph.matrix @ first), split(graph.degree), strict=True)
            pulls = [Pull(graph.weight, *row) for row in rows]
        step = partial(_step, rest=rest, grams=grams)
        moved, sums = zip(*blocks.map(step, split(first), pulls), strict=True)
        return self._xp.concat(moved), reduce(Sums.plus, sums)

    def filled(self, factors: Sequence[Array]) -> tuple[Array, Array, Array]:
        """1/2 |x - x^|^2 over observed entries, and X_(1) A(-1) and X_(1)' A(1) of the data filled with the model."""
        first, *rest = factors
        found = self._tensor.blocks.gather(partial(_filled, rest=rest), None, self._tensor.split(first))
        values, samples = (self._xp.concat(list(parts)) for parts in zip(*found.own, strict=True))
        return values, samples, found.total


def _half_squares(block: NonnegativeTensor) -> Array:
    return DenseUnfoldings(block.backend, block).half_squares()


def _begin(block: NonnegativeTensor, state: None, first: Array) -> tuple[None, Array, None]:
    return None, DenseUnfoldings(block.backend, block).begin(first), state


def _sample_product(block: NonnegativeTensor, rest: list[Array]) -> Array:
    return DenseUnfoldings(block.backend, block).sample_product([None, *rest])


def _step(
    block: NonnegativeTensor, first: Array, pull: Pull | None, rest: list[Array], grams: Array
) -> tuple[Array, Sums]:
    return DenseUnfoldings(block.backend, block).step([first, *rest], grams, pull)


def _filled(
    block: NonnegativeTensor, state: None, first: Array, rest: list[Array]
) -> tuple[Any, Array, None]:
    values, samples, others = DenseUnfoldings(block.backend, block).filled([first, *rest])
    return (values, samples), others, state
