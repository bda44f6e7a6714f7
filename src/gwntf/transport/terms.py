"""What a plan costs, without forming it.

At T = diag(u) K diag(v) with marginals Phi and Psi,

    <C, T> + (1/lam) sum T log T = (1/lam) (<Phi, log u> + <Psi, log v> - sum T),

so the objective needs only the scalings and the marginals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gwntf.core import Array, Relaxation
from gwntf.backends import Backend
from gwntf.transport.scaling import Scaled


@dataclass(frozen=True)
class PlanTerms:
    """The three parts of W, each a float64 array with one value per column (or their sum).

    Attributes
    ----------
    transport : array or float
        <C, T> + (1/lam) sum T log T.
    data : array or float
        alpha KL(T1 | x).
    model : array or float
        beta KL(T'1 | y).
    """

    transport: Any
    data: Any
    model: Any

    @property
    def parts(self) -> tuple[Any, Any, Any]:
        """The three, in this order."""
        return self.transport, self.data, self.model

    def __add__(self, other: PlanTerms) -> PlanTerms:
        """Add part by part."""
        return PlanTerms(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    @property
    def total(self) -> Any:
        """W."""
        return self.transport + self.data + self.model


def plan_terms(backend: Backend, solved: Scaled, x: Array, y: Array, relaxation: Relaxation) -> PlanTerms:
    """Return the terms of W for every column, summed in float64.

    An exact marginal (an infinite weight) has no term, since the scaling holds it, unless there is nothing to hold
    it with: then no plan is possible and the term is infinite.
    """
    xp = backend.xp
    with backend.quiet():
        entropy = (
            _sum(xp, _weighted(xp, solved.data_marginal, solved.log_u))
            + _sum(xp, _weighted(xp, solved.model_marginal, solved.log_v))
            - _sum(xp, solved.model_marginal)
        )
    data = _marginal_term(backend, relaxation.reg_m_data, solved.data_marginal, x)
    model = _marginal_term(backend, relaxation.reg_m_model, solved.model_marginal, y)
    return PlanTerms(relaxation.reg * entropy, data, model)


def kl_columns(backend: Backend, a: Array, b: Array) -> Array:
    """KL(a | b) = sum a log(a/b) - a + b of every column, summed in float64."""
    xp = backend.xp
    with backend.quiet():
        logs = _weighted(xp, a, xp.log(a) - xp.log(b))
        return _sum(xp, logs) - _sum(xp, a) + _sum(xp, b)


def _marginal_term(backend: Backend, weight: float, marginal: Array, wanted: Array) -> Array:
    if math.isinf(weight):
        xp = backend.xp
        mass = _sum(xp, wanted)
        broken = (mass > 0) & (_sum(xp, marginal) == 0)
        return xp.where(broken, xp.full_like(mass, math.inf), xp.zeros_like(mass))
    return weight * kl_columns(backend, marginal, wanted)


def _weighted(xp: Any, mass: Array, logs: Array) -> Array:
    """Mass times logs, zero where there is no mass."""
    return xp.where(mass > 0, mass * logs, xp.zeros_like(mass))


def _sum(xp: Any, values: Array) -> Array:
    return xp.sum(values, axis=0, dtype=xp.float64)
