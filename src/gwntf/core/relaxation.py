"""The three numbers of the entropic, KL-relaxed transport problem."""

import math
from dataclasses import dataclass

from gwntf.core.errors import InputError


@dataclass(frozen=True)
class Relaxation:
    """Weights lam, alpha and beta of the transport cost W of Eq. 3 with relaxed marginals.

    W(x, y) = min_T <C, T> + reg * sum T log T + alpha KL(T1 | x) + beta KL(T'1 | y), with reg = 1/lam.

    Parameters
    ----------
    reg : float
        Entropic weight 1/lam, positive and finite.
    reg_m_data, reg_m_model : float
        alpha and beta, positive; ``inf`` holds that marginal exactly.
    """

    reg: float
    reg_m_data: float
    reg_m_model: float

    def __post_init__(self) -> None:
        if not (self.reg > 0 and math.isfinite(self.reg)):
            raise InputError("reg", repr(self.reg), "a positive finite number")
        for name in ("reg_m_data", "reg_m_model"):
            value = getattr(self, name)
            if not value > 0:
                raise InputError(name, repr(value), "a positive number, or inf for an exact marginal")

    @property
    def phi(self) -> float:
        """Exponent of the data side, lam*alpha / (lam*alpha + 1)."""
        return _exponent(self.reg_m_data, self.reg)

    @property
    def psi(self) -> float:
        """Exponent of the model side, lam*beta / (lam*beta + 1)."""
        return _exponent(self.reg_m_model, self.reg)


def _exponent(reg_m: float, reg: float) -> float:
    return 1.0 if math.isinf(reg_m) else reg_m / (reg_m + reg)
