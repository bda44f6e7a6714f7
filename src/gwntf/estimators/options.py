"""Expert options of the transport solver."""

from __future__ import annotations

import math
import numbers
from typing import Any

from sklearn.base import BaseEstimator

from gwntf.core import InputError


class TransportOptions(BaseEstimator):  # type: ignore[misc]
    """Options of the transport solver; the defaults are suitable for nearly all data.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of scalings per transport, which starts from the scalings of the last iteration (warm start). "auto"
        starts with twelve and doubles them, up to 96, as the objective converges.
    tol : float, default=1e-6
        Relative change of a marginal at which its scalings stop.
    kernel_tol : float, default=0.02
        Largest relative error of a marginal due to an approximate kernel. Above 1000 samples, a "cosine" or "euclidean"
        cost between them is exact for near pairs and approximated for far pairs; 0 compares all pairs.
    max_memory : float, default=2**29
        Memory in bytes for what is kept from one transport to the next: as much as X for every transported axis (warm
        starts) and, for new samples, once more for the targets of their updates. If it is too small, new samples are
        updated only once per transport; if it is smaller still, transports start cold, which takes longer to arrive.

    Examples
    --------
    >>> from gwntf import GWNTF, TransportOptions
    >>> model = GWNTF(10, transport=TransportOptions(max_iter=20))
    >>> model.get_params()["transport__max_iter"]
    20
    """

    def __init__(
        self,
        max_iter: int | str = "auto",
        *,
        tol: float = 1e-6,
        kernel_tol: float = 0.02,
        max_memory: float = 2.0**29,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.kernel_tol = kernel_tol
        self.max_memory = max_memory

    def check(self) -> None:
        """Raise `InputError` for invalid values."""
        count: Any = self.max_iter
        if count != "auto" and (isinstance(count, bool) or not isinstance(count, numbers.Integral) or count < 1):
            raise InputError("transport.max_iter", repr(count), "a whole number of at least 1 or 'auto'")
        for name, below in (("tol", math.inf), ("kernel_tol", 1), ("max_memory", math.inf)):
            value: Any = getattr(self, name)
            number = isinstance(value, numbers.Real) and not isinstance(value, bool)
            if not number or not value >= 0 or (math.isfinite(below) and value >= below):
                allowed = "a number of at least 0" + (f" and below {below}" if math.isfinite(below) else "")
                raise InputError(f"transport.{name}", repr(value), allowed)
