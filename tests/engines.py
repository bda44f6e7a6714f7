"""The engines that are compared with the reference, and transports on any of them."""

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
"""Names of the engines other than the reference."""


def transport_tensor(
    engine, cost, x, y, mode, relaxation, limits, *, share=1.0, log_u=None, warm=False, start=0.0
):
    """Transport along a mode on an engine; give marginal, log U (both in NumPy) and the result."""
    kernel = build_kernel(cost, relaxation.reg, engine, x.dtype)
    data, model, marginal = (engine.asarray(values) for values in (x, y, np.full_like(x, start)))
    held = engine.asarray(np.zeros_like(x) if log_u is None else log_u.copy())
    result = transport_mode(
        engine,
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
    return engine.to_numpy(marginal), engine.to_numpy(held), result


def transport(engine, cost, x, y, relaxation, *, max_iter, tol, dtype):
    """Psi and log U of the columns of a matrix: its first mode."""
    limits = TransportLimits(max_iter, tol)
    return transport_tensor(engine, cost, x.astype(dtype), y.astype(dtype), 0, relaxation, limits)[:2]
