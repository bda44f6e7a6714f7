"""Data that several cases share."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from gwntf import GWNTF
from gwntf.core import FloatArray, Relaxation
from gwntf.data import as_data, reconstruct
from gwntf.datasets import load_coil20, load_pie_pose27

RELAXATION = Relaxation(0.01, 1.0, 1.0)


@cache
def images(name: str) -> tuple[FloatArray, NDArray[np.int_]]:
    """COIL20 or PIE_pose27 as the loss sees it (samples of length one, float32), and its labels."""
    X, y = load_coil20() if name == "coil20" else load_pie_pose27()
    tensor, _ = as_data(X.astype(np.float32)).normalised("l2")
    unit: FloatArray = tensor.host_rows().reshape(-1, 32, 32)
    return unit, y


@cache
def model_of(name: str, rank: int) -> FloatArray:
    """Return the model of a short fit: what transports see in the middle of a fit."""
    X, _ = images(name)
    costs = (None, "grid", "grid")
    fitted = GWNTF(rank, costs=costs, graph_reg=1e4, max_iter=15, tol=0, random_state=0).fit(X)
    model: FloatArray = reconstruct(fitted.factors_).astype(np.float32)
    return model
