"""What the workers do: pure functions of a block of the data, its part of the sample factor, and small matrices.

Whatever travels is a NumPy array; data and scalings lie on the engine of the worker. What is large says how large it is
(`__sizeof__`), so that the scheduler leaves it where it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gwntf.core import Array, FloatArray
from gwntf.engines import Engine, get_engine
from gwntf.geometry import Kernel, SampleGraph
from gwntf.problem import NonnegativeTensor, khatri_rao
from gwntf.problem.chunks import read
from gwntf.solvers.losses import FrobeniusLoss, Wasserstein
from gwntf.solvers.losses.sweep import DenseColumns, Sweep, Swept, WarmStarts, by_columns, by_samples
from gwntf.transport import PlanTerms
from gwntf.updates import RULES, penalty

Scalings = dict[tuple[int, int], Array]


@dataclass(frozen=True)
class Place:
    """With which engine the workers compute."""

    device: str | None
    precision: str

    @cached_property
    def engine(self) -> Engine:
        """Made where it is first asked for."""
        return get_engine("auto", device=self.device, precision=self.precision)

    def __reduce__(self) -> Any:
        return Place, (self.device, self.precision)


@dataclass(frozen=True)
class Job:
    """What all blocks of a fit under a Wasserstein loss have in common.

    Attributes
    ----------
    place : Place
        The engine.
    spec : Wasserstein
        The loss.
    dtype : dtype
        Of the data.
    warm : bool
        Whether scalings are kept from one transport to the next.
    """

    place: Place
    spec: Wasserstein
    dtype: np.dtype[Any]
    warm: bool

    def __reduce__(self) -> Any:
        return Job, (self.place, self.spec, self.dtype, self.warm)

    @cached_property
    def kernels(self) -> tuple[Kernel | None, ...]:
        """Built once on every worker."""
        return self.spec.kernels(self.place.engine, self.dtype)

    def sweep(self, last: Measured | None, scalings: int) -> Sweep:
        """Return a sweep that starts from copies of the last scalings, so that these stay as they were."""
        engine = self.place.engine
        warm = WarmStarts(engine, self.warm)
        for (mode, place), kept in (last.warm if last else {}).items():
            warm.keep(mode, place, engine.xp.asarray(engine.asarray(kept), copy=True))
        limits = replace(self.spec.limits, max_iter=scalings)
        return Sweep(engine, self.kernels, self.spec.relaxation, limits, warm, self.spec.transported)


@dataclass(frozen=True)
class Share:
    """What a block adds to a sum over all blocks: R_(1)' A(1) or X_(1)' A(1), A(1)' A(1), and the numbers of F."""

    others: FloatArray
    gram: FloatArray
    numbers: FloatArray

    def __sizeof__(self) -> int:
        return self.others.nbytes + self.gram.nbytes + self.numbers.nbytes

    def __add__(self, other: Share) -> Share:
        """Add part by part."""
        return Share(self.others + other.others, self.gram + other.gram, self.numbers + other.numbers)


@dataclass(frozen=True)
class Measured:
    """What the transports of a block have found.

    Attributes
    ----------
    samples : (n, R) array
        R_(1) A(-1), or for a block of columns its part of it.
    warm : dict
        Scalings, for the next transports.
    share : Share or None
        For the sum over blocks, until that is done.
    """

    samples: FloatArray
    warm: Scalings
    share: Share | None

    def __sizeof__(self) -> int:
        kept = sum(int(scaling.nbytes) for scaling in self.warm.values())
        return self.samples.nbytes + kept + sys.getsizeof(self.share)


def called(function: Callable[..., Any], block: NonnegativeTensor, *arguments: Any) -> Any:
    """Call a function with a block, in the session of its engine."""
    with block.engine.session(None):
        return function(block, *arguments)


def read_block(place: Place, source: Any, rows: slice, dtype: np.dtype[Any]) -> NonnegativeTensor:
    """Read some samples of a source, as they are."""
    return NonnegativeTensor(place.engine.asarray(read(source, rows), dtype), None, place.engine)


