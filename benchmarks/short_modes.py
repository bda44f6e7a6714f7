"""Transport along image axes."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import ot

from benchmarks.data import RELAXATION, images, model_of
from benchmarks.harness import Claim, Outcome, race, relative_difference
from gwntf.backends import Backend, get_backend
from gwntf.core import FloatArray
from gwntf.data.partition import sample_tiles
from gwntf.geometry import Kernel, build_kernel, grid_cost
from gwntf.transport import TransportLimits, transport_mode

LIMITS = TransportLimits(10, 0.0)


def kernel_of(engine: Backend, cost: FloatArray, dtype: Any = np.float32) -> Kernel:
    """Return the kernel, with all that it computes once."""
    kernel = build_kernel(cost, RELAXATION.reg, engine, dtype)
    kernel.form()
    return kernel


def transport(engine: Backend, kernel: Kernel, X: FloatArray, Y: FloatArray, mode: int) -> FloatArray:
    """Psi of one mode, block by block as in a fit; the reference engine takes the tensor whole."""
    psi, log_u = np.zeros_like(X), np.zeros_like(X)

    def visit(rows: slice) -> None:
        transport_mode(
            engine,
            kernel,
            X[rows],
            Y[rows],
            mode,
            RELAXATION,
            LIMITS,
            marginal=psi[rows],
            share=1.0,
            log_u=log_u[rows],
            warm=False,
        )

    engine.map(visit, [slice(0, len(X))] if engine.name == "numpy" else sample_tiles(X.shape, engine.block_entries))
    return psi


def _pot_seconds(cost: FloatArray, X: FloatArray, Y: FloatArray, columns: int = 200) -> float:
    """Seconds of POT for all columns of mode 1, from a sample of them; ten scalings each, nothing else."""
    x, y = (T.transpose(1, 0, 2).reshape(32, -1).astype(np.float64) for T in (X, Y))
    full = np.flatnonzero((x.sum(axis=0) > 0) & (y.sum(axis=0) > 0))
    chosen = np.random.default_rng(0).permutation(full)[:columns]
    pairs = [(x[:, j].copy(), y[:, j].copy()) for j in chosen]
    start = time.perf_counter()
    for a, b in pairs:
        ot.unbalanced.sinkhorn_knopp_unbalanced(
            a, b, cost, RELAXATION.reg, 1.0, numItermax=10, stopThr=0.0, reg_type="entropy"
        )
    return (time.perf_counter() - start) / len(pairs) * x.shape[1]


def image_modes() -> Outcome:
    """32 x 46,080, ten scalings, float32, on COIL20 itself."""
    X, Y = images("coil20")[0], model_of("coil20", 20)
    numpy, cpu = get_backend("numpy"), get_backend("cpu")
    grid = grid_cost(32)
    kinds = {"dense": grid + 1e-9 * np.random.default_rng(0).random(grid.shape), "exponential": grid}
    turns: dict[str, Callable[[], Any]] = {}
    for mode in (1, 2):
        turns[f"NumPy, axis {mode}"] = partial(transport, numpy, kernel_of(numpy, grid), X, Y, mode)
        for kind, cost in kinds.items():
            run = partial(transport, cpu, kernel_of(cpu, cost), X, Y, mode)
            turns[f"compiled, {kind} kernel, axis {mode}"] = run
    timings = race(turns)
    claims = []
    for mode in (1, 2):
        wide = X.astype(np.float64), Y.astype(np.float64)
        exact = transport(numpy, kernel_of(numpy, grid, np.float64), *wide, mode)
        base = timings[f"NumPy, axis {mode}"].median
        for kind, target in (("dense", 3.5), ("exponential", 4.5)):
            ratio = base / timings[f"compiled, {kind} kernel, axis {mode}"].median
            claims.append(Claim(f"times faster than NumPy, {kind} kernel, axis {mode}", ratio, target))
            found = transport(cpu, kernel_of(cpu, kinds[kind]), X, Y, mode)
            error = relative_difference(exact, found)
            claims.append(Claim(f"relative error against float64, {kind} kernel, axis {mode}", error, 1e-5, False))
    pot = _pot_seconds(grid, X, Y)
    fast = timings["compiled, exponential kernel, axis 1"].median
    claims.append(Claim("times faster than POT column by column", pot / fast, 400))
    return Outcome(
        "Transport along an image axis: 32 x 46,080, ten scalings, float32",
        timings,
        claims,
        [
            "POT is timed on 200 columns and extrapolated.",
            "The last axis has no neighbouring fibers in memory.",
        ],
    )


def long_grids() -> Outcome:
    """Exponential kernels at equal total size, whatever the length."""
    rng = np.random.default_rng(0)
    numpy, cpu = get_backend("numpy"), get_backend("cpu")
    turns: dict[str, Callable[[], Any]] = {}
    for length in (32, 256, 2048):
        shape = (32 * 46_080 // length, length)
        X, Y = (rng.random(shape, np.float32) + 0.01 for _ in range(2))
        for name, engine in (("dense product", numpy), ("exponential kernel", cpu)):
            run = partial(transport, engine, kernel_of(engine, grid_cost(length)), X, Y, 1)
            turns[f"{name}, I = {length}"] = run
    timings = race(turns, turns=3)
    ratio = timings["dense product, I = 2048"].median / timings["exponential kernel, I = 2048"].median
    growth = timings["exponential kernel, I = 2048"].median / timings["exponential kernel, I = 32"].median
    return Outcome(
        "Exponential kernels: 1,474,560 entries, ten scalings, float32",
        timings,
        [
            Claim("times faster than the dense product at I = 2048", ratio, 20),
            Claim("time at I = 2048 over time at I = 32", growth),
        ],
    )


CASES = (image_modes, long_grids)
