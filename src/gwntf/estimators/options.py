"""Expert options of the transport solver."""

from __future__ import annotations

import math
import numbers
from typing import Any

from sklearn.base import BaseEstimator

from gwntf.core import InputError
from gwntf.losses import RULES


class TransportOptions(BaseEstimator):  # type: ignore[misc]
    """Options of the transport solver; the defaults are suitable for nearly all data.

    Parameters
    ----------
    max_iter : int or "auto", default=10
        Number of scalings per transport, which starts from the scalings of the last iteration (warm start). "auto"
        starts with two and doubles them, up to 16, as the objective converges.
    tol : float, default=1e-6
        Relative change of a marginal at which its scalings stop.
    update : {"mm", "multiplicative"}, default="mm"
        Update rule of the factors. "mm" never raises the objective if the transports are solved to their tolerance;
        "multiplicative" is the classic ratio, which does not guarantee a decrease with a graph.
    inner_iter : int, default=1
        Number of updates of the sample factor per transport, if there is a graph.
    kernel_tol : float, default=0.02
        Largest relative error of a marginal due to an approximate kernel. Above 1000 samples, a "cosine" or "euclidean"
        cost between them is exact for near pairs and approximated for far pairs; 0 compares all pairs.
    warm_start_memory : float, default=2**29
        Memory in bytes for warm starts; if they need more, every transport starts cold.

    Examples
    --------
    >>> from gwntf import GWNTF, TransportOptions
    >>> model = GWNTF(10, transport=TransportOptions(max_iter="auto"))
    >>> model.get_params()["transport__max_iter"]
    'auto'
    """

    def __init__(
        self,
        max_iter: int | str = 10,
        *,
        tol: float = 1e-6,
        update: str = "mm",
        inner_iter: int = 1,
        kernel_tol: float = 0.02,
        warm_start_memory: float = 2.0**29,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.update = update
        self.inner_iter = inner_iter
        self.kernel_tol = kernel_tol
        self.warm_start_memory = warm_start_memory

    def check(self) -> None:
        """Raise `InputError` for invalid values."""
        if self.max_iter != "auto":
            _check_count("transport.max_iter", self.max_iter, " or 'auto'")
        _check_count("transport.inner_iter", self.inner_iter)
        if self.update not in RULES:
            raise InputError("transport.update", repr(self.update), f"one of {', '.join(map(repr, RULES))}")
        for name, below in (("tol", math.inf), ("kernel_tol", 1), ("warm_start_memory", math.inf)):
            value: Any = getattr(self, name)
            number = isinstance(value, numbers.Real) and not isinstance(value, bool)
            if not number or not value >= 0 or (math.isfinite(below) and value >= below):
                allowed = "a number of at least 0" + (f" and below {below}" if math.isfinite(below) else "")
                raise InputError(f"transport.{name}", repr(value), allowed)


def _check_count(name: str, value: Any, other: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise InputError(name, repr(value), f"a whole number of at least 1{other}")
