"""Blocks of samples whose entries are all stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, ClassVar

import numpy as np

from gwntf.backends import Backend, get_backend
from gwntf.core import Array, FloatArray
from gwntf.data.algebra import KruskalRows, khatri_rao, unfold
from gwntf.data.block import CompareTile, Products, RowUpdate, Sums, SweepResult, Tile
from gwntf.data.checks import Summary
from gwntf.data.columns import DenseColumns
from gwntf.data.partition import even_tiles, pieces, sample_tiles

_WIDE_ENTRIES = 2**21
"""Entries that are converted to float64 on the host at a time."""


@dataclass(frozen=True, eq=False)
class DenseBlock:
    """Entries and, where some are missing, a mask of the observed ones; see `block.Block`."""

    sparse: ClassVar[bool] = False

    values: Array  # Finite and nonnegative, zero at missing entries
    observed: Array | None = None  # Mask of observed entries; None if all were observed
    backend: Backend = field(default_factory=lambda: get_backend("numpy"))  # Backend of both arrays

    def __reduce__(self) -> tuple[type[DenseBlock], tuple[Any, ...]]:
        return DenseBlock, (self.values, self.observed, self.backend)

    def __sizeof__(self) -> int:
        return int(self.values.nbytes) + (0 if self.observed is None else int(self.observed.nbytes))

    def parts(self) -> dict[str, Any]:
        host = self.host
        return {"values": host.values, "observed": host.observed, "places": None, "shape": self.shape}

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        kind: np.dtype[Any] = self.backend.dtype(self.values)
        return kind

    @property
    def complete(self) -> bool:
        return self.observed is None

    @cached_property
    def rows(self) -> Array:
        return self.values.reshape(self.shape[0], -1)

    @cached_property
    def seen(self) -> Array | None:
        """Mask of the observed entries of the rows; None if all were observed."""
        return None if self.observed is None else self.observed.reshape(*self.rows.shape)

    def _of_both(self, change: Callable[[Array], Array]) -> DenseBlock:
        observed = None if self.observed is None else change(self.observed)
        return replace(self, values=change(self.values), observed=observed)

    def on(self, backend: Backend) -> DenseBlock:
        return replace(self._of_both(backend.asarray), backend=backend)

    @property
    def host(self) -> DenseBlock:
        """The same block in NumPy arrays."""
        return self if isinstance(self.values, np.ndarray) else self._host

    @cached_property
    def _host(self) -> DenseBlock:
        return replace(self._of_both(self.backend.to_numpy), backend=get_backend("numpy"))

    def astype(self, dtype: Any) -> DenseBlock:
        return replace(self, values=self.backend.asarray(self.values, dtype))

    def reshape(self, sample_shape: Sequence[int]) -> DenseBlock:
        return self._of_both(lambda array: array.reshape(self.shape[0], *sample_shape))

    def divided(self, scale: Array) -> DenseBlock:
        scale = self.backend.asarray(scale).reshape(-1, *(1,) * (len(self.shape) - 1))
        return replace(self, values=self.values / scale)

    def without_nan(self) -> DenseBlock:
        xp, values = self.backend.xp, self.values
        missing = xp.isnan(values)
        if not bool(xp.any(missing)):
            return self
        return replace(self, values=xp.where(missing, xp.zeros_like(values), values), observed=~missing)

    def select(self, samples: slice) -> DenseBlock:
        return self._of_both(lambda array: array[samples])

    def take(self, samples: Array) -> DenseBlock:
        return self._of_both(lambda array: array[samples])

    def taken_state(self, state: Any, samples: Array) -> Any:
        if state is None or isinstance(state, tuple):
            return state and tuple(part[samples] for part in state)
        return state.taken(lambda _: samples)

    def batches(self, entries: int) -> Iterator[slice]:
        return pieces(self.shape[0], max(1, entries // max(1, math.prod(self.shape[1:]))))

    def _tiles(self) -> Iterator[slice]:
        return sample_tiles(self.shape, self.backend.block_entries)

    def _even_tiles(self) -> Iterator[slice]:
        return even_tiles(self.rows.shape, self.backend.block_entries)

    def _joined(self, visit: Callable[[slice], Array], tiles: Iterator[slice]) -> Array:
        return self.backend.xp.concat(self.backend.map(visit, tiles))

    def summary(self) -> Summary:
        xp, rows = self.backend.xp, self.rows
        tops, smallest = xp.max(rows, axis=1), float(xp.min(rows))
        if smallest >= 0:
            return Summary(tops, smallest)
        missing = xp.isnan(rows)
        known = xp.where(missing, xp.zeros_like(rows), rows)
        empty = xp.nonzero(xp.all(missing, axis=1))[0]
        return Summary(
            xp.max(known, axis=1),
            float(xp.min(known)),
            int(xp.sum(known < 0)),
            int(xp.sum(missing)),
            int(empty[0]) if empty.shape[0] else None,
        )

    def sums(self) -> Array:
        xp = self.backend.xp
        return xp.sum(self.backend.asarray(self.rows), axis=1, dtype=xp.float64)

    def norms(self, power: int) -> Array:
        xp = self.backend.xp

        def visit(tile: slice) -> Array:
            rows = xp.astype(self.rows[tile], xp.float64)
            largest = xp.max(rows, axis=1)  # after division by it, squares do not overflow
            rows = rows / xp.where(largest > 0, largest, xp.ones_like(largest))[:, None]
            return largest * xp.sum(rows**power, axis=1) ** (1 / power)

        norms = self._joined(visit, self._tiles())
        if self.seen is not None:  # scaling must not depend on how many entries were observed
            norms = norms / (xp.sum(self.seen, axis=1, dtype=xp.float64) / self.seen.shape[1]) ** (1 / power)
        return norms

    def half_squares(self) -> Array:
        xp = self.backend.xp

        def visit(tile: slice) -> Array:
            rows = xp.astype(self.rows[tile], xp.float64, copy=False)
            return 0.5 * xp.sum(rows * rows, axis=1)

        return self._joined(visit, self._even_tiles())

    def observed_sums(self, others: FloatArray) -> Array:
        xp, seen, matrix = self.backend.xp, self.seen, self.backend.asarray(others)
        if seen is None:
            return xp.zeros_like(self.rows[:, :1], dtype=matrix.dtype) + xp.sum(matrix, axis=0)
        return self._joined(lambda tile: xp.astype(seen[tile], matrix.dtype) @ matrix, self._tiles())

    def error_and_size(self, model: KruskalRows) -> tuple[float, float]:
        xp = self.backend.xp

        def visit(tile: slice) -> tuple[float, float]:
            values = xp.astype(self.values[tile], xp.float64)
            difference = values - model[tile].reshape(*values.shape)
            if self.observed is not None:
                difference = xp.where(self.observed[tile], difference, xp.zeros_like(difference))
            return _norm(xp, difference), _norm(xp, values)

        errors, sizes = zip(*self.backend.map(visit, self._tiles()), strict=True)
        return math.hypot(*errors), math.hypot(*sizes)

    def filled(self, model: KruskalRows) -> Array:
        xp, observed = self.backend.xp, self.observed
        filled = xp.asarray(self.values, copy=True)
        if observed is None:
            return filled

        def visit(tile: slice) -> None:
            filled[tile] = xp.where(observed[tile], filled[tile], model[tile].reshape(*filled[tile].shape))

        self.backend.map(visit, self._tiles())
        return filled

    def host_rows(self) -> Any:
        return self.host.rows

    def float64_rows(self) -> Iterator[tuple[slice, FloatArray]]:
        rows = self.host_rows()
        return ((part, rows[part].astype(np.float64, copy=False)) for part in self.batches(_WIDE_ENTRIES))

    def float64_unfoldings(self, mode: int) -> Iterator[FloatArray]:
        values = self.host.values
        return (unfold(values[part].astype(np.float64, copy=False), mode) for part in self.batches(_WIDE_ENTRIES))

    def columns(self) -> DenseColumns:
        return DenseColumns(self.rows, self.seen, self.backend)

    def column_part(self, columns: slice) -> DenseBlock:
        rows, seen = self.host.rows, self.host.seen
        return DenseBlock(np.ascontiguousarray(rows[:, columns]), None if seen is None else seen[:, columns])

    @staticmethod
    def join_columns(parts: Sequence[DenseBlock], _: Sequence[slice], first: int, backend: Backend, /) -> DenseColumns:
        observed = None
        if any(part.observed is not None for part in parts):
            masks = [np.ones(p.values.shape, np.bool_) if p.observed is None else p.observed for p in parts]
            observed = backend.asarray(np.concatenate(masks))
        values = backend.asarray(np.concatenate([part.values for part in parts]))
        return DenseColumns(values, observed, backend, first)

    def sweep(
        self,
        compare: CompareTile,
        a: Array,
        rest: Sequence[Array],
        modes: Sequence[int] = (),
        *,
        rows: bool = True,
        sums: bool = True,
        zeros: bool = True,  # noqa: ARG002
    ) -> SweepResult:
        """Compare tiles of samples, so that the model is never in memory as a whole."""
        backend, other = self.backend, khatri_rao(rest)
        axes = {mode: mode for mode in modes}

        def visit(tile: slice) -> tuple[Array, list[Array], list[Array]]:
            x, part = self.values[tile], a[tile]
            mask = None if self.observed is None else self.observed[tile]
            with backend.quiet():
                y = backend.product(part, other.T).reshape(*x.shape)
                result = compare(Tile(tile.start, x, y, mask, axes, backend))
            flat = [array.reshape(x.shape[0], -1) for array in result.arrays]
            found = (
                result.costs,
                [array @ other for array in flat] if rows else [],
                [part.T @ array for array in flat] if sums else [],
            )
            if result.done is not None:
                result.done()
            return found

        costs, own, totals = zip(*backend.map(visit, self._tiles()), strict=True)
        return SweepResult(
            backend.xp.concat(costs, axis=1),
            [backend.xp.concat(parts) for parts in zip(*own, strict=True)],
            [Sums({0: reduce(add, parts).T}) for parts in zip(*totals, strict=True)],
        )

    def row_product(self, rest: Sequence[Array]) -> Array:
        other = khatri_rao(rest)
        return self._joined(lambda tile: self.rows[tile] @ other, self._even_tiles())

    def sum_products(self, a: Array, rest: Sequence[Array], mode: int) -> Products:  # noqa: ARG002
        parts = self.backend.map(lambda tile: self.rows[tile].T @ a[tile], self._even_tiles())
        return Sums({0: reduce(add, parts)})

    def row_step(self, rest: Sequence[Array], update: RowUpdate) -> tuple[Array, Products, Array]:
        backend, other = self.backend, khatri_rao(rest)

        def visit(tile: slice) -> tuple[Array, Array, Array]:
            x = self.rows[tile]
            with backend.quiet():
                product = x @ other
                moved = update(tile, product)
                return moved, x.T @ moved, backend.xp.sum(moved * product, dtype=backend.xp.float64)

        moved, sums, cross = zip(*backend.map(visit, self._even_tiles()), strict=True)
        return backend.xp.concat(moved), Sums({0: reduce(add, sums)}), reduce(add, cross)

    def fiber_count(self, mode: int) -> int:  # noqa: ARG002
        return self.shape[0]


def _norm(xp: Any, values: Array) -> float:
    """Frobenius norm, without overflow."""
    largest = float(xp.max(xp.abs(values)))
    if largest == 0 or not math.isfinite(largest):
        return largest
    scaled = values / largest
    return largest * math.sqrt(float(xp.sum(scaled * scaled)))
