"""What a plan costs, without forming it.

At T = diag(u) K diag(v) with marginals Phi and Psi,

    <C, T> + (1/lam) sum T log T = (1/lam) (<Phi, log u> + <Psi, log v> - sum T),

so the objective needs only the scalings and the marginals.
"""

import math
from typing import Any

from gwntf.backends import Backend
from gwntf.core import Array, Relaxation
from gwntf.transport.divergence import ratio_and_kl
from gwntf.transport.scaling import Scaled


def plan_terms(backend: Backend, solved: Scaled, x: Array, y: Array, relaxation: Relaxation) -> Array:
    """Return the three terms of W for every column, (3, M) in float64; W is their sum.

    They are <C, T> + (1/lam) sum T log T, alpha KL(T1 | x) and beta KL(T'1 | y). An exact marginal (an infinite weight)
    has no term, since the scaling holds it, unless there is nothing to hold it with: then no plan is possible and the
    term is infinite.
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
    """Mass times logs, zero where there is no mass."""
    return xp.where(mass > 0, mass * logs, xp.zeros_like(mass))


def _sum(xp: Any, values: Array) -> Array:
    return xp.sum(values, axis=0, dtype=xp.float64)
