"""The cost of a plan, computed without the plan itself, and the Kullback-Leibler divergence.

At T = diag(u) K diag(v) with marginals Phi and Psi,

    <C, T> + (1/lam) sum T log T = (1/lam) (<Phi, log u> + <Psi, log v> - sum T),

so the objective needs only the scalings and the marginals.
"""

import math
from typing import Any

from gwntf.backends import Backend
from gwntf.core import Array, Relaxation
from gwntf.transport.scaling import Scaled


def plan_terms(backend: Backend, solved: Scaled, x: Array, y: Array, relaxation: Relaxation) -> Array:
    """Return the three terms of W for every column, (3, M) in float64; W is their sum.

    They are <C, T> + (1/lam) sum T log T, alpha KL(T1 | x) and beta KL(T'1 | y). The term of an exact marginal (an
    infinite weight) is zero, or infinite where no plan has that marginal.
    """
    xp = backend.xp
    with backend.quiet():
        entropy = (
            _sum(xp, _weighted(xp, solved.data_marginal, solved.log_u))
            + _sum(xp, _weighted(xp, solved.model_marginal, solved.log_v))
            - _sum(xp, solved.model_marginal)
        )
        data = _marginal_term(xp, relaxation.reg_m_data, solved.data_marginal, x)
        model = _marginal_term(xp, relaxation.reg_m_model, solved.model_marginal, y)
    return xp.stack([relaxation.reg * entropy, data, model])


def _marginal_term(xp: Any, weight: float, marginal: Array, wanted: Array) -> Array:
    if math.isinf(weight):
        mass = _sum(xp, wanted)
        broken = (mass > 0) & (_sum(xp, marginal) == 0)
        return xp.where(broken, xp.full_like(mass, math.inf), xp.zeros_like(mass))
    return weight * ratio_and_kl(xp, marginal, wanted, axis=0)[1]


def _weighted(xp: Any, mass: Array, logs: Array) -> Array:
    """Return mass times logs, zero where the mass is zero."""
    return xp.where(mass > 0, mass * logs, xp.zeros_like(mass))


def _sum(xp: Any, values: Array) -> Array:
    return xp.sum(values, axis=0, dtype=xp.float64)


def positive(xp: Any, values: Array) -> Array:
    """Raise nonnegative values to at least the smallest normal number, to divide by them."""
    return xp.clip(values, float(xp.finfo(values.dtype).smallest_normal), None)


def ratio_and_kl(xp: Any, x: Array, y: Array, axis: int) -> tuple[Array, Array]:
    """Return x / y (zero where x is zero), and KL(x | y) = sum x log(x / y) - x + y along an axis, in float64.

    The divergence is infinite if x is positive anywhere y is zero.
    """
    ratio = x / positive(xp, y)
    logs = xp.where(x > 0, x * xp.log(ratio), xp.zeros_like(x))
    kl = xp.sum(logs, axis=axis, dtype=xp.float64) + xp.sum(y - x, axis=axis, dtype=xp.float64)
    broken = xp.any((x > 0) & (y == 0), axis=axis)
    return ratio, xp.where(broken, xp.full_like(kl, math.inf), kl)
