r"""Batched unbalanced scaling of many columns that share one kernel.

For every pair of columns x, y the minimiser of

    <C, T> + (1/lam) sum T log T + alpha KL(T1 | x) + beta KL(T'1 | y)

is T = diag(u) K diag(v) with K = exp(-lam C - 1), u = (x / K v)^phi and v = (y / K' u)^psi. The loop
alternates the two equations. Columns are independent: each has its own stopping test, and each is solved with
plain numbers in the precision of the data, then in float64, then with logarithms, until the result is accurate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gwntf.backends import Backend
from gwntf.core import Array, Relaxation
from gwntf.geometry import Kernel
from gwntf.transport.domains import Domain, Log, Plain

_MIN_RETRIES, _RETRY_DIVISOR = 16, 4
"""Columns that are solved again without host synchronisation: the first number, or all divided by the second one."""

CHECK_EVERY = 5
"""Number of scalings between two tests of convergence."""


@dataclass(frozen=True)
class Scaled:
    """Solution of a batch of columns."""

    log_u: Array  # (I, M) array: logarithm of U; -inf where U is zero
    log_v: Array  # (I, M) array: logarithm of V
    data_marginal: Array  # (I, M) array: Phi = T1
    model_marginal: Array  # (I, M) array: Psi = T'1


def scale(
    backend: Backend,
    kernel: Kernel,
    x: Array,
    y: Array,
    relaxation: Relaxation,
    *,
    log_u: Array | None = None,
    max_iter: int,
    tol: float,
) -> Scaled:
    """Solve the transport of every column of `x` to the same column of `y`.

    `x` and `y` are data and model, nonnegative, (I, M); a column that is empty on either side has no plan. The kernel
    and the result have the dtype of `x`. `log_u`, (I, M), is a warm start, log U of an earlier solution for the same
    data; by default U is computed from V = 1/I. There are at most `max_iter` scalings (pairs of half-steps). A column
    has converged when a half-step changes the data marginal by at most `tol` times its mass, which is tested every
    `CHECK_EVERY` scalings; tol = 0 disables the test.
    """
    xp = backend.xp
    given = [x, y] if log_u is None else [x, y, log_u]
    if backend.recording:
        return _scale_without_sync(backend, kernel, given, relaxation, max_iter, tol)
    todo = xp.nonzero((xp.sum(x, axis=0) > 0) & (xp.sum(y, axis=0) > 0))[0]
    found = None if todo.shape[0] == x.shape[1] else _empty_solution(xp, x)
    with backend.quiet():
        for domain, dtype in _number_systems(backend, kernel, x.dtype):
            if todo.shape[0] == 0:
                break
            whole = found is None
            part = [xp.astype(a if whole else a[:, todo], dtype, copy=False) for a in given]
            solved, accurate = _solve(xp, domain, part, relaxation, max_iter, tol, wait=True)
            kept = tuple(xp.astype(values, x.dtype, copy=False) for values in solved)
            if found is None:
                found = kept
            else:
                _write_columns(found, todo, kept)
            todo = todo[~accurate]
    return Scaled(*(found or _empty_solution(xp, x)))


def _scale_without_sync(
    backend: Backend, kernel: Kernel, given: Sequence[Array], relaxation: Relaxation, max_iter: int, tol: float
) -> Scaled:
    """Solve without host synchronisation, as recorded functions require: all columns do the same operations.

    At most a fixed number of inaccurate columns are solved again in float64. The marginals of columns that remain
    inaccurate are NaN.
    """
    xp, (x, y) = backend.xp, given[:2]
    full = (xp.sum(x, axis=0) > 0) & (xp.sum(y, axis=0) > 0)
    (domain, dtype), *systems = _number_systems(backend, kernel, x.dtype)
    solved, accurate = _solve(xp, domain, given, relaxation, max_iter, tol, wait=False)
    if dtype != xp.float64:
        some = xp.argsort(accurate | ~full, stable=True)[: max(_MIN_RETRIES, x.shape[1] // _RETRY_DIVISOR)]
        wide, dtype = systems[0]
        part = [xp.astype(a[:, some], dtype) for a in given]
        again, fits = _solve(xp, wide, part, relaxation, max_iter, tol, wait=False)
        for old, new in zip(solved, again, strict=True):
            old[:, some] = xp.where(accurate[some], old[:, some], xp.astype(new, old.dtype))
        accurate[some] = accurate[some] | fits
    lost = xp.full_like(x[0, :], math.nan)
    none = xp.full_like(x, -math.inf)
    restart = xp.where(x > 0, xp.zeros_like(x), none)
    scalings = (xp.where(full, xp.where(accurate, logs, restart), none) for logs in solved[:2])
    marginals = (xp.where(full, xp.where(accurate, mass, lost), xp.zeros_like(mass)) for mass in solved[2:])
    return Scaled(*scalings, *marginals)


def _empty_solution(xp: Any, x: Array) -> tuple[Array, ...]:
    """Return scalings and marginals of columns without a plan."""
    return tuple(xp.full_like(x, fill) for fill in (-math.inf, -math.inf, 0.0, 0.0))


def _number_systems(backend: Backend, kernel: Kernel, dtype: Any) -> list[tuple[Domain, Any]]:
    """Return the number systems, from the fastest to the most accurate."""
    xp = backend.xp
    wide = kernel.astype("float64")
    systems: list[tuple[Domain, Any]] = [
        (Plain(backend, wide, float(xp.finfo(xp.float64).smallest_normal)), xp.float64),
        (Log(backend, wide), xp.float64),
    ]
    if dtype != xp.float64:
        systems.insert(0, (Plain(backend, kernel, float(xp.finfo(dtype).smallest_normal)), dtype))
    return systems


def _solve(
    xp: Any, domain: Domain, problem: Sequence[Array], relaxation: Relaxation, max_iter: int, tol: float, wait: bool
) -> tuple[tuple[Array, ...], Array]:
    """Run the loop in one domain; also return which columns are accurate."""
    x, y, *start = problem
    phi, psi = relaxation.phi, relaxation.psi
    x_phi, y_psi = domain.raised(x, phi, 0), domain.raised(y, psi, 1)
    if start:
        u = domain.from_log(start[0], 0)
    else:
        even = domain.from_log(xp.full_like(x_phi, -math.log(x_phi.shape[0])), 1)
        u = domain.quotient(x_phi, domain.apply(even), phi)
    u, v, kv = _loop(xp, domain, (x_phi, y_psi), relaxation, u, max_iter, tol, wait)
    ku = domain.apply(u, transposed=True)
    solved = (domain.to_log(u, 0), domain.to_log(v, 1), domain.product(u, kv), domain.product(v, ku))
    return solved, domain.accurate(u, v, kv, ku, x, y)


def _loop(
    xp: Any,
    domain: Domain,
    raised: tuple[Array, Array],
    relaxation: Relaxation,
    u: Array,
    max_iter: int,
    tol: float,
    wait: bool,
) -> tuple[Array, ...]:
    """Alternate the two scaling equations, starting from U, until all columns have converged; return U, V and K V.

    Converged columns are removed from the loop. Without `wait`, which allows host synchronisation, they stay in the
    loop, and their values are saved.
    """
    (x_phi, y_psi), phi, psi = raised, relaxation.phi, relaxation.psi
    done: tuple[Array, ...] | None = None
    active, converged = None, xp.zeros_like(u[0, :], dtype=xp.bool)
    for iteration in range(1, max_iter + 1):
        last = u
        v = domain.quotient(y_psi, domain.apply(u, transposed=True), psi)
        kv = domain.apply(v)
        u = domain.quotient(x_phi, kv, phi)
        if tol == 0 or iteration % CHECK_EVERY or iteration == max_iter:
            continue
        if not wait:
            done = _select_columns(xp, converged, done or (u, v, kv), (u, v, kv))
            converged = converged | _converged(xp, domain, last, u, kv, tol)
            continue
        going = xp.nonzero(~_converged(xp, domain, last, u, kv, tol))[0]
        if going.shape[0] == u.shape[1]:
            continue
        if done is None or active is None:
            done, active = (u, v, kv), going
        else:
            _write_columns(done, active, (u, v, kv))
            active = active[going]
        x_phi, y_psi, u, v, kv = (a[:, going] for a in (x_phi, y_psi, u, v, kv))
        if going.shape[0] == 0:
            break
    if done is None or active is None:
        return (u, v, kv) if done is None else _select_columns(xp, converged, done, (u, v, kv))
    _write_columns(done, active, (u, v, kv))
    return done


def _select_columns(xp: Any, first: Array, some: Sequence[Array], others: Sequence[Array]) -> tuple[Array, ...]:
    """Return the columns of `some` where a flag is set, else those of `others`."""
    return tuple(xp.where(first, a, b) for a, b in zip(some, others, strict=True))


def _converged(xp: Any, domain: Domain, last: Array, u: Array, kv: Array, tol: float) -> Array:
    """Return which columns changed their data marginal by at most `tol` times its mass in the last half-step.

    Columns with NaN count as converged: they will be solved in the next number system.
    """
    now = domain.product(u, kv)
    moved = xp.sum(xp.abs(now - domain.product(last, kv)), axis=0)
    return ~(moved > tol * xp.sum(now, axis=0))


def _write_columns(into: tuple[Array, ...], columns: Array, values: tuple[Array, ...]) -> None:
    for array, value in zip(into, values, strict=True):
        array[:, columns] = value