def place_block(place: Place, block: NonnegativeTensor) -> NonnegativeTensor:
    """Bring a block to the engine of the worker."""
    engine = place.engine
    observed = None if block.observed is None else engine.asarray(block.observed)
    return NonnegativeTensor(engine.asarray(block.values), observed, engine)


def measure_samples(
    job: Job,
    block: NonnegativeTensor,
    a: FloatArray,
    rest: Sequence[FloatArray],
    last: Measured | None,
    scalings: int,
) -> Measured:
    """Transport a block of samples along all modes but theirs, or find its KL divergence."""
    engine, sweep = job.place.engine, job.sweep(last, scalings)
    first, *others = (engine.asarray(factor) for factor in (a, *rest))
    with engine.session(None), engine.quiet():
        swept = by_samples(sweep, block.values, block.observed, first, khatri_rao(others))
        misfit = 0.0 if sweep.modes else float(engine.xp.sum(swept.by_sample))
    return _measured(engine, sweep, swept, misfit, len(block.shape))


def measure_columns(
    job: Job,
    block: NonnegativeTensor,
    a: FloatArray,
    rest: Sequence[FloatArray],
    columns: slice,
    last: Measured | None,
    scalings: int,
) -> Measured:
    """Transport some columns of X_(1) along the samples."""
    engine, sweep = job.place.engine, job.sweep(last, scalings)
    first = engine.asarray(a)
    other = engine.asarray(khatri_rao(list(rest))[columns])
    with engine.session(None), engine.quiet():
        swept = by_columns(sweep, DenseColumns(block.values, block.observed), first, other)
    return _measured(engine, sweep, swept, 0.0, 1 + len(rest))


def _measured(engine: Engine, sweep: Sweep, swept: Swept, misfit: float, order: int) -> Measured:
    """Bring what is small to the host; the numbers are three a mode, and the misfit."""
    samples, others = (engine.to_numpy(product) for product in swept.products)
    numbers = np.zeros(3 * order + 1)
    for mode, terms in swept.terms.items():
        numbers[3 * mode : 3 * mode + 3] = [float(part) for part in terms.parts]
    numbers[-1] = misfit
    return Measured(samples, sweep.warm.by_place, Share(others, np.zeros(()), numbers))


def numbered_terms(numbers: FloatArray, transported: Sequence[int]) -> tuple[PlanTerms | None, ...]:
    """Name the numbers of the modes."""
    triples = numbers[:-1].reshape(-1, 3)
    return tuple(
        PlanTerms(*map(float, triple)) if mode in transported else None for mode, triple in enumerate(triples)
    )


def resting(measured: Measured, place: Place) -> Measured:
    """Return what the next step needs of it, in NumPy."""
    warm = {key: place.engine.to_numpy(kept) for key, kept in measured.warm.items()}
    return Measured(measured.samples, warm, None)


def cut_columns(block: NonnegativeTensor, columns: slice) -> tuple[FloatArray, Any]:
    """Return some columns of the rows of a block, and which of their entries were observed."""
    host = block.on_host
    observed = None if host.observed is None else host.observed.reshape(host.rows.shape)[:, columns]
    return np.ascontiguousarray(host.rows[:, columns]), observed


def join_columns(place: Place, parts: Sequence[tuple[FloatArray, Any]]) -> NonnegativeTensor:
    """Put the parts of some columns that the blocks of samples have one below the other."""
    values, masks = zip(*parts, strict=True)
    holed = any(mask is not None for mask in masks)
    filled = [
        np.ones(part.shape, np.bool_) if mask is None else mask
        for part, mask in zip(values, masks, strict=True)
    ]
    observed = np.concatenate(filled) if holed else None
    return place_block(place, NonnegativeTensor(np.concatenate(values), observed))


def joined(parts: Sequence[FloatArray]) -> FloatArray:
    """Put rows one below the other."""
    return np.concatenate(parts)


def taken(rows: FloatArray, which: Any) -> FloatArray:
    """Return some rows."""
    return np.ascontiguousarray(rows[which])


