"""Blocks of samples of which only the nonzero entries are stored.

Where a fiber of X is zero, so is that of Psi: it contributes nothing to the updates of the factors, and its cost
depends only on the mass of the model there. Therefore the model is computed only on a tile of nonzero fibers, or at
nonzero entries, and compared there with X.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse

from gwntf.backends import Backend, get_backend
from gwntf.core import Array, FloatArray, InputError
from gwntf.data.algebra import KruskalRows
from gwntf.data.block import CompareTile, Products, RowUpdate, Sums, SweepResult, Tile, mode_product
from gwntf.data.checks import Summary, check_kind, check_shape
from gwntf.data.dense import DenseBlock
from gwntf.data.fibers import Coords, Fibers, changes, find_fibers
from gwntf.data.partition import even_pieces, pieces, sample_tiles

_TILES_PER_BATCH, _MIN_FIBERS = 32, 128
"""Tiles that are processed before their results are added up, and minimum number of fibers in a transported tile."""

_ENTRIES = 2**20
"""Entries that are processed at a time in `error_and_size`."""


@dataclass(frozen=True, eq=False)
class SparseBlock:
    """Nonzero entries and their coordinates; every other entry is an observed zero. See `block.Block`."""

    sparse: ClassVar[bool] = True

    # (N, nnz) array: coordinates of the entries on the host, sorted with the last axis fastest, without duplicates
    coords: Coords
    values: FloatArray  # (nnz,) array: finite and positive, on the host
    shape: tuple[int, ...]  # Samples first
    backend: Backend = field(default_factory=lambda: get_backend("numpy"))  # Backend of the computations
    complete: bool = True  # No entry is missing

    def __reduce__(self) -> tuple[type[SparseBlock], tuple[Any, ...]]:
        return SparseBlock, (self.coords, self.values, self.shape, self.backend)

    def __sizeof__(self) -> int:
        return int(self.coords.nbytes + self.values.nbytes)

    def parts(self) -> dict[str, Any]:
        return {"values": self.values, "observed": None, "places": self.coords, "shape": self.shape}

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @cached_property
    def _fibers(self) -> dict[int, Fibers]:
        return {}

    def fibers(self, mode: int) -> Fibers:
        """Return the nonzero fibers of a mode; they are cached."""
        if mode not in self._fibers:
            self._fibers[mode] = find_fibers(self.coords, self.values, self.shape, mode, self.backend)
        return self._fibers[mode]

    @cached_property
    def own_fibers(self) -> Fibers:
        """The nonzero fibers of the mode with the fewest, except the samples: each belongs to one sample."""
        return self.fibers(min((self.fibers(mode).count, mode) for mode in range(1, len(self.shape)))[1])

    def on(self, backend: Backend) -> SparseBlock:
        return replace(self, backend=backend)

    def astype(self, dtype: Any) -> SparseBlock:
        """Convert to a dtype, and drop entries that are rounded to zero."""
        return self._positive(self.values.astype(dtype, copy=False))

    def divided(self, scale: Array) -> SparseBlock:
        return self._positive(self.values / self.backend.to_numpy(scale)[self.coords[0]])

    def _positive(self, values: FloatArray) -> SparseBlock:
        positive = values > 0
        if positive.all():
            return replace(self, values=values)
        return replace(self, coords=self.coords[:, positive], values=values[positive])

    def reshape(self, sample_shape: Sequence[int]) -> SparseBlock:
        if tuple(sample_shape) == self.shape[1:]:
            return self
        inner = np.unravel_index(_flat(self.coords[1:], self.shape[1:]), tuple(sample_shape))
        coords = np.stack([self.coords[0], *inner]).astype(np.int64)
        return replace(self, coords=coords, shape=(self.shape[0], *sample_shape))

    def without_nan(self) -> SparseBlock:
        return self

    def select(self, samples: slice) -> SparseBlock:
        first, last, _ = samples.indices(self.shape[0])
        part = slice(*np.searchsorted(self.coords[0], [first, last]))
        coords = self.coords[:, part].copy()
        coords[0] -= first
        return replace(self, coords=coords, values=self.values[part], shape=(last - first, *self.shape[1:]))

    def take(self, samples: Array) -> SparseBlock:
        wanted = self.backend.to_numpy(samples)
        inside = np.isin(self.coords[0], wanted)
        coords = self.coords[:, inside]
        coords[0] = np.searchsorted(wanted, coords[0])
        return replace(self, coords=coords, values=self.values[inside], shape=(len(wanted), *self.shape[1:]))

    def taken_state(self, state: Any, samples: Array) -> Any:
        if state is None or isinstance(state, tuple):
            return state and tuple(part[samples] for part in state)
        wanted, to_numpy, asarray = self.backend.to_numpy(samples), self.backend.to_numpy, self.backend.asarray
        return state.taken(lambda mode: asarray(np.flatnonzero(np.isin(to_numpy(self.fibers(mode).coords[0]), wanted))))

    def batches(self, entries: int) -> Iterator[slice]:  # noqa: ARG002
        """Return all samples: processing takes memory only for their nonzero fibers."""
        return iter([slice(0, self.shape[0])])

    def summary(self) -> Summary:
        known = np.nan_to_num(self.values, nan=0.0, posinf=math.inf, neginf=-math.inf)
        tops = np.zeros(self.shape[0], self.dtype)
        np.maximum.at(tops, self.coords[0], known)
        missing = int(np.isnan(self.values).sum())
        smallest = float(known.min(initial=0))
        return Summary(tops, smallest, int((known < 0).sum()), missing, None, sparse=True)

    def _sum_by_sample(self, values: FloatArray) -> Array:
        sums = np.bincount(self.coords[0], values, minlength=self.shape[0]).astype(np.float64)
        return self.backend.asarray(sums)

    def sums(self) -> Array:
        return self._sum_by_sample(self.values.astype(np.float64))

    def norms(self, power: int) -> Array:
        tops = self.summary().tops.astype(np.float64)
        parts = (self.values / tops[self.coords[0]]) ** power
        return self.backend.asarray(tops) * self._sum_by_sample(parts) ** (1 / power)

    def half_squares(self) -> Array:
        return self._sum_by_sample(0.5 * self.values.astype(np.float64) ** 2)

    def observed_sums(self, others: FloatArray) -> Array:
        sums = np.broadcast_to(others.sum(axis=0), (self.shape[0], others.shape[1]))
        return self.backend.asarray(sums)

    def error_and_size(self, model: KruskalRows) -> tuple[float, float]:
        """|X - X^|^2 = |X|^2 - 2 <X, X^> + |X^|^2, with the last term from the Gram matrices of the factors."""
        unit = float(self.values.max(initial=0)) or 1.0
        samples, *rest = (self.backend.to_numpy(factor).astype(np.float64) for factor in model.factors)
        factors, coords = [samples / unit, *rest], self.coords
        if len(factors) < len(coords):  # one factor for all axes of a sample
            coords = np.stack([coords[0], _flat(coords[1:], self.shape[1:])])
        square = cross = 0.0
        for part in pieces(self.values.size, _ENTRIES):
            values = self.values[part].astype(np.float64) / unit
            rows = reduce(np.multiply, (factor[index] for factor, index in zip(factors, coords[:, part], strict=True)))
            square, cross = square + float(values @ values), cross + float(values @ rows.sum(axis=1))
        model_square = float(reduce(np.multiply, (factor.T @ factor for factor in factors)).sum())
        return unit * math.sqrt(max(square - 2 * cross + model_square, 0.0)), unit * math.sqrt(square)

    def filled(self, model: KruskalRows) -> Array:  # noqa: ARG002
        """Raise an error: no entry is missing, and the result would be dense."""
        raise InputError("X", "a sparse array, in which no entry is missing", "a dense array")

    def host_rows(self) -> csr_array:
        wide = _flat(self.coords[1:], self.shape[1:])
        size = (self.shape[0], math.prod(self.shape[1:]))
        return csr_array((self.values, (self.coords[0], wide)), shape=size)

    def float64_rows(self) -> Iterator[tuple[slice, csr_array]]:
        yield slice(0, self.shape[0]), self.host_rows().astype(np.float64)

    def float64_unfoldings(self, mode: int) -> Iterator[csr_array]:
        """Yield X_(n) without its zero columns."""
        yield self.fibers(mode).matrix.T.tocsr().astype(np.float64)

    def columns(self) -> SparseBlock:
        return self

    def column_part(self, columns: slice) -> SparseBlock:
        flat = _flat(self.coords[1:], self.shape[1:])
        inside = (flat >= columns.start) & (flat < columns.stop)
        return SparseBlock(self.coords[:, inside], self.values[inside], self.shape)

    @staticmethod
    def join_columns(parts: Sequence[SparseBlock], slices: Sequence[slice], _: int, backend: Backend, /) -> SparseBlock:
        inner = parts[0].shape[1:]
        starts = [np.array([[part.start], *[[0]] * len(inner)]) for part in slices]
        coords = np.concatenate([p.coords + start for p, start in zip(parts, starts, strict=True)], axis=1)
        values = np.concatenate([part.values for part in parts])
        return SparseBlock(coords, values, (slices[-1].stop, *inner), backend)

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
        """Compare tiles of nonzero fibers, of nonzero entries, or of samples with all their entries."""
        factors, concat = [a, *rest], self.backend.xp.concat
        if not modes:
            return (
                self._compare_samples(compare, factors, rows, sums)
                if zeros
                else self._compare_entries(compare, factors)
            )
        found = [self._compare_fibers(compare, factors, mode) for mode in modes]
        return SweepResult(
            concat([part.costs for part in found]),
            [reduce(add, (part.rows[0] for part in found))],
            [reduce(add, (part.sums[0] for part in found))],
            concat([part.mass for part in found]),
        )

    def sweep_samples_axis(self, compare: CompareTile, a: Array, rest: Sequence[Array]) -> SweepResult:
        return self._compare_fibers(compare, [a, *rest], 0)

    def _compare_fibers(self, compare: CompareTile, factors: Sequence[Array], mode: int) -> SweepResult:
        """Compare the nonzero fibers of a mode, tile by tile."""
        fibers, backend, xp = self.fibers(mode), self.backend, self.backend.xp
        a = factors[mode]
        masses = xp.sum(a, axis=0, dtype=xp.float64)

        def visit(tile: slice) -> tuple[Array, ...]:
            x, weights = fibers.dense(tile), fibers.weights(factors, tile)
            with backend.quiet():
                (ratio,), costs, done = compare(Tile(tile.start, x, weights @ a.T, None, {mode: 1}, backend))
            mass = xp.astype(weights, xp.float64, copy=False) @ masses
            found = costs, mass, ratio.T @ weights, ratio @ a
            if done is not None:
                done()
            return found

        step = max(_MIN_FIBERS, backend.block_entries // self.shape[mode])
        return self._collected(fibers, factors, visit, step)

    def _compare_entries(self, compare: CompareTile, factors: Sequence[Array]) -> SweepResult:
        """Compare the nonzero entries of tiles of fibers."""
        fibers, backend, xp = self.own_fibers, self.backend, self.backend.xp
        a = factors[fibers.mode]

        def visit(tile: slice) -> tuple[Array, ...]:
            x, row, column = fibers.entries(tile)
            size = tile.stop - tile.start
            weights, others = fibers.weights(factors, tile)[row], a[column]
            with backend.quiet():
                y = xp.sum(weights * others, axis=1)
                (ratio,), costs, _ = compare(Tile(tile.start, x[:, None], y[:, None], None, {}, backend))
            numbers = xp.concat([costs, xp.astype(y, xp.float64)[None]])
            by_fiber = backend.sum_by(numbers.T, row, size).T
            own = backend.sum_by(weights, column, len(a), ratio[:, 0])
            return by_fiber[:-1], by_fiber[-1], own, backend.sum_by(others, row, size, ratio[:, 0])

        step = max(1, backend.block_entries * fibers.count // max(1, a.shape[1] * self.values.size))
        return self._collected(fibers, factors, visit, step)

    def _collected(
        self, fibers: Fibers, factors: Sequence[Array], visit: Callable[[slice], tuple[Array, ...]], step: int
    ) -> SweepResult:
        """Process tiles of equal size, since small ones are slow, in batches, and add up the results.

        `visit` returns costs and mass of every fiber, R_(n) A(-n), and the fibers of R times A(n).
        """
        xp = self.backend.xp
        tiles = list(even_pieces(fibers.count, max(1, -(-fibers.count // step)))) or [slice(0, 0)]
        own, found = xp.zeros_like(factors[fibers.mode]), []
        for part in pieces(len(tiles), _TILES_PER_BATCH):
            for costs, mass, product, across in self.backend.map(visit, iter(tiles[part])):
                own = own + product
                found.append((xp.concat([costs, mass[None]]), across))
        numbers = xp.concat([part for part, _ in found], axis=1)
        numbers = fibers.spread(numbers.T, 0).T if fibers.mode else xp.sum(numbers, axis=1)[:, None]
        products = fibers.products(factors, own, xp.concat([across for _, across in found]))
        return SweepResult(numbers[:-1], [products.pop(0)], [products], numbers[-1:])

    def _compare_samples(self, compare: CompareTile, factors: Sequence[Array], rows: bool, sums: bool) -> SweepResult:
        """Compare tiles of samples that are converted to dense arrays."""
        (a, *rest), xp = factors, self.backend.xp
        found = []
        for tile in sample_tiles(self.shape, self.backend.block_entries):
            part = self.select(tile)
            values = self.backend.asarray(part.host_rows().toarray().reshape(part.shape))
            dense = DenseBlock(values, None, self.backend)
            found.append(dense.sweep(compare, a[tile], rest, rows=rows, sums=sums))
        totals = [
            reduce(add, (Sums({m: mode_product(part, factors, m) for m in range(1, len(factors))}) for part in parts))
            for parts in zip(*(part.sums for part in found), strict=True)
        ]
        own = [xp.concat(list(parts)) for parts in zip(*(part.rows for part in found), strict=True)]
        return SweepResult(xp.concat([part.costs for part in found], axis=1), own, totals)

    def row_product(self, rest: Sequence[Array]) -> Array:
        return self.own_fibers.product([rest[0], *rest], 0)

    def sum_products(self, a: Array, rest: Sequence[Array], mode: int) -> Products:
        return Sums({mode: self.own_fibers.product([a, *rest], mode)})

    def row_step(self, rest: Sequence[Array], update: RowUpdate) -> tuple[Array, Products, Array]:
        xp, product = self.backend.xp, self.row_product(rest)
        moved = update(slice(0, self.shape[0]), product)
        return moved, self.sum_products(moved, rest, 1), xp.sum(moved * product, dtype=xp.float64)

    def fiber_count(self, mode: int) -> int:
        return self.fibers(mode).count


def sparse_block(X: Any, backend: Backend) -> SparseBlock:
    """Convert a sparse array of SciPy or of the `sparse` library; duplicates are summed, and zeros dropped.

    float32 and float64 are kept, other dtypes are converted to float64. Entries are not checked.
    """
    if not issparse(X) and X.fill_value != 0:
        raise InputError("X", f"a sparse array with fill_value={X.fill_value}", "fill_value=0")
    coo = X.tocoo() if hasattr(X, "tocoo") else X
    check_shape(coo.shape)
    check_kind(coo.data.dtype)
    coords = np.stack([np.asarray(axis, np.int64) for axis in coo.coords])
    values = np.asarray(coo.data)
    own = values.dtype.newbyteorder("=")
    values = values.astype(own if own in (np.float32, np.float64) else np.float64)
    order = np.lexsort(coords[::-1])
    coords, values = coords[:, order], values[order]
    first = np.flatnonzero(changes(coords))
    if first.size < values.size:
        coords, values = coords[:, first], np.add.reduceat(values, first)
    nonzero = values != 0
    if not nonzero.all():
        coords, values = coords[:, nonzero], values[nonzero]
    return SparseBlock(coords, values, tuple(int(size) for size in coo.shape), backend)


def _flat(coords: Coords, shape: Sequence[int]) -> Coords:
    """Return coordinates as flat indices, last axis fastest."""
    if math.prod(shape) > np.iinfo(np.int64).max:
        raise InputError("X", f"a sparse array of shape {tuple(shape)}", "fewer than 2^63 entries to reshape")
    flat: Coords = np.ravel_multi_index(tuple(coords), tuple(shape)).astype(np.int64)
    return flat
