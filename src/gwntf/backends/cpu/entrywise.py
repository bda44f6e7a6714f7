"""Quotients and divergences in one pass over a block of rows."""

import math
from typing import Any

import numpy as np
from numba import njit

from gwntf.backends.cpu.cache import cached_njit
from gwntf.backends.cpu.powers import logarithms
from gwntf.backends.cpu.products import LOOSE
from gwntf.backends.cpu.sources import digest_of_sources


@njit(**LOOSE)
def quotient_row(x, y, tiny, out):
    """Out = x / max(y, tiny); return whether x is positive anywhere y is zero."""
    zero = x.dtype.type(0)
    broken = zero
    for j in range(x.size):
        out[j] = x[j] / max(y[j], tiny)
        broken += x.dtype.type(1) if (x[j] > zero) & (y[j] <= zero) else zero
    return broken > zero


@njit(**LOOSE)
def divergence_row(x, y, logs):
    """Sum of x log(x / y) - x + y in float64, given log2(x / y)."""
    total, mass = 0.0, 0.0
    for j in range(x.size):
        total += np.float64(x[j] * logs[j])
        mass += np.float64(y[j] - x[j])
    return math.log(2) * total + mass


def _compile(digest: int) -> Any:
    """Return the function that Python calls; see `sources` for the digest."""

    @cached_njit(**LOOSE)
    def ratio_and_kl(x, y, tiny, ratio, kl):
        """Write x / y and KL(x | y) of every row."""
        salt = digest  # noqa: F841
        logs = np.empty(x.shape[1], x.dtype)
        for i in range(x.shape[0]):
            broken = quotient_row(x[i], y[i], tiny, ratio[i])
            logarithms(ratio[i], logs)
            kl[i] = np.inf if broken else divergence_row(x[i], y[i], logs)

    return ratio_and_kl


ratio_and_kl = _compile(digest_of_sources())
