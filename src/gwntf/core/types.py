"""Shared types: arrays, the parameters of the transport problem, and the reason why a fit stopped."""

import math
import numbers
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gwntf.core.errors import InputError

Array: TypeAlias = Any
"""An array of the backend in use: a NumPy array or a torch tensor."""

FloatArray: TypeAlias = NDArray[np.floating[Any]]
"""A NumPy array of float32 or float64."""


@dataclass(frozen=True)
class Relaxation:
    """Weights lam, alpha and beta of the transport cost W of Eq. 3 with relaxed marginals.

    W(x, y) = min_T <C, T> + reg * sum T log T + alpha KL(T1 | x) + beta KL(T'1 | y), with reg = 1/lam.
    """

    reg: float  # entropic weight 1/lam, positive and finite
    reg_m_data: float  # alpha, positive; inf makes that marginal exact
    reg_m_model: float  # beta, positive; inf makes that marginal exact

    def __post_init__(self) -> None:
        if not (self.reg > 0 and math.isfinite(self.reg)):
            raise InputError("reg", repr(self.reg), "a positive finite number")
        marginal_weights((self.reg_m_data, self.reg_m_model))

    @property
    def phi(self) -> float:
        """Exponent of the data side, lam*alpha / (lam*alpha + 1)."""
        return _exponent(self.reg_m_data, self.reg)

    @property
    def psi(self) -> float:
        """Exponent of the model side, lam*beta / (lam*beta + 1)."""
        return _exponent(self.reg_m_model, self.reg)

    @property
    def mass_curvature(self) -> float:
        """Curvature of W along the mass of y, in relation to beta: (alpha + reg) / (alpha + beta + reg)."""
        others = self.reg_m_data + self.reg
        if math.isinf(others):
            return 1.0
        return others / (others + self.reg_m_model)


def marginal_weights(reg_m: Any) -> tuple[float, float]:
    """Return the weights of the data and the model marginal from the parameter `reg_m`, a number or a pair."""
    pair = (reg_m, reg_m) if isinstance(reg_m, numbers.Real) else tuple(reg_m)
    if [isinstance(weight, numbers.Real) and float(weight) > 0 for weight in pair] != [True, True]:
        allowed = "a positive number, or a pair of them for data and model; inf is an exact marginal"
        raise InputError("reg_m", repr(reg_m), allowed)
    return pair[0], pair[1]


def _exponent(reg_m: float, reg: float) -> float:
    return 1.0 if math.isinf(reg_m) else reg_m / (reg_m + reg)


class Status(Enum):
    """Why the outer loop stopped; `message` says what to change.

    Examples
    --------
    >>> from gwntf import Status
    >>> Status("converged").message
    'The predicted remaining decrease of the objective is at most `tol`.'
    """

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    ROSE = "rose"
    DIVERGED = "diverged"
    STOPPED = "stopped"

    @property
    def message(self) -> str:
        """Explanation and advice for the user."""
        return _MESSAGES[self]


_MESSAGES = {
    Status.CONVERGED: "The predicted remaining decrease of the objective is at most `tol`.",
    Status.MAX_ITER: "The fit stopped after `max_iter` iterations; the objective may still be decreasing.",
    Status.ROSE: (
        "The objective increased, because the transport problems were not solved accurately enough: raise `max_iter` "
        "of `TransportOptions`."
    ),
    Status.DIVERGED: (
        "The factors overflowed, and the last finite ones were kept: use a smaller `graph_reg`, or dtype='float64'."
    ),
    Status.STOPPED: "The fit was stopped by a callback, or after one batch of `partial_fit`.",
}
