"""Sparse count tensors: memory, growth with the nonzero fibers, and the same fit of dense data."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Claim, Outcome, Timing, race
from gwntf import GWNTF, TransportOptions
from gwntf.core import FloatArray

SHAPE = (100_000, 2_000, 1_000)
SIDE = 25
"""Nonzeros come in squares of this side, each within one sample, so that every nonzero fiber has so many of them."""

OPTIONS: dict[str, Any] = {
    "costs": (None, "grid", "grid"),
    "graph_reg": 0,
    "sample_norm": None,
    "tol": 0,
    "transport": TransportOptions(5),
    "random_state": 0,
}

SCRIPT = """
import json, sys, time
import sparse
from benchmarks.sparse_counts import OPTIONS, SHAPE, counts
from gwntf import GWNTF

def status(name):  # of this process alone; getrusage may count the one that started it
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

GWNTF(2, max_iter=1, **OPTIONS).fit(sparse.COO(*counts((20, 2_000, 1_000), 3)[:2], shape=(20, 2_000, 1_000)))
places, values, fibers = counts(SHAPE, int(sys.argv[1]))
X = sparse.COO(places, values, shape=SHAPE)
times = []
start = time.perf_counter()
GWNTF(10, max_iter=3, callbacks=[lambda news: times.append(time.perf_counter())], **OPTIONS).fit(X)
seconds = time.perf_counter() - start
print(json.dumps([status("VmHWM"), times[-1] - times[-2], times[-2] - times[-3], seconds, X.nnz, fibers]))
"""


def counts(shape: tuple[int, int, int], squares: int) -> tuple[Any, FloatArray, tuple[int, int]]:
    """Places and values of counts in squares of places on the last two axes, and the nonzero fibers of these axes."""
    rng = np.random.default_rng(0)
    samples = rng.permutation(shape[0])[:squares]
    grids = [np.stack([rng.permutation(size)[:SIDE] for _ in range(squares)]) for size in shape[1:]]
    sample = np.broadcast_to(samples[:, None, None], (squares, SIDE, SIDE))
    rows = np.broadcast_to(grids[0][:, :, None], sample.shape)
    columns = np.broadcast_to(grids[1][:, None, :], sample.shape)
    values = 1.0 + rng.poisson(2.0, sample.size)
    return np.stack([sample.ravel(), rows.ravel(), columns.ravel()]), values, (squares * SIDE, squares * SIDE)


def sparse_counts() -> Outcome:
    """100,000 x 2,000 x 1,000, five million nonzeros on 200,000 fibers of each transported mode; and half of them."""
    found = {}
    for squares in (4_000, 8_000):
        command = [sys.executable, "-c", SCRIPT, str(squares)]
        run = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
        found[squares] = json.loads(run.stdout)
    timings = {}
    for squares, (_, last, one_before, *_rest) in found.items():
        seconds = sorted((last, one_before))
        name = f"an iteration on {squares * SIDE:,} nonzero fibers of each of two modes"
        timings[name] = Timing(sum(seconds) / 2, *seconds)
    half, whole = (timing.median for timing in timings.values())
    peak, *_, nonzeros, fibers = found[8_000]
    return Outcome(
        "A sparse tensor of counts, 100,000 x 2,000 x 1,000 (1.6 TB as float64), rank 10, five scalings",
        timings,
        [
            Claim("peak memory of the process, GB", peak / 1e9, 6, at_least=False),
            Claim("time with twice the nonzero fibers", whole / half, 2.3, at_least=False),
            Claim("nonzeros, millions", nonzeros / 1e6),
            Claim("nonzero fibers of each transported mode", max(fibers)),
            Claim("seconds of the fit, three iterations", found[8_000][3]),
        ],
        ["Two modes of 2,000 and 1,000 places transported, float64."],
    )


def sparse_against_dense() -> Outcome:
    """Fit the same data, given dense and given sparse."""
    import sparse

    shape = (6_000, 64, 48)
    places, values, fibers = counts(shape, 500)
    X = sparse.COO(places, values, shape=shape)
    every = shape[0] * (shape[1] + shape[2])
    fits = {
        name: partial(GWNTF(10, max_iter=25, **OPTIONS).fit, data)
        for name, data in (("dense", X.todense()), ("sparse", X))
    }
    timings = race(fits, turns=3)
    curves = [fit().objective_curve_ for fit in fits.values()]
    ratio = every / sum(fibers)
    faster = timings["dense"].median / timings["sparse"].median
    return Outcome(
        "The same counts given dense and given sparse: 6,000 x 64 x 48, rank 10, 25 iterations",
        timings,
        [
            Claim("times faster than dense", faster, 0.6 * ratio),
            Claim("all fibers over nonzero fibers", ratio),
            Claim(
                "largest relative difference of F",
                float(np.abs(curves[1] / curves[0] - 1).max()),
                1e-9,
                False,
            ),
        ],
        ["The target is 0.6 times the ratio of all fibers to nonzero ones."],
    )


CASES = (sparse_counts, sparse_against_dense)
