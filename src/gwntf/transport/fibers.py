"""Transport of every fiber of one mode of a tensor, a tile of fibers at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gwntf.core import Array, InputError, Relaxation
from gwntf.engines import Engine
from gwntf.geometry import Kernel
from gwntf.problem.algebra import split_shape
from gwntf.transport.scaling import CHECK_EVERY, scale
from gwntf.transport.terms import PlanTerms, plan_terms

_STRIP = 2**20
"""Fibers handed to compiled code at once."""


@dataclass(frozen=True)
class TransportLimits:
    """When the scaling of a column stops: see `scaling.scale`."""

    max_iter: int
    tol: float

    def __post_init__(self) -> None:
        if not self.max_iter >= 1:
            raise InputError("max_iter", repr(self.max_iter), "a whole number of at least 1")
        if not self.tol >= 0:
            raise InputError("tol", repr(self.tol), "a nonnegative number")


@dataclass(frozen=True)
class ModeTransport:
    """What the transport of a mode costs.

    Attributes
    ----------
    terms : PlanTerms
        Sums over all fibers.
    by_leading : (I_1 * ... * I_{n-1},) array
        W summed over the fibers that share their place on the axes before the mode, in float64.
    """

    terms: PlanTerms
    by_leading: Array


def transport_mode(
    engine: Engine,
    kernel: Kernel,
    data: Array,
    model: Array,
    mode: int,
    relaxation: Relaxation,
    limits: TransportLimits,
    *,
    marginal: Array,
    share: float,
    log_v: Array,
    warm: bool,
) -> ModeTransport:
    """Transport every mode-n fiber of `data` to the same fiber of `model`.

    Parameters
    ----------
    engine, kernel, relaxation, limits
        See `scaling.scale`.
    data, model : tensors
        X and X^, of one shape.
    mode : int
        Axis of the fibers.
    marginal : tensor
        Receives ``share * Psi_n``, added to what it holds.
    share : float
        1 / number of transported modes makes `marginal` collect Psi_bar.
    log_v : tensor
        log V, written for the next call.
    warm : bool
        Whether `log_v` holds the V of the last call to start from.
    """
    shape = split_shape(data.shape, mode)
    stacks = tuple(tensor.reshape(*shape) for tensor in (data, model, log_v, marginal))
    by_leading = engine.xp.zeros_like(stacks[0][:, 0, 0], dtype=engine.xp.float64)
    sums = [0.0, 0.0, 0.0]
    for tile, terms in _transport_tiles(engine, kernel, stacks, relaxation, limits, share, warm):
        rows = tile[0]
        totals = engine.xp.reshape(terms.total, (rows.stop - rows.start, -1))
        by_leading[rows] += engine.xp.sum(totals, axis=1)
        for place, term in enumerate((terms.transport, terms.data, terms.model)):
            sums[place] += float(engine.xp.sum(term))
    return ModeTransport(PlanTerms(*sums), by_leading)


def _transport_tiles(
    engine: Engine,
    kernel: Kernel,
    stacks: tuple[Array, ...],
    relaxation: Relaxation,
    limits: TransportLimits,
    share: float,
    warm: bool,
) -> Iterator[tuple[tuple[slice, slice], PlanTerms]]:
    """Solve tile after tile, write its marginal and log V, and yield what its fibers cost."""
    data, model, log_v, marginal = stacks
    before, length, after = data.shape
    compiled = engine.stack_transport(kernel.form())
    if compiled is None:
        for tile in _tiles((before, length, after), engine.tile_columns(length)):
            x, y = _gather(data, tile), _gather(model, tile)
            start = _gather(log_v, tile) if warm else None
            solved = scale(
                engine, kernel, x, y, relaxation, log_v=start, max_iter=limits.max_iter, tol=limits.tol
            )
            _scatter(marginal, tile, share * solved.model_marginal, add=True)
            _scatter(log_v, tile, solved.log_v, add=False)
            yield tile, plan_terms(engine, solved, x, y, relaxation)
        return
    step = max(1, _STRIP // after)
    for top in range(0, before, step):
        rows = slice(top, min(top + step, before))
        part = tuple(stack[rows] for stack in stacks)
        terms, sound = compiled(part, relaxation, share, warm, limits.max_iter, limits.tol, CHECK_EVERY)
        _solve_rest(engine, kernel, part, relaxation, limits, share, warm, terms, sound)
        yield (rows, slice(0, after)), PlanTerms(*terms)


def _solve_rest(
    engine: Engine,
    kernel: Kernel,
    stacks: tuple[Array, ...],
    relaxation: Relaxation,
    limits: TransportLimits,
    share: float,
    warm: bool,
    terms: Array,
    sound: Array,
) -> None:
    """Solve the fibers that compiled plain numbers could not hold, in wider ones."""
    columns = engine.xp.nonzero(~sound)[0]
    if columns.shape[0] == 0:
        return
    data, model, log_v, marginal = stacks
    p, q = columns // data.shape[2], columns % data.shape[2]
    x, y, start = (stack[p, :, q].T for stack in (data, model, log_v))
    solved = scale(
        engine,
        kernel,
        x,
        y,
        relaxation,
        log_v=start if warm else None,
        max_iter=limits.max_iter,
        tol=limits.tol,
    )
    marginal[p, :, q] += share * solved.model_marginal.T
    log_v[p, :, q] = solved.log_v.T
    found = plan_terms(engine, solved, x, y, relaxation)
    for place, term in enumerate((found.transport, found.data, found.model)):
        terms[place, columns] = term


def _tiles(shape: tuple[int, int, int], columns: int) -> Iterator[tuple[slice, slice]]:
    """Cut (before, length, after) into pieces of about that many fibers."""
    before, _, after = shape
    rows, width = max(1, columns // after), min(columns, after)
    for top in range(0, before, rows):
        for left in range(0, after, width):
            yield slice(top, min(top + rows, before)), slice(left, min(left + width, after))


def _gather(stack: Any, tile: tuple[slice, slice]) -> Array:
    """Return the fibers of a tile as columns."""
    part = stack[tile[0], :, tile[1]].swapaxes(0, 1)
    return part.reshape(part.shape[0], -1)


def _scatter(stack: Any, tile: tuple[slice, slice], columns: Array, *, add: bool) -> None:
    """Write columns back to their fibers."""
    rows, places = tile
    values = columns.reshape(columns.shape[0], rows.stop - rows.start, -1).swapaxes(0, 1)
    if add:
        stack[rows, :, places] += values
    else:
        stack[rows, :, places] = values
