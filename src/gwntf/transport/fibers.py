"""Transport of every fiber of one mode of a tensor, a tile of fibers at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gwntf.backends import Backend, StackTask, StackTransport
from gwntf.core import Array, InputError, Relaxation
from gwntf.data.algebra import split_shape
from gwntf.geometry import Kernel
from gwntf.transport.scaling import CHECK_EVERY, scale
from gwntf.transport.terms import plan_terms


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
) -> Array:
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

    Returns
    -------
    (3, I_1 * ... * I_{n-1}) array in float64
        The terms of W, see `plan_terms`, summed over the fibers that share their place on the axes before the mode.
    """
    shape = split_shape(data.shape, mode)
    keep = log_u is not None
    start = log_u if log_u is not None else marginal
    stacks = tuple(tensor.reshape(*shape) for tensor in (data, model, start, marginal))
    job = _Job(backend, kernel, relaxation, limits, share, warm, keep)
    return backend.xp.sum(job.terms(stacks).reshape(3, shape[0], shape[2]), axis=2)


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

    def terms(self, stacks: tuple[Array, ...]) -> Array:
        """Solve all fibers and return the terms of each, (3, fibers)."""
        before, length, after = stacks[0].shape
        compiled = self.backend.stack_transport(self.kernel.form, length, before * after)
        return self._by_tiles(stacks) if compiled is None else self._compiled(compiled, stacks)

    def _by_tiles(self, stacks: tuple[Array, ...]) -> Array:
        """Solve tile after tile with `scale`."""
        (before, length, after), xp = stacks[0].shape, self.backend.xp
        terms = self.backend.zeros((3, before, after), xp.zeros_like(stacks[0][:1, 0, :1], dtype=xp.float64))
        for rows, places in _tiles(stacks[0].shape, self.backend.tile_columns(length)):
            x, y, start = (_gather(stack, rows, places) for stack in stacks[:3])
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
            stacks[3][rows, :, places] += _fibers(self.share * solved.model_marginal, rows)
            if self.keep:
                stacks[2][rows, :, places] = _fibers(solved.log_u, rows)
            found = plan_terms(self.backend, solved, x, y, self.relaxation)
            terms[:, rows, places] = found.reshape(3, rows.stop - rows.start, -1)
        return terms.reshape(3, before * after)

    def _compiled(self, compiled: StackTransport, stacks: tuple[Array, ...]) -> Array:
        """Solve whole stacks at once; fibers that lost their accuracy are solved again in a wider number type."""
        terms, accurate = compiled(stacks, self._task(self.kernel.offsets, self.kernel.whole))
        rest = () if accurate is None else self.backend.xp.nonzero(~accurate)[0]
        if len(rest):
            self._solve_again(stacks, terms, rest)
        return terms

    def _task(self, offsets: tuple[float, float], whole: bool) -> StackTask:
        limits = self.limits.max_iter, self.limits.tol, CHECK_EVERY
        return StackTask(self.relaxation, offsets, whole, self.share, self.warm, self.keep, *limits)

    def _solve_again(self, stacks: tuple[Array, ...], terms: Array, columns: Array) -> None:
        """Solve some fibers in float64: on logarithms on a line, compiled if they came in less, or with `scale`."""
        xp = self.backend.xp
        p, q = columns // stacks[0].shape[2], columns % stacks[0].shape[2]
        x, y, log_u = (xp.astype(stack[p, :, q].T[None], xp.float64) for stack in stacks[:3])
        wide = (x, y, log_u, xp.zeros_like(x))
        job = replace(self, kernel=self.kernel.astype("float64"), share=1.0, keep=True)
        line = self.kernel.line_form()
        compiled = line and self.backend.stack_transport(lambda: line, *wide[0].shape[1:])
        if compiled:
            found, _ = compiled(wide, job._task((0.0, 0.0), whole=True))
        elif stacks[0].dtype != xp.float64:
            found = job.terms(wide)
        else:
            found = job._by_tiles(wide)
        terms[:, columns] = found
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


def _gather(stack: Any, rows: slice, places: slice) -> Array:
    """Return the fibers of a tile as columns."""
    part = stack[rows, :, places].swapaxes(0, 1)
    return part.reshape(part.shape[0], -1)


def _fibers(columns: Array, rows: slice) -> Array:
    """Return columns as the fibers of a tile."""
    return columns.reshape(columns.shape[0], rows.stop - rows.start, -1).swapaxes(0, 1)
