"""Transport with a dense cost of several hundred features: the compiled engine against a loop in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import kl_div
from threadpoolctl import ThreadpoolController

from benchmarks.harness import Claim, Outcome, race, relative_difference
from gwntf.backends import get_backend
from gwntf.core import FloatArray, Relaxation
from gwntf.data import as_data
from gwntf.losses import transport_loss
from gwntf.transport import TransportLimits

FEATURES, RANK, SCALINGS = 500, 10, 10
RELAXATION = Relaxation(0.05, 1.0, 1.0)
SIZES = (206, 824)
ALLOWED = {"float64": 1e-9, "float32": 1e-4}
"""Largest relative difference of the results, by number type."""


@dataclass(frozen=True)
class Pass:
    """Data, factors and the cost of one pass."""

    X: FloatArray
    W: FloatArray
    H: FloatArray
    cost: FloatArray

    @classmethod
    def drawn(cls, n_samples: int, dtype: str) -> Pass:
        """Draw positive data and factors, and features as points of a square."""
        rng = np.random.default_rng(0)
        points = rng.random((FEATURES, 2))
        cost = cdist(points, points)
        H = rng.dirichlet(np.full(FEATURES, 0.5), RANK).T + 1e-6
        W = rng.dirichlet(np.full(RANK, 0.5), n_samples)
        X = (rng.dirichlet(np.full(RANK, 0.5), n_samples) @ H.T) * rng.gamma(2.0, 0.5, (n_samples, FEATURES)) + 1e-6
        return cls(X.astype(dtype), W.astype(dtype), H.astype(dtype), cost / cost.max())

    def compiled(self) -> Callable[[], tuple[FloatArray, ...]]:
        """Return the pass of the library, which starts cold."""
        engine = get_backend("cpu")
        block: Any = as_data(self.X, engine).dense_block
        limits = TransportLimits(SCALINGS, 0.0)
        loss: Any = transport_loss((None, self.cost), RELAXATION, limits, warm=False, reuse=False)

        def run() -> tuple[FloatArray, ...]:
            with engine.quiet():
                swept, _ = loss.compare(block, self.W, [self.H], None, SCALINGS)
            return swept.costs.sum(axis=0), swept.rows[0], _product(swept.sums[0], self.H)

        return run

    def in_numpy(self) -> Callable[[], tuple[FloatArray, ...]]:
        """Return the same pass in NumPy, all samples at once."""
        K = np.exp(-self.cost / RELAXATION.reg - 1).astype(self.X.dtype)
        return partial(numpy_pass, K, self.X, self.W, self.H)


def _product(sums: Any, H: FloatArray) -> FloatArray:
    """Return the product of the ratio with the sample factor, from the sums of a pass."""
    found: FloatArray = sums[1] if 1 in sums else sums[0].reshape(H.shape)
    return found


def numpy_pass(K: FloatArray, X: FloatArray, W: FloatArray, H: FloatArray) -> tuple[FloatArray, ...]:
    """Return costs by sample, and the products of Psi / X^ with both factors."""
    reg, phi, psi = RELAXATION.reg, RELAXATION.phi, RELAXATION.psi
    x, y = np.ascontiguousarray(X.T), H @ W.T
    x_phi, y_psi = x**phi, y**psi
    u = x_phi / (K @ np.full_like(x, 1 / len(x))) ** phi
    for _ in range(SCALINGS):
        v = y_psi / (K.T @ u) ** psi
        kv = K @ v
        u = x_phi / kv**phi
    data, model = u * kv, v * (K.T @ u)
    costs = reg * (data * np.log(u) + model * np.log(v) - data).sum(axis=0, dtype=np.float64)
    costs += RELAXATION.reg_m_data * kl_div(data, x).sum(axis=0, dtype=np.float64)
    costs += RELAXATION.reg_m_model * kl_div(model, y).sum(axis=0, dtype=np.float64)
    ratio = model / y
    return costs, ratio.T @ H, ratio @ W


def arrival_dense(sizes: Sequence[int] = SIZES, dtypes: Sequence[str] = tuple(ALLOWED), turns: int = 7) -> Outcome:
    """Time one pass with one and two threads."""
    threads = ThreadpoolController()

    def limited(count: int, run: Callable[[], Any]) -> Any:
        with threads.limit(limits=count):
            return run()

    variants: dict[str, Callable[[], Any]] = {}
    claims: list[Claim] = []
    for dtype in dtypes:
        for size in sizes:
            drawn, what = Pass.drawn(size, dtype), f"{size} samples, {dtype}"
            ours, plain = drawn.compiled(), drawn.in_numpy()
            variants[f"{what}, NumPy, one thread"] = partial(limited, 1, plain)
            variants[f"{what}, gwntf, one thread"] = partial(limited, 1, ours)
            variants[f"{what}, gwntf, two threads"] = partial(limited, 2, ours)
            apart = max(relative_difference(a, b) for a, b in zip(plain(), ours(), strict=True))
            claims.append(Claim(f"{what}: relative difference of the results", apart, ALLOWED[dtype], at_least=False))
    timings = race(variants, turns)
    for what in dict.fromkeys(name.rsplit(", ", 2)[0] for name in variants):
        plain_time, one, two = (
            timings[f"{what}, {who}"].median for who in ("NumPy, one thread", "gwntf, one thread", "gwntf, two threads")
        )
        claims.append(Claim(f"{what}: time over that of NumPy", one / plain_time, 1.0, at_least=False))
        claims.append(Claim(f"{what}: times faster with two threads", one / two, 1.6))
    return Outcome(
        f"One pass with a dense cost of {FEATURES} features: rank {RANK}, {SCALINGS} scalings",
        timings,
        claims,
        ["A pass computes the model, the transport of every sample, its cost, and the products with both factors."],
    )


CASES = (arrival_dense,)
