"""One pass over a sparse tensor: its nonzero fibers, a tile of them at a time.

Where a fiber of X is zero so is that of Psi: it adds nothing to what the factor step needs, and costs beta sum(x^). The
sum of X^ over all fibers is known from the column sums of the factors, so what the zero fibers cost is that less the
sum over the others. X^ is formed on a tile of nonzero fibers, compared there with X, and forgotten; where no mode is
transported it is formed on the nonzero entries alone, and all of sum(X^) is left to the column sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from gwntf.core import FloatArray
from gwntf.backends import Backend
from gwntf.geometry import SampleGraph
from gwntf.data import Fibers, SparseTensor, pieces
from gwntf.losses.dense import Sums, sums_of
from gwntf.losses.sweep import Sweep, Swept
from gwntf.transport import PlanTerms
from gwntf.updates import least_squares_factor, other_masses, ratio_to_model

_TOGETHER, _FEWEST = 32, 128
"""Tiles whose answers are held before they are added up, and fibers that a transported tile has at least."""


class _ByFiber(NamedTuple):
    """What is known of every fiber.

    Attributes
    ----------
    across : (F, R) array
        Fibers of Psi / X^, or of X / X^, times A(n).
    cost : (F,) array
        W, or sum x log(x/x^) - x over the nonzero entries.
    mass : (F,) array
        Which part of sum(X^) is in the cost.
    """

    across: FloatArray
    cost: FloatArray
    mass: FloatArray


class _Compared(NamedTuple):
    """Fibers compared with the model: what they cost, (Psi / X^)_(n) A(-n), and what is known of each."""

    terms: PlanTerms
    own: FloatArray
    fibers: _ByFiber


_Look: TypeAlias = Callable[[Sweep, Fibers, Sequence[FloatArray], slice], _Compared]


class SparsePass:
    """A pass over a sparse tensor, for `TransportLoss`."""

    def __init__(self, backend: Backend, tensor: SparseTensor) -> None:
        self._engine, self._tensor = backend, tensor

    def scaling_bytes(self, modes: Sequence[int]) -> int:
        """Bytes of the scalings along some modes."""
        entries = sum(self._tensor.fibers(mode).count * self._tensor.shape[mode] for mode in modes)
        return int(entries * self._tensor.dtype.itemsize)

    def product(
        self,
        products: Sequence[FloatArray],
        factors: Sequence[FloatArray],  # noqa: ARG002
        mode: int,
    ) -> FloatArray:
        """Return (Psi_bar / X^)_(n) A(-n) for one n; a pass has found all of them."""
        return products[mode]

    def __call__(self, sweep: Sweep, factors: Sequence[FloatArray]) -> Swept:
        """Compare the data with the model of these factors."""
        if not sweep.modes:
            fibers = self._tensor.own_fibers
            found = self._compare(sweep, fibers, factors, _divided)
            return Swept(
                {}, self._by_sample(fibers, found, factors, 1.0), self._products(fibers, found, factors)
            )
        beta = sweep.relaxation.reg_m_model
        terms, costs, products = {}, [], []
        for mode in sweep.modes:
            fibers = self._tensor.fibers(mode)
            found = self._compare(sweep, fibers, factors, _transported)
            zeros = float(self._all_masses(factors).sum() - found.fibers.mass.sum())
            terms[mode] = found.terms + PlanTerms(0.0, 0.0, beta * max(zeros, 0.0))
            if 0 not in sweep.modes:
                costs.append(self._by_sample(fibers, found, factors, beta))
            products.append(self._products(fibers, found, factors))
        joined = tuple(reduce(add, arrays) for arrays in zip(*products, strict=True))
        return Swept(terms, reduce(add, costs) if costs else None, joined)

    def _products(
        self, fibers: Fibers, found: _Compared, factors: Sequence[FloatArray]
    ) -> tuple[FloatArray, ...]:
        return fibers.products(factors, found.own, found.fibers.across)

    def _all_masses(self, factors: Sequence[FloatArray]) -> FloatArray:
        """sum(x^) of every sample, from the column sums of the factors."""
        wide = [np.asarray(factor, np.float64) for factor in factors]
        masses: FloatArray = wide[0] @ other_masses(self._engine, wide, 0)
        return masses

    def _by_sample(
        self, fibers: Fibers, found: _Compared, factors: Sequence[FloatArray], beta: float
    ) -> FloatArray:
        """Return what every sample costs: its nonzero fibers, and the mass of the model off them."""
        cost, mass = (
            np.bincount(fibers.places[0], part, minlength=self._tensor.shape[0])
            for part in (found.fibers.cost, found.fibers.mass)
        )
        total: FloatArray = cost + beta * np.maximum(self._all_masses(factors) - mass, 0)
        return total

    def _compare(self, sweep: Sweep, fibers: Fibers, factors: Sequence[FloatArray], look: _Look) -> _Compared:
        """Go through the fibers, tile by tile."""
        a = factors[fibers.mode]
        terms, own = PlanTerms(0.0, 0.0, 0.0), np.zeros_like(a)
        none = np.zeros(0)
        known = [_ByFiber(a[:0], none, none)]
        for tiles in self._tiles(fibers, factors, look):
            parts = self._engine.map(lambda tile: look(sweep, fibers, factors, tile), tiles)
            terms = reduce(add, (part.terms for part in parts), terms)
            own = reduce(add, (part.own for part in parts), own)
            known += [part.fibers for part in parts]
        return _Compared(terms, own, _ByFiber(*(np.concatenate(part) for part in zip(*known, strict=True))))

    def _tiles(self, fibers: Fibers, factors: Sequence[FloatArray], look: _Look) -> Iterator[list[slice]]:
        """Cut the fibers into tiles of equal size, since small ones are slow, and hand out some tiles at a time."""
        length, rank = factors[fibers.mode].shape
        if look is _transported:
            step = max(_FEWEST, self._engine.block_entries // length)
        else:
            step = max(1, self._engine.block_entries * fibers.count // max(1, rank * fibers.matrix.nnz))
        number = max(1, math.ceil(fibers.count / step))
        tiles = list(pieces(fibers.count, max(1, math.ceil(fibers.count / number))))
        return (tiles[part] for part in pieces(len(tiles), _TOGETHER))


def _transported(sweep: Sweep, fibers: Fibers, factors: Sequence[FloatArray], tile: slice) -> _Compared:
    """Transport a tile of fibers to the model."""
    backend, a = sweep.backend, factors[fibers.mode]
    x = fibers.matrix[tile].toarray()
    weights = fibers.weights(factors, tile)
    with backend.quiet():
        y = weights @ a.T
        target = np.zeros_like(x)
        found = sweep.transport(fibers.mode, tile.start, x, y, target, axis=1)
        ratio = ratio_to_model(backend, target, y)
    mass = weights.astype(np.float64) @ a.sum(axis=0, dtype=np.float64)
    sweep.warm.keep(fibers.mode, tile.start, found.log_u)
    return _Compared(found.terms, ratio.T @ weights, _ByFiber(ratio @ a, found.by_leading, mass))


def _divided(sweep: Sweep, fibers: Fibers, factors: Sequence[FloatArray], tile: slice) -> _Compared:
    """Divide the nonzero entries of a tile of fibers by the model there, which costs KL."""
    a, part = factors[fibers.mode], fibers.matrix[tile]
    size, x = part.shape[0], part.data
    weights = fibers.weights(factors, tile)
    row = np.repeat(np.arange(size), np.diff(part.indptr))
    with sweep.backend.quiet():
        y = np.einsum("er,er->e", weights[row], a[part.indices])
        quotient = ratio_to_model(sweep.backend, x, y)
        cost = np.where(y > 0, x * np.log(quotient) - x, np.inf)
    ratio = csr_array((quotient, part.indices, part.indptr), shape=part.shape)
    costs: Any = np.bincount(row, cost.astype(np.float64), minlength=size)
    by_fiber = _ByFiber(ratio @ a, costs, np.zeros(size))
    return _Compared(PlanTerms(0.0, 0.0, 0.0), ratio.T @ weights, by_fiber)


class SparseUnfoldings:
    """Products of a sparse tensor with the factors, for `FrobeniusLoss`."""

    def __init__(self, backend: Backend, tensor: SparseTensor) -> None:
        self._engine, self._tensor = backend, tensor

    def half_squares(self) -> FloatArray:
        """1/2 |x|^2 of every sample."""
        squares = self._tensor.values.astype(np.float64) ** 2
        return 0.5 * np.bincount(self._tensor.places[0], squares, minlength=self._tensor.shape[0])

    def begin(self, first: FloatArray) -> FloatArray:
        """Return A(1): nothing can be made ready for the modes other than the samples."""
        return first

    def product(self, begun: FloatArray, factors: Sequence[FloatArray], mode: int) -> FloatArray:  # noqa: ARG002
        """X_(n) A(-n) for one n but the first."""
        return self._tensor.own_fibers.product(factors, mode)

    def sample_product(self, factors: Sequence[FloatArray]) -> FloatArray:
        """X_(1) A(-1)."""
        return self._tensor.own_fibers.product(factors, 0)

    def step(
        self, factors: Sequence[FloatArray], grams: FloatArray, graph: SampleGraph | None
    ) -> tuple[FloatArray, Sums]:
        """Move the samples; return the new A(1), and the sums with it."""
        backend, product = self._engine, self.sample_product(factors)
        moved = least_squares_factor(backend, factors[0], product, grams, graph)
        return moved, sums_of(backend, moved, product, self.begin(moved))
