r"""Batched unbalanced scaling of many columns that share one kernel.

For every pair of columns x, y the minimiser of

    <C, T> + (1/lam) sum T log T + alpha KL(T1 | x) + beta KL(T'1 | y)

is T = diag(u) K diag(v) with K = exp(-lam C - 1), u = (x / K v)^phi and v = (y / K' u)^psi. The loop
alternates the two equations. Columns never influence each other: each stops by itself, and each is solved in
plain numbers of the data's precision, then in plain float64, then on logarithms, until one of them holds it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gwntf.backends import Backend
from gwntf.core import Array, Relaxation
from gwntf.geometry import Kernel
from gwntf.transport.domains import Domain, Log, Plain

_FEWEST, _PART = 16, 4
"""Columns that are solved again without looking: at least so many, and at most that part of all."""

CHECK_EVERY = 5
"""Scalings between two looks at the marginals."""


@dataclass(frozen=True)
class Scaled:
    """Solution of a batch of columns."""

    # log_u, log_v: (I, M) array: Logarithms of the scalings; -inf where there is no mass
    log_u: Array
    log_v: Array
    # data_marginal, model_marginal: (I, M) array: Phi = T1 and Psi = T'1
    data_marginal: Array
    model_marginal: Array


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

    Parameters
    ----------
    backend : Backend
        Owner of the arrays.
    kernel : Kernel
        Shared by all columns, in the precision of `x`.
    x, y : (I, M) arrays
        Data and model, nonnegative. A column that is empty on either side carries no plan.
    relaxation : Relaxation
        lam, alpha and beta.
    log_u : (I, M) array, optional
        Warm start: U of an earlier solution for the same data, from which the loop goes on with V. By default the U
        that follows from V = 1/I.
    max_iter : int
        Scalings (pairs of half-steps) at most.
    tol : float
        A column stops when its last half-step moved the data marginal by less than this part of its
        mass; looked at every `CHECK_EVERY` scalings. Zero never stops early.

    Returns
    -------
    Scaled
        In the precision of `x`.
    """
    xp = backend.xp
    given = [x, y] if log_u is None else [x, y, log_u]
    if backend.recording:
        return _scale_without_waiting(backend, kernel, given, relaxation, max_iter, tol)
    todo = _where(xp, (xp.sum(x, axis=0) > 0) & (xp.sum(y, axis=0) > 0))
    found = None if todo.shape[0] == x.shape[1] else _nothing(xp, x)
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
                _put(found, todo, kept)
            todo = todo[~accurate]
    return Scaled(*(found or _nothing(xp, x)))