def numerator(a: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
    """W = A(1) * R_(1) A(-1), its parts being those of samples and of columns."""
    product = parts[0]
    for part in parts[1:]:
        product = product + part
    return a * product


class WithNeighbors:
    """V of a block: its product with the rows of the block, those of their neighbours in other blocks at hand."""

    def __init__(self, matrix: Array, rows: Array, engine: Engine) -> None:
        self._matrix, self._rows, self._engine = matrix, rows, engine

    def __matmul__(self, a: Array) -> Array:
        """V A."""
        return self._matrix @ self._engine.xp.concat([a, self._rows])


def _neighbors(engine: Engine, a: FloatArray, lent: Sequence[FloatArray]) -> Array:
    """Rows that other blocks have lent, in the order of the columns of the graph of this one."""
    return engine.asarray(np.concatenate(lent) if lent else a[:0])


def _with_neighbors(
    engine: Engine, graph: SampleGraph, a: FloatArray, lent: Sequence[FloatArray]
) -> SampleGraph:
    matrix = engine.sparse(graph.matrix, a.dtype)
    degree = engine.asarray(graph.degree, a.dtype)
    lines = WithNeighbors(matrix, _neighbors(engine, a, lent), engine)
    return replace(graph, matrix=lines, degree=degree)


def tied_step(
    job: Job, a: FloatArray, w: FloatArray, graph: SampleGraph, lent: Sequence[FloatArray]
) -> FloatArray:
    """One step of the rule on the rows of a block."""
    engine, rule = job.place.engine, RULES[job.spec.update]
    with engine.session(None), engine.quiet():
        here = _with_neighbors(engine, graph, a, lent)
        return engine.to_numpy(rule(engine, engine.asarray(a), engine.asarray(w), job.spec.weight, here))


def smoothness(place: Place, a: FloatArray, graph: SampleGraph, lent: Sequence[FloatArray]) -> float:
    """Return the penalty of the edges that begin in a block."""
    engine = place.engine
    with engine.session(None):
        edges = tuple(engine.asarray(part) for part in graph.edges)
        rows = engine.xp.concat([engine.asarray(a), _neighbors(engine, a, lent)])
        return float(penalty(engine, rows, replace(graph, edges=edges)))


@dataclass(frozen=True)
class Squares:
    """The least-squares loss of a block."""

    loss: FrobeniusLoss
    block: NonnegativeTensor

    def __reduce__(self) -> Any:
        return place_squares, (self.block,)

    def __sizeof__(self) -> int:
        return sys.getsizeof(self.block)


def place_squares(block: NonnegativeTensor) -> Squares:
    """Place the least-squares loss of a block."""
    with block.engine.session(None):
        return Squares(FrobeniusLoss(block.engine, block), block)


def size_of_squares(squares: Squares) -> float:
    """1/2 |X|^2 of a block."""
    return float(squares.loss.sample_scales.sum())


def measure_squares(squares: Squares, a: FloatArray, rest: Sequence[FloatArray]) -> Share:
    """1/2 |X - X^|^2 of a block, X_(1)' A(1) and A(1)' A(1)."""
    loss, engine = squares.loss, squares.loss.engine
    with engine.session(None), engine.quiet():
        factors = [engine.asarray(factor) for factor in (a, *rest)]
        found = loss.evaluate(factors)
        begun = engine.to_numpy(loss.begun(factors, found.carried))
        return Share(begun, a.T @ a, np.array([float(found.misfit)]))


def step_squares(
    squares: Squares,
    a: FloatArray,
    rest: Sequence[FloatArray],
    graph: SampleGraph | None,
    lent: Sequence[FloatArray],
) -> FloatArray:
    """Update the rows of a block, the other factors having been updated."""
    loss, engine = squares.loss, squares.loss.engine
    with engine.session(None), engine.quiet():
        here = None if graph is None else _with_neighbors(engine, graph, a, lent)
        factors = [engine.asarray(factor) for factor in (a, *rest)]
        return engine.to_numpy(loss.moved_samples(factors, here))
