"""Transport of every fiber of one mode of a tensor, a tile of fibers at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gwntf.core import Array, InputError, Relaxation
from gwntf.backends import Backend, StackTask, StackTransport
from gwntf.geometry import Kernel
from gwntf.data.algebra import split_shape
from gwntf.transport.scaling import CHECK_EVERY, scale
from gwntf.transport.terms import PlanTerms, plan_terms


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
        Sums over all fibers, on the backend.
    by_leading : (I_1 * ... * I_{n-1},) array
        W summed over the fibers that share their place on the axes before the mode, in float64.
    """

    terms: PlanTerms
    by_leading: Array


def transport_mode(
    backend: Backend,
    kernel: Kernel,
    data: Array,
    model: Array,
    mode: int,
    relaxation: Relaxation,
    limits: TransportLimits,
    *,
    marginal: Array,
    share: float,
    log_u: Array | None,
    warm: bool,
) -> ModeTransport:
    """Transport every mode-n fiber of `data` to the same fiber of `model`.

    Parameters
    ----------
    backend, kernel, relaxation, limits
        See `scaling.scale`.
    data, model : tensors
        X and X^, of one shape.
    mode : int
        Axis of the fibers.
    marginal : tensor
        Receives ``share * Psi_n``, added to what it holds.
    share : float
        1 / number of transported modes makes `marginal` collect Psi_bar.
    log_u : tensor or None
        log U, written for the next call; None keeps nothing.
    warm : bool
        Whether `log_u` holds the U of the last call to start from.
    """
    shape = split_shape(data.shape, mode)
    keep = log_u is not None
    held = log_u if log_u is not None else marginal
    stacks = tuple(tensor.reshape(*shape) for tensor in (data, model, held, marginal))
    by_leading = backend.xp.zeros_like(stacks[0][:, 0, 0], dtype=backend.xp.float64)
    sums = PlanTerms(0.0, 0.0, 0.0)
    job = _Job(backend, kernel, relaxation, limits, share, warm, keep)
    for tile, terms in job.tiles(stacks):
        rows = tile[0]
        totals = backend.xp.reshape(terms.total, (rows.stop - rows.start, -1))
        by_leading[rows] += backend.xp.sum(totals, axis=1)
        sums = sums + PlanTerms(*(backend.xp.sum(part) for part in terms.parts))
    return ModeTransport(sums, by_leading)


@dataclass(frozen=True)
class _Job:
    """What all tiles of a mode have in common.

    Stacks are (X, X^, log U, marginal); log U is read if `warm` and written if `keep`.
    """

    backend: Backend
    kernel: Kernel
    relaxation: Relaxation
    limits: TransportLimits
    share: float
    warm: bool
    keep: bool

    def tiles(self, stacks: tuple[Array, ...]) -> Iterator[tuple[tuple[slice, slice], PlanTerms]]:
        """Solve all fibers and yield what those of each tile cost."""
        before, length, after = stacks[0].shape
        compiled = self.backend.stack_transport(self.kernel.form, length, before * after)
        if compiled is None:
            yield from self._by_tiles(stacks)
            return
        yield (slice(0, before), slice(0, after)), PlanTerms(*self._compiled(compiled, stacks))

    def _by_tiles(self, stacks: tuple[Array, ...]) -> Iterator[tuple[tuple[slice, slice], PlanTerms]]:
        """Solve tile after tile with `scale`."""
        shape = stacks[0].shape
        for tile in _tiles(shape, self.backend.tile_columns(shape[1])):
            x, y, start = (_gather(stack, tile) for stack in stacks[:3])
            solved = scale(
                self.backend,
                self.kernel,
                x,
                y,
                self.relaxation,
                log_u=start if self.warm else None,
                max_iter=self.limits.max_iter,
                tol=self.limits.tol,
            )
            _scatter(stacks[3], tile, self.share * solved.model_marginal, add=True)
            if self.keep:
                _scatter(stacks[2], tile, solved.log_u, add=False)
            yield tile, plan_terms(self.backend, solved, x, y, self.relaxation)

    def _compiled(self, compiled: StackTransport, stacks: tuple[Array, ...]) -> Array:
        """Solve whole stacks at once and return the terms of every fiber; what was not held climbs on."""
        task = StackTask(
            self.relaxation,
            self.kernel.offsets,
            self.kernel.whole,
            self.share,
            self.warm,
            self.keep,
            self.limits.max_iter,
            self.limits.tol,
            CHECK_EVERY,
        )
        terms, sound = compiled(stacks, task)
        rest = () if sound is None else self.backend.xp.nonzero(~sound)[0]
        if len(rest):
            self._solve_rest(stacks, terms, rest)
        return terms

    def _solve_rest(self, stacks: tuple[Array, ...], terms: Array, columns: Array) -> None:
        """Solve some fibers in float64: compiled again if they came in less, else with `scale` on logarithms."""
        xp = self.backend.xp
        p, q = columns // stacks[0].shape[2], columns % stacks[0].shape[2]
        x, y, log_u = (xp.astype(stack[p, :, q].T[None], xp.float64) for stack in stacks[:3])
        wide = (x, y, log_u, xp.zeros_like(x))
        climber = replace(self, kernel=self.kernel.astype("float64"), share=1.0, keep=True)
        again = self.backend.stack_transport(climber.kernel.form, x.shape[1], x.shape[2])
        if stacks[0].dtype != xp.float64 and again is not None:
            terms[:, columns] = climber._compiled(again, wide)
        else:
            for tile, found in climber._by_tiles(wide):
                terms[:, columns[tile[1]]] = xp.stack(list(found.parts))
        stacks[3][p, :, q] += xp.astype(self.share * wide[3][0].T, stacks[3].dtype)
        if self.keep:
            stacks[2][p, :, q] = xp.astype(wide[2][0].T, stacks[2].dtype)


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
