"""Data larger than memory: a fit of a file with less memory than its size, compared with a fit of data in memory."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Claim, Outcome, Timing
from gwntf import TransportOptions

SAMPLE = (32, 32)
STREAMED, IN_MEMORY = 500_000, 100_000
LIMIT = 1.2e9
"""Memory for data, in bytes, of the process that reads the file."""

OPTIONS: dict[str, Any] = {
    "costs": (None, "grid", "grid"),
    "graph_reg": 0,
    "tol": 0,
    "transport": TransportOptions(5),
    "max_iter": 3,
    "random_state": 0,
}

SCRIPT = """
import json, resource, sys, time
import numpy as np
from benchmarks.chunked import OPTIONS, SAMPLE
from gwntf import GWNTF

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

path, size, limit = sys.argv[1], int(sys.argv[2]), int(float(sys.argv[3]))
GWNTF(10, **OPTIONS).fit(np.ones((200, *SAMPLE), np.float32))  # compiles, or loads what was compiled
X = np.memmap(path, dtype=np.float32, mode="r")[: size * 1024].reshape(size, *SAMPLE)
refused = False
if limit:
    room = limit - status("VmData")
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    space = status("VmSize") + room
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    try:
        np.zeros(X.shape, X.dtype)[:] = X
    except MemoryError:
        refused = True
else:
    X = np.array(X)
times = [time.perf_counter()]
GWNTF(10, callbacks=[lambda news: times.append(time.perf_counter())], **OPTIONS).fit(X)
seconds = time.perf_counter() - times[0]
print(json.dumps([np.diff(times[1:]).tolist(), seconds, refused]))
"""


def chunked_fit(streamed: int = STREAMED, in_memory: int = IN_MEMORY, limit: float = LIMIT) -> Outcome:
    """Fit `streamed` samples of 32 x 32 in a file and `in_memory` of them in memory, both image modes transported."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.bin"
        _write(path, streamed)
        found = {
            f"an iteration on {streamed:,} samples in a file": _run(path, streamed, limit),
            f"an iteration on {in_memory:,} samples in memory": _run(path, in_memory, 0),
        }
    timings = {}
    for name, (seconds, _, _) in found.items():
        timings[name] = Timing(sum(seconds) / len(seconds), min(seconds), max(seconds))
    (file, memory), (limited, _) = timings.values(), found.values()
    gigabytes = 4 * streamed * math.prod(SAMPLE) / 1e9
    rates = streamed / file.median, in_memory / memory.median
    return Outcome(
        f"A tensor of {gigabytes:.3g} GB in a file, fitted within {limit / 1e9:g} GB: 32 x 32, float32, rank 10",
        timings,
        [
            Claim("samples per second, in parts of those in memory", rates[0] / rates[1], 0.6),
            Claim("samples per second from the file", rates[0]),
            Claim("samples per second in memory", rates[1]),
            Claim("size of the tensor over the memory allowed for data", 1e9 * gigabytes / limit),
            Claim("whether the whole tensor was refused memory (1: yes)", float(limited[2]), 1),
            Claim("seconds of the fit from the file, three iterations", limited[1]),
        ],
        ["Two modes transported by five cold scalings; samples neither transported nor joined by a graph."],
    )


def _write(path: Path, size: int) -> None:
    """Write random samples, a part at a time."""
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, size, 10_000):
            rng.random((min(10_000, size - start), *SAMPLE), dtype=np.float32).tofile(file)


def _run(path: Path, size: int, limit: float) -> tuple[list[float], float, bool]:
    """Fit the first samples of a file: seconds of iterations and of the fit, and whether a copy was refused."""
    command = [sys.executable, "-c", SCRIPT, str(path), str(size), str(limit)]
    few = os.environ | {"MALLOC_ARENA_MAX": "2"}  # every arena reserves 64 MB of unused addresses per thread
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=few)  # noqa: S603
    seconds, whole, refused = json.loads(run.stdout)
    return seconds, whole, refused


CASES = (chunked_fit,)