def _scale_without_waiting(
    backend: Backend,
    kernel: Kernel,
    given: Sequence[Array],
    relaxation: Relaxation,
    max_iter: int,
    tol: float,
) -> Scaled:
    """Solve without host synchronisation, as in a recorded function: every column does the same.

    Columns that do not hold are solved again in float64, a fixed number of them at most. The marginals of those that
    then still do not hold are not numbers, which whoever sums them up will see.
    """
    xp, (x, y) = backend.xp, given[:2]
    full = (xp.sum(x, axis=0) > 0) & (xp.sum(y, axis=0) > 0)
    (domain, dtype), *systems = _number_systems(backend, kernel, x.dtype)
    solved, accurate = _solve(xp, domain, given, relaxation, max_iter, tol, wait=False)
    if dtype != xp.float64:
        some = xp.argsort(accurate | ~full, stable=True)[: max(_FEWEST, x.shape[1] // _PART)]
        wide, dtype = systems[0]
        part = [xp.astype(a[:, some], dtype) for a in given]
        again, held = _solve(xp, wide, part, relaxation, max_iter, tol, wait=False)
        for old, new in zip(solved, again, strict=True):
            old[:, some] = xp.where(accurate[some], old[:, some], xp.astype(new, old.dtype))
        accurate[some] = accurate[some] | held
    lost = xp.full_like(x[0, :], math.nan)
    none = xp.full_like(x, -math.inf)
    anew = xp.where(x > 0, xp.zeros_like(x), none)
    scalings = (xp.where(full, xp.where(accurate, logs, anew), none) for logs in solved[:2])
    marginals = (xp.where(full, xp.where(accurate, mass, lost), xp.zeros_like(mass)) for mass in solved[2:])
    return Scaled(*scalings, *marginals)


def _nothing(xp: Any, x: Array) -> tuple[Array, ...]:
    """Scalings and marginals of columns that carry no plan."""
    return tuple(xp.full_like(x, fill) for fill in (-math.inf, -math.inf, 0.0, 0.0))


def _number_systems(backend: Backend, kernel: Kernel, dtype: Any) -> list[tuple[Domain, Any]]:
    """Ladder of number systems, from the fastest to the safest."""
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
    xp: Any,
    domain: Domain,
    problem: Sequence[Array],
    relaxation: Relaxation,
    max_iter: int,
    tol: float,
    wait: bool,
) -> tuple[tuple[Array, ...], Array]:
    """Run the loop in one domain; also say which columns it held."""
    x, y, *start = problem
    phi, psi = relaxation.phi, relaxation.psi
    x_phi, y_psi = domain.raised(x, phi, 0), domain.raised(y, psi, 1)
    if start:
        u = domain.from_log(start[0], 0)
    else:
        even = domain.from_log(xp.full_like(x_phi, -math.log(x_phi.shape[0])), 1)
        u = domain.quotient(x_phi, domain.apply(even), phi)
    u, v, kv = _loop(xp, _Equations(domain, x_phi, y_psi, phi, psi), u, max_iter, tol, wait)
    ku = domain.apply(u, transposed=True)
    solved = (domain.to_log(u, 0), domain.to_log(v, 1), domain.product(u, kv), domain.product(v, ku))
    return solved, domain.accurate(u, v, kv, ku, x, y)


class _Equations(NamedTuple):
    """The two scaling equations of some columns."""

    domain: Domain
    x_phi: Array
    y_psi: Array
    phi: float
    psi: float

    def step(self, u: Array) -> tuple[Array, Array, Array]:
        """One scaling: the next U, with V and K V on the way to it."""
        v = self.domain.quotient(self.y_psi, self.domain.apply(u, transposed=True), self.psi)
        kv = self.domain.apply(v)
        return self.domain.quotient(self.x_phi, kv, self.phi), v, kv

    def of(self, columns: Array) -> _Equations:
        """Return those of some of the columns."""
        return self._replace(x_phi=self.x_phi[:, columns], y_psi=self.y_psi[:, columns])


def _loop(
    xp: Any, equations: _Equations, u: Array, max_iter: int, tol: float, wait: bool
) -> tuple[Array, Array, Array]:
    """Alternate the two scaling equations from U to U, until all columns have settled.

    Settled columns are taken out of the loop. Where the host may not `wait` for a device to say which these are, they
    stay in it, and what they had is kept.
    """
    done: tuple[Array, ...] | None = None
    active, settled = None, xp.zeros_like(u[0, :], dtype=xp.bool)
    for iteration in range(1, max_iter + 1):
        last = u
        u, v, kv = equations.step(u)
        if tol == 0 or iteration % CHECK_EVERY or iteration == max_iter:
            continue
        if not wait:
            done = _chosen(xp, settled, done or (u, v, kv), (u, v, kv))
            settled = settled | _settled(xp, equations.domain, last, u, kv, tol)
            continue
        going = _where(xp, ~_settled(xp, equations.domain, last, u, kv, tol))
        if going.shape[0] == u.shape[1]:
            continue
        if done is None or active is None:
            done, active = (u, v, kv), going
        else:
            _put(done, active, (u, v, kv))
            active = active[going]
        u, v, kv = (a[:, going] for a in (u, v, kv))
        equations = equations.of(going)
        if going.shape[0] == 0:
            break
    if done is None:
        return u, v, kv
    if active is None:
        u, v, kv = _chosen(xp, settled, done, (u, v, kv))
        return u, v, kv
    _put(done, active, (u, v, kv))
    u, v, kv = done
    return u, v, kv


def _chosen(xp: Any, first: Array, some: Sequence[Array], others: Sequence[Array]) -> tuple[Array, ...]:
    """Take the columns of some arrays where a flag is set, else those of others."""
    return tuple(xp.where(first, a, b) for a, b in zip(some, others, strict=True))


def _settled(xp: Any, domain: Domain, last: Array, u: Array, kv: Array, tol: float) -> Array:
    """Columns whose data marginal moved by at most `tol` of its mass in the last half-step.

    A column that is no longer a number leaves as well: it will be solved on the next number system.
    """
    now = domain.product(u, kv)
    moved = xp.sum(xp.abs(now - domain.product(last, kv)), axis=0)
    return ~(moved > tol * xp.sum(now, axis=0))


def _put(into: tuple[Array, ...], columns: Array, values: tuple[Array, ...]) -> None:
    for array, value in zip(into, values, strict=True):
        array[:, columns] = value


def _where(xp: Any, flags: Array) -> Array:
    """Positions of the true flags."""
    return xp.nonzero(flags)[0]
