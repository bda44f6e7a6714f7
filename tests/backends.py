"""The backends that are compared with the reference, and transports on any of them."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from gwntf.backends import get_backend
from gwntf.geometry import build_kernel
from gwntf.transport import TransportLimits, transport_mode

REFERENCE = get_backend("numpy")

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

OTHERS = ["cpu", pytest.param("torch", marks=needs_torch)]
"""Names of the backends other than the reference."""


def transport_tensor(backend, cost, x, y, mode, relaxation, limits, *, share=1.0, log_u=None, warm=False, start=0.0):
    """Transport along a mode on a backend; give marginal, log U and terms by leading place, all in NumPy."""
    kernel = build_kernel(cost, relaxation.reg, backend, x.dtype)
    data, model, marginal = (backend.asarray(values) for values in (x, y, np.full_like(x, start)))
    held = backend.asarray(np.zeros_like(x) if log_u is None else log_u.copy())
    terms = transport_mode(
        backend,
        kernel,
        data,
        model,
        mode,
        relaxation,
        limits,
        marginal=marginal,
        share=share,
        log_u=held,
        warm=warm,
    )
    return backend.to_numpy(marginal), backend.to_numpy(held), backend.to_numpy(terms)


def transport(backend, cost, x, y, relaxation, *, max_iter, tol, dtype):
    """Psi and log U of the columns of a matrix: its first mode."""
    limits = TransportLimits(max_iter, tol)
    return transport_tensor(backend, cost, x.astype(dtype), y.astype(dtype), 0, relaxation, limits)[:2]
