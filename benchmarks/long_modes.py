"""Transport along the samples: near-far kernels against all pairs, and how they grow."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from benchmarks.data import RELAXATION, images, model_of
from benchmarks.harness import Claim, Outcome, race, relative_difference
from gwntf.backends import Backend, get_backend
from gwntf.core import FloatArray
from gwntf.data import DataTensor, pieces
from gwntf.geometry import Kernel, Points, build_kernel, near_far_parts, near_pairs, resolve_cost
from gwntf.geometry.near_far import N_NEAR
from gwntf.geometry.neighbors import EXACT_LIMIT, nearest_rows
from gwntf.solver import near_far_cost
from gwntf.transport import TransportLimits, transport_mode

LIMITS = TransportLimits(10, 0.0)


def transport(engine: Backend, kernel: Kernel, X: FloatArray, Y: FloatArray) -> FloatArray:
    """Psi of the sample mode, in blocks of columns as in a fit."""

    def visit(columns: slice) -> FloatArray:
        x, y = np.ascontiguousarray(X[:, columns]), np.ascontiguousarray(Y[:, columns])
        psi = np.zeros_like(x)
        transport_mode(engine, kernel, x, y, 0, RELAXATION, LIMITS, marginal=psi, share=1.0, log_u=None, warm=False)
        return psi

    return np.concatenate(engine.map(visit, pieces(X.shape[1], engine.tile_columns(len(X)))), axis=1)


def sample_mode() -> Outcome:
    """PIE_pose27: N = 2856, 1024 columns, ten scalings, float32."""
    X = images("pie_pose27")[0].reshape(2856, -1)
    Y = model_of("pie_pose27", 68).reshape(X.shape)
    numpy, cpu = get_backend("numpy"), get_backend("cpu")
    start = time.perf_counter()
    cost = near_far_cost(Points.of_rows(X, "cosine"), RELAXATION, 0.01)
    build = time.perf_counter() - start
    if cost is None:
        raise RuntimeError("no near-far cost of that accuracy")
    exact = resolve_cost("cosine", DataTensor.of_array(X), 0)
    if exact is None:
        raise RuntimeError("no cost")
    dense = build_kernel(exact, RELAXATION.reg, numpy, np.float32)
    near_far = build_kernel(cost, RELAXATION.reg, cpu, np.float32)
    timings = race(
        {
            "all pairs, BLAS": partial(transport, numpy, dense, X, Y),
            "near-far": partial(transport, cpu, near_far, X, Y),
        },
        turns=5,
    )
    wanted, found = transport(numpy, dense, X, Y), transport(cpu, near_far, X, Y)
    lost = float(((found < 0.01 * wanted) & (wanted > 0)).sum())
    return Outcome(
        "Transport along 2856 samples of PIE_pose27: 1024 columns, ten scalings, float32",
        timings,
        [
            Claim(
                "times faster than all pairs",
                timings["all pairs, BLAS"].median / timings["near-far"].median,
                6,
            ),
            Claim(
                "relative error of Psi in norm",
                relative_difference(wanted, found),
                0.01,
                False,
            ),
            Claim("error as the cost reports it", cost.error),
            Claim("entries that lost 99% of their mass", lost, 0, False),
            Claim("seconds to build it, once a fit", build),
        ],
        [f"{cost.n_clusters} clusters, {cost.near.nnz / cost.size:.0f} near pairs a sample."],
    )


def sample_growth() -> Outcome:
    """From 10,000 to 80,000 samples, 256 columns, the same number of clusters."""
    cpu = get_backend("cpu")
    rng = np.random.default_rng(0)
    centres = rng.gamma(0.5, size=(200, 256))
    sizes = (10_000, 20_000, 40_000, 80_000)
    turns, builds, bytes_ = {}, {}, {}
    nearest_rows(rng.random((EXACT_LIMIT + 1, 4), np.float32), 5)  # pynndescent compiles at its first use
    for size in sizes:
        X = centres[rng.integers(0, 200, size)] * rng.gamma(5, 0.2, size=(size, 256))
        X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
        Y = (0.5 * X + 0.5 * X.mean(axis=0)).astype(np.float32)
        start = time.perf_counter()
        points = Points.of_rows(X, "cosine")
        cost = near_far_parts(points, near_pairs(points, N_NEAR), 128)
        builds[size] = time.perf_counter() - start
        kernel = build_kernel(cost, RELAXATION.reg, cpu, np.float32)
        bytes_[size] = sum(np.asarray(part).nbytes for part in kernel.form() or ()) + cost.half.nbytes
        turns[f"N = {size:,}"] = partial(transport, cpu, kernel, X, Y)
    timings = race(turns, turns=3)
    first, last = (timings[f"N = {size:,}"].median for size in (sizes[0], sizes[-1]))
    return Outcome(
        "Transport along many samples: 256 columns, 128 clusters, ten scalings, float32",
        timings,
        [
            Claim("time at 80,000 over time at 10,000", last / first, 9, at_least=False),
            Claim(
                "memory of the kernel at 80,000 over that at 10,000",
                bytes_[sizes[-1]] / bytes_[sizes[0]],
                9,
                False,
            ),
            Claim("kernel, bytes a sample at 80,000", bytes_[sizes[-1]] / sizes[-1]),
            *(Claim(f"seconds to build it at {size:,}", builds[size]) for size in sizes),
        ],
        ["Above 20,000 samples pynndescent finds the neighbours."],
    )


CASES = (sample_mode, sample_growth)
