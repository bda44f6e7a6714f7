"""Transport of all fibers of one mode of a tensor, tile by tile."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gwntf.backends import Backend, StackTask
from gwntf.core import Array, InputError, Relaxation
from gwntf.data.algebra import split_shape
from gwntf.geometry import Kernel
from gwntf.transport.scaling import CHECK_EVERY, scale
from gwntf.transport.terms import plan_terms


@dataclass(frozen=True)
class TransportLimits:
    """Stopping criteria of the scaling of a column: see `scaling.scale`."""

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

    For the kernel, the relaxation and the limits see `scaling.scale`. ``share * Psi_n`` is added to `marginal`; with
    share = 1 / number of transported modes the sum over modes is Psi_bar. `log_u` is a tensor to which log U is
    written, as a warm start of the next call, and from which this call starts if `warm`; None stores nothing. Returns
    the terms of W, see `plan_terms`, summed over the fibers with the same indices on the axes before the mode,
    (3, I_1 * ... * I_{n-1}) in float64.
    """
    shape = split_shape(data.shape, mode)
    stacks = tuple(tensor.reshape(*shape) for tensor in (data, model, marginal if log_u is None else log_u, marginal))
    options = (share, warm, log_u is not None, limits.max_iter, limits.tol, CHECK_EVERY)
    task = StackTask(relaxation, kernel.offsets, kernel.all_normal, *options)
    return backend.xp.sum(_terms(backend, kernel, task, stacks).reshape(3, shape[0], shape[2]), axis=2)


def _terms(backend: Backend, kernel: Kernel, task: StackTask, stacks: tuple[Array, ...]) -> Array:
    """Solve all fibers of the stacks (X, X^, log U, marginal) and return the terms of each, (3, fibers)."""
    before, length, after = stacks[0].shape
    compiled = backend.stack_transport(kernel.form, length, before * after)
    if compiled is None:
        return _by_tiles(backend, kernel, task, stacks)
    terms, accurate = compiled(stacks, task)
    columns = () if accurate is None else backend.xp.nonzero(~accurate)[0]
    if len(columns):
        _solve_again(backend, kernel, task, stacks, terms, columns)
    return terms


def _by_tiles(backend: Backend, kernel: Kernel, task: StackTask, stacks: tuple[Array, ...]) -> Array:
    """Solve all fibers with `scale`, tile by tile."""
    (before, length, after), xp = stacks[0].shape, backend.xp
    terms = backend.zeros((3, before, after), xp.zeros_like(stacks[0][:1, 0, :1], dtype=xp.float64))
    limits: Any = {"max_iter": task.max_iter, "tol": task.tol}
    for rows, cols in _tiles(stacks[0].shape, backend.tile_columns(length)):
        x, y, start = (_gather(stack, rows, cols) for stack in stacks[:3])
        solved = scale(backend, kernel, x, y, task.relaxation, log_u=start if task.warm else None, **limits)
        stacks[3][rows, :, cols] += _fibers(task.share * solved.model_marginal, rows)
        if task.keep:
            stacks[2][rows, :, cols] = _fibers(solved.log_u, rows)
        found = plan_terms(backend, solved, x, y, task.relaxation)
        terms[:, rows, cols] = found.reshape(3, rows.stop - rows.start, -1)
    return terms.reshape(3, before * after)


def _solve_again(
    backend: Backend, kernel: Kernel, task: StackTask, stacks: tuple[Array, ...], terms: Array, columns: Array
) -> None:
    """Solve inaccurate fibers again in float64: on a line with logarithms, else with plain numbers or `scale`."""
    xp = backend.xp
    p, q = columns // stacks[0].shape[2], columns % stacks[0].shape[2]
    x, y, log_u = (xp.astype(stack[p, :, q].T[None], xp.float64) for stack in stacks[:3])
    wide, kernel = (x, y, log_u, xp.zeros_like(x)), kernel.astype("float64")
    again = task._replace(offsets=kernel.offsets, all_normal=kernel.all_normal, share=1.0, keep=True)
    line = kernel.line_form()
    on_line = backend.stack_transport(lambda: line, *x.shape[1:]) if line else None
    if on_line:
        found, _ = on_line(wide, again._replace(offsets=(0.0, 0.0)))
    else:
        solve = _terms if stacks[0].dtype != xp.float64 else _by_tiles
        found = solve(backend, kernel, again, wide)
    terms[:, columns] = found
    stacks[3][p, :, q] += xp.astype(task.share * wide[3][0].T, stacks[3].dtype)
    if task.keep:
        stacks[2][p, :, q] = xp.astype(wide[2][0].T, stacks[2].dtype)


def _tiles(shape: tuple[int, int, int], columns: int) -> Iterator[tuple[slice, slice]]:
    """Split (before, length, after) into tiles of about that many fibers."""
    before, _, after = shape
    rows, width = max(1, columns // after), min(columns, after)
    for top in range(0, before, rows):
        for left in range(0, after, width):
            yield slice(top, min(top + rows, before)), slice(left, min(left + width, after))


def _gather(stack: Any, rows: slice, cols: slice) -> Array:
    """Return the fibers of a tile as columns."""
    part = stack[rows, :, cols].swapaxes(0, 1)
    return part.reshape(part.shape[0], -1)


def _fibers(columns: Array, rows: slice) -> Array:
    """Return columns as the fibers of a tile."""
    return columns.reshape(columns.shape[0], rows.stop - rows.start, -1).swapaxes(0, 1)
