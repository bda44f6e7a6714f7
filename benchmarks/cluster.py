"""A fit on a cluster: one worker and two, the data transferred in an iteration, and the cost of losing a worker."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks.harness import Claim, Outcome, Timing
from gwntf import TransportOptions

SAMPLES, SAMPLE, RANK = 25_000, (32, 32), 10
ITERATIONS, LOST_AT = 12, 8

OPTIONS: dict[str, Any] = {
    "costs": (None, "grid", "grid"),
    "tol": 0,
    "transport": TransportOptions(5),
    "graph_reg": 10.0,
    "random_state": 0,
}

SCRIPT = """
import json, os, signal, sys, time
import dask.array as da
from distributed import Client, LocalCluster, wait
from scipy.sparse import diags_array
from benchmarks.cluster import ITERATIONS, OPTIONS, RANK, SAMPLE
from gwntf import GWNTF

workers, samples, lost_at = map(int, sys.argv[1:4])

def received(dask_worker):
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)

def data(size):
    rng = da.random.default_rng(0)
    return rng.random((size, *SAMPLE), chunks=(size // 4, *SAMPLE))

def chain(size):  # every sample is joined to the ten that follow it, some of them in the next block
    steps = range(1, 11)
    return diags_array([1.0] * 20, offsets=[*steps, *(-k for k in steps)], shape=(size, size)).tocsr()

def watch(news):
    times.append(time.perf_counter())
    moved.append(sum(client.run(received).values()))
    if news.iteration == lost_at:
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
with LocalCluster(**options) as cluster, Client(cluster) as client:
    GWNTF(RANK, max_iter=1, graph=chain(80), **OPTIONS).fit(data(80))  # compiles, or loads
    X = data(samples).persist()
    wait(X)
    times, moved = [], []
    model = GWNTF(RANK, max_iter=ITERATIONS, graph=chain(samples), callbacks=[watch], **OPTIONS)
    start = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - start
print(json.dumps([seconds, times, moved, model.objective_curve_.tolist()]))
"""


def cluster_scaling(samples: int = SAMPLES) -> Outcome:
    """Fit the same data with one worker and with two, of one thread each."""
    found = {workers: _run(workers, samples) for workers in (1, 2)}
    one, two = (found[workers][0] for workers in (1, 2))
    curves = [np.array(found[workers][3]) for workers in (1, 2)]
    moved = found[2][2]
    entries = samples * math.prod(SAMPLE)
    return Outcome(
        f"A fit on a cluster: {samples:,} x 32 x 32, rank {RANK}, {ITERATIONS} iterations, a graph",
        {f"{workers} worker(s)": _timing(found[workers][0]) for workers in found},
        [
            Claim("times faster with two workers", one / two, 1.6),
            Claim(
                "largest relative difference of F",
                float(np.abs(curves[1] / curves[0] - 1).max()),
                1e-9,
                False,
            ),
            Claim("kilobytes between the workers in an iteration", float(np.diff(moved).mean()) / 1e3),
            Claim("the same, in parts of the data", float(np.diff(moved).mean()) / (8 * entries), 0.02, False),
        ],
        ["Both image modes transported by five scalings, float64, one thread a worker, one fit each."],
    )


def cluster_loss(samples: int = SAMPLES // 4) -> Outcome:
    """Kill one of two workers in the middle of a fit."""
    found = {lost_at: _run(2, samples, lost_at) for lost_at in (0, LOST_AT)}
    curves = [np.array(run[3]) for run in found.values()]
    seconds = [run[0] for run in found.values()]
    return Outcome(
        f"A worker of two is killed after iteration {LOST_AT} of {ITERATIONS}: {samples:,} x 32 x 32, rank {RANK}",
        dict(zip(("nothing happens", "a worker is lost"), map(_timing, seconds), strict=True)),
        [
            Claim("times as long", seconds[1] / seconds[0]),
            Claim(
                "largest relative difference of F",
                float(np.abs(curves[1] / curves[0] - 1).max()),
                1e-9,
                False,
            ),
        ],
        ["The lost blocks are made anew, and their steps so far are run again."],
    )


def _timing(seconds: float) -> Timing:
    return Timing(seconds, seconds, seconds)


def _run(workers: int, samples: int, lost_at: int = 0) -> tuple[float, list[float], list[float], list[float]]:
    """Fit in a process of its own: seconds, when iterations ended, bytes that workers had received, and F."""
    command = [sys.executable, "-c", SCRIPT, str(workers), str(samples), str(lost_at)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    seconds, times, moved, curve = json.loads(run.stdout)
    return seconds, times, moved, curve


CASES = (cluster_scaling, cluster_loss)
