"""A block of samples of which only the nonzero entries are stored.

Where a fiber of X is zero so is that of Psi: it adds nothing to what the factors' updates need, and its cost depends on
the mass of the model there alone. So the model is formed on a tile of nonzero fibers, or at nonzero entries, compared
there with X, and dropped again.
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
from gwntf.data.block import Look, Products, Sums, Swept, Tile, mode_product
from gwntf.data.checks import Summary, check_kind, check_shape
from gwntf.data.dense import DenseBlock
from gwntf.data.fibers import Fibers, Places, changes, find_fibers
from gwntf.data.partition import even_pieces, pieces, sample_tiles

_TOGETHER, _FEWEST = 32, 128
"""Tiles whose results are kept before they are added up, and fibers that a transported tile has at least."""

_ENTRIES = 2**20
"""Entries whose products with the factors are formed at a time where it is done once."""


@dataclass(frozen=True, eq=False)
class SparseBlock:
    """Nonzero entries and their places; every other entry is an observed zero. See `block.Block`."""

    sparse: ClassVar[bool] = True

    # (N, nnz) array: Places of the entries on the host, sorted with the last axis fastest, none twice
    places: Places
    values: FloatArray  # (nnz,) array: Finite and positive, on the host
    shape: tuple[int, ...]  # Samples first
    backend: Backend = field(default_factory=lambda: get_backend("numpy"))  # Of the computations
    complete: bool = True  # Nothing is ever missing

    def __reduce__(self) -> tuple[type[SparseBlock], tuple[Any, ...]]:
        return SparseBlock, (self.places, self.values, self.shape, self.backend)

    def __sizeof__(self) -> int:
        return int(self.places.nbytes + self.values.nbytes)

    def parts(self) -> dict[str, Any]:
        return {"values": self.values, "observed": None, "places": self.places, "shape": self.shape}

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @cached_property
    def _fibers(self) -> dict[int, Fibers]:
        return {}

    def fibers(self, mode: int) -> Fibers:
        """Return the nonzero fibers of a mode, found once."""
        if mode not in self._fibers:
            self._fibers[mode] = find_fibers(self.places, self.values, self.shape, mode, self.backend)
        return self._fibers[mode]

    @cached_property
    def own_fibers(self) -> Fibers:
        """The fewest nonzero fibers of a mode other than the samples: each lies in one sample."""
        return self.fibers(min((self.fibers(mode).count, mode) for mode in range(1, len(self.shape)))[1])

    def on(self, backend: Backend) -> SparseBlock:
        return replace(self, backend=backend)

    def astype(self, dtype: Any) -> SparseBlock:
        """Convert, and drop entries that the number type rounds to zero."""
        return self._positive(self.values.astype(dtype, copy=False))

    def divided(self, scale: Array) -> SparseBlock:
        return self._positive(self.values / self.backend.to_numpy(scale)[self.places[0]])

    def _positive(self, values: FloatArray) -> SparseBlock:
        kept = values > 0
        if kept.all():
            return replace(self, values=values)
        return replace(self, places=self.places[:, kept], values=values[kept])

    def reshape(self, sample_shape: Sequence[int]) -> SparseBlock:
        if tuple(sample_shape) == self.shape[1:]:
            return self
        inner = np.unravel_index(_flat(self.places[1:], self.shape[1:]), tuple(sample_shape))
        places = np.stack([self.places[0], *inner]).astype(np.int64)
        return replace(self, places=places, shape=(self.shape[0], *sample_shape))

    def without_nan(self) -> SparseBlock:
        return self

    def select(self, samples: slice) -> SparseBlock:
        first, last, _ = samples.indices(self.shape[0])
        part = slice(*np.searchsorted(self.places[0], [first, last]))
        places = self.places[:, part].copy()
        places[0] -= first
        return replace(self, places=places, values=self.values[part], shape=(last - first, *self.shape[1:]))

    def batches(self, entries: int) -> Iterator[slice]:  # noqa: ARG002
        return iter([slice(0, self.shape[0])])

    def summary(self) -> Summary:
        """All samples at once: no work on them needs memory for more than their nonzero fibers."""
        known = np.nan_to_num(self.values, nan=0.0, posinf=math.inf, neginf=-math.inf)
        tops = np.zeros(self.shape[0], self.dtype)
        np.maximum.at(tops, self.places[0], known)
        missing = int(np.isnan(self.values).sum())
        smallest = float(known.min(initial=0))
        return Summary(tops, smallest, int((known < 0).sum()), missing, None, sparse=True)

    def _by_sample(self, values: FloatArray) -> Array:
        sums = np.bincount(self.places[0], values, minlength=self.shape[0]).astype(np.float64)
        return self.backend.asarray(sums)

    def sums(self) -> Array:
        return self._by_sample(self.values.astype(np.float64))

    def norms(self, power: int) -> Array:
        tops = self.summary().tops.astype(np.float64)
        parts = (self.values / tops[self.places[0]]) ** power
        return self.backend.asarray(tops) * self._by_sample(parts) ** (1 / power)

    def half_squares(self) -> Array:
        return self._by_sample(0.5 * self.values.astype(np.float64) ** 2)

    def observed_sums(self, others: FloatArray) -> Array:
        sums = np.broadcast_to(others.sum(axis=0), (self.shape[0], others.shape[1]))
        return self.backend.asarray(sums)

    def error_and_size(self, model: KruskalRows) -> tuple[float, float]:
        """|X - X^|^2 = |X|^2 - 2 <X, X^> + |X^|^2, whose last term comes from the factors' Gram matrices."""
        unit = float(self.values.max(initial=0)) or 1.0
        samples, *rest = (self.backend.to_numpy(factor).astype(np.float64) for factor in model.factors)
        factors = [samples / unit, *rest]
        square = cross = 0.0
        for part in pieces(self.values.size, _ENTRIES):
            values = self.values[part].astype(np.float64) / unit
            rows = reduce(
                np.multiply, (factor[places] for factor, places in zip(factors, self.places[:, part], strict=True))
            )
            square, cross = square + float(values @ values), cross + float(values @ rows.sum(axis=1))
        model_square = float(reduce(np.multiply, (factor.T @ factor for factor in factors)).sum())
        return unit * math.sqrt(max(square - 2 * cross + model_square, 0.0)), unit * math.sqrt(square)

    def filled(self, model: KruskalRows) -> Array:  # noqa: ARG002
        """Refuse: nothing is missing, and the result would be dense."""
        raise InputError("X", "a sparse array, whose entries all count as observed", "a dense array")

    def host_rows(self) -> csr_array:
        wide = _flat(self.places[1:], self.shape[1:])
        size = (self.shape[0], math.prod(self.shape[1:]))
        return csr_array((self.values, (self.places[0], wide)), shape=size)

    def wide_rows(self) -> Iterator[tuple[slice, csr_array]]:
        yield slice(0, self.shape[0]), self.host_rows().astype(np.float64)

    def wide_slices(self, mode: int) -> Iterator[csr_array]:
        """Give X_(n) without columns that are zero."""
        yield self.fibers(mode).matrix.T.tocsr().astype(np.float64)

    def columns(self) -> SparseBlock:
        return self

    def column_part(self, columns: slice) -> SparseBlock:
        flat = _flat(self.places[1:], self.shape[1:])
        inside = (flat >= columns.start) & (flat < columns.stop)
        return SparseBlock(self.places[:, inside], self.values[inside], self.shape)

    @staticmethod
    def join_columns(parts: Sequence[SparseBlock], slices: Sequence[slice], _: int, backend: Backend, /) -> SparseBlock:
        inner = parts[0].shape[1:]
        starts = [np.array([[part.start], *[[0]] * len(inner)]) for part in slices]
        places = np.concatenate([p.places + start for p, start in zip(parts, starts, strict=True)], axis=1)
        values = np.concatenate([part.values for part in parts])
        return SparseBlock(places, values, (slices[-1].stop, *inner), backend)

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
        """Compare nonzero fibers, nonzero entries, or all entries of some samples at a time."""
        factors, concat = [a, *rest], self.backend.xp.concat
        if not modes:
            return self._by_samples(look, factors, rows, sums) if zeros else self._by_entries(look, factors)
        found = [self._by_fibers(look, factors, mode) for mode in modes]
        return Swept(
            concat([part.costs for part in found]),
            [reduce(add, (part.rows[0] for part in found))],
            [reduce(add, (part.sums[0] for part in found))],
            concat([part.mass for part in found]),
        )

    def sweep_samples_axis(self, look: Look, a: Array, rest: Sequence[Array]) -> Swept:
        return self._by_fibers(look, [a, *rest], 0)

    def _by_fibers(self, look: Look, factors: Sequence[Array], mode: int) -> Swept:
        """Go through the nonzero fibers of a mode."""
        fibers, backend, xp = self.fibers(mode), self.backend, self.backend.xp
        a = factors[mode]
        masses = xp.sum(a, axis=0, dtype=xp.float64)

        def visit(tile: slice) -> tuple[Array, ...]:
            x, weights = fibers.dense(tile), fibers.weights(factors, tile)
            with backend.quiet():
                (ratio,), costs, done = look(Tile(tile.start, x, weights @ a.T, None, {mode: 1}, backend))
            mass = xp.astype(weights, xp.float64, copy=False) @ masses
            found = costs, mass, ratio.T @ weights, ratio @ a
            if done is not None:
                done()
            return found

        step = max(_FEWEST, backend.block_entries // self.shape[mode])
        return self._collected(fibers, factors, visit, step)

    def _by_entries(self, look: Look, factors: Sequence[Array]) -> Swept:
        """Go through the nonzero entries, a tile of fibers at a time."""
        fibers, backend, xp = self.own_fibers, self.backend, self.backend.xp
        a = factors[fibers.mode]

        def visit(tile: slice) -> tuple[Array, ...]:
            x, row, column = fibers.entries(tile)
            size = tile.stop - tile.start
            weights, others = fibers.weights(factors, tile)[row], a[column]
            with backend.quiet():
                y = xp.sum(weights * others, axis=1)
                (ratio,), costs, _ = look(Tile(tile.start, x[:, None], y[:, None], None, {}, backend))
            numbers = xp.concat([costs, xp.astype(y, xp.float64)[None]])
            by_fiber = backend.sum_by(numbers.T, row, size).T
            own = backend.sum_by(weights, column, len(a), ratio[:, 0])
            return by_fiber[:-1], by_fiber[-1], own, backend.sum_by(others, row, size, ratio[:, 0])

        step = max(1, backend.block_entries * fibers.count // max(1, a.shape[1] * self.values.size))
        return self._collected(fibers, factors, visit, step)

    def _collected(
        self, fibers: Fibers, factors: Sequence[Array], visit: Callable[[slice], tuple[Array, ...]], step: int
    ) -> Swept:
        """Visit tiles of equal size, since small ones are slow, some at a time; add up what they find.

        A visit returns costs and mass by fiber, R_(n) A(-n), and the fibers of R times A(n).
        """
        xp = self.backend.xp
        tiles = list(even_pieces(fibers.count, max(1, -(-fibers.count // step)))) or [slice(0, 0)]
        own, known = xp.zeros_like(factors[fibers.mode]), []
        for part in pieces(len(tiles), _TOGETHER):
            for costs, mass, product, across in self.backend.map(visit, iter(tiles[part])):
                own = own + product
                known.append((xp.concat([costs, mass[None]]), across))
        numbers = xp.concat([found for found, _ in known], axis=1)
        numbers = fibers.spread(numbers.T, 0).T if fibers.mode else xp.sum(numbers, axis=1)[:, None]
        products = fibers.products(factors, own, xp.concat([across for _, across in known]))
        return Swept(numbers[:-1], [products.pop(0)], [products], numbers[-1:])

    def _by_samples(self, look: Look, factors: Sequence[Array], rows: bool, sums: bool) -> Swept:
        """Make some samples dense at a time."""
        (a, *rest), xp = factors, self.backend.xp
        found = []
        for tile in sample_tiles(self.shape, self.backend.block_entries):
            part = self.select(tile)
            values = self.backend.asarray(part.host_rows().toarray().reshape(part.shape))
            dense = DenseBlock(values, None, self.backend)
            found.append(dense.sweep(look, a[tile], rest, rows=rows, sums=sums))
        totals = [
            reduce(add, (Sums({m: mode_product(part, factors, m) for m in range(1, len(factors))}) for part in parts))
            for parts in zip(*(part.sums for part in found), strict=True)
        ]
        own = [xp.concat(list(parts)) for parts in zip(*(part.rows for part in found), strict=True)]
        return Swept(xp.concat([part.costs for part in found], axis=1), own, totals)

    def row_product(self, rest: Sequence[Array]) -> Array:
        return self.own_fibers.product([rest[0], *rest], 0)

    def sum_products(self, a: Array, rest: Sequence[Array], mode: int) -> Products:
        return Sums({mode: self.own_fibers.product([a, *rest], mode)})

    def ratio_step(
        self, a: Array, rest: Sequence[Array], attraction: Array | None, denominator: Array
    ) -> tuple[Array, Products, Array]:
        xp, product = self.backend.xp, self.row_product(rest)
        moved = a * (product if attraction is None else product + attraction) / denominator
        return moved, self.sum_products(moved, rest, 1), xp.sum(moved * product, dtype=xp.float64)

    def fiber_count(self, mode: int) -> int:
        return self.fibers(mode).count


def sparse_block(X: Any, backend: Backend) -> SparseBlock:
    """Take the entries of a sparse array of SciPy or of the `sparse` library; duplicates are summed, zeros dropped.

    float32 and float64 are kept, everything else becomes float64. Entries are not checked.
    """
    if not issparse(X) and X.fill_value != 0:
        raise InputError("X", f"a sparse array with fill_value={X.fill_value}", "one whose fill_value is 0")
    coo = X.tocoo() if hasattr(X, "tocoo") else X
    check_shape(coo.shape)
    check_kind(coo.data.dtype)
    places = np.stack([np.asarray(axis, np.int64) for axis in coo.coords])
    values = np.asarray(coo.data)
    own = values.dtype.newbyteorder("=")
    values = values.astype(own if own in (np.float32, np.float64) else np.float64)
    order = np.lexsort(places[::-1])
    places, values = places[:, order], values[order]
    first = np.flatnonzero(changes(places))
    if first.size < values.size:
        places, values = places[:, first], np.add.reduceat(values, first)
    kept = values != 0
    if not kept.all():
        places, values = places[:, kept], values[kept]
    return SparseBlock(places, values, tuple(int(size) for size in coo.shape), backend)


def _flat(places: Places, shape: Sequence[int]) -> Places:
    """Places as one number each, last axis fastest."""
    if math.prod(shape) > np.iinfo(np.int64).max:
        raise InputError("X", f"a sparse array of shape {tuple(shape)}", "fewer than 2^63 entries to reshape")
    flat: Places = np.ravel_multi_index(tuple(places), tuple(shape)).astype(np.int64)
    return flat
