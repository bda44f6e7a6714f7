"""What large fits take, by calculation from measured throughput: the last part of `docs/scaling.md`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

SAMPLES, ENTRIES, MODES, SCALINGS, RANK, ITERATIONS = 1_000_000_000, 1024, 2, 5, 10, 100
"""The fit that is calculated: samples of 32 x 32 in float32, both image modes transported by cold scalings."""

CORES, CORES_PER_WORKER, GPU_BYTES, USED = 2048, 32, 139 * 2**30, 0.8
NUMBER = 4


def estimate(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the tables, from results by name."""
    file, memory = (_rate(found["chunked-fit"], name) for name in ("from the file", "in memory"))
    cores = found["chunked-fit"]["machine"]["cores"]
    core = cores / (memory * ENTRIES * MODES * SCALINGS)
    gpu = found["gpu-iteration"]["timings"]["fused"]["median"] / (1e6 * ENTRIES * MODES * 10)
    share = _claim(found["cluster-scaling"], "times faster with two workers") / 2
    return "\n".join([*_constants(core, gpu, file / memory, share), "", *_large_fit(core, gpu, share)])


def _constants(core: float, gpu: float, streamed: float, share: float) -> list[str]:
    return [
        "| measured | |",
        "|---|---|",
        f"| seconds of a core for an entry, a transported mode and a scaling | {core:.2g} |",
        f"| seconds of an H200 for the same | {gpu:.2g} |",
        f"| speed with data in a file, in parts of that in memory | {streamed:.2f} |",
        f"| part of its time that a worker of two spends on its blocks | {share:.2f} |",
    ]


def _large_fit(core: float, gpu: float, share: float) -> list[str]:
    work = SAMPLES * ENTRIES * MODES * SCALINGS
    data = SAMPLES * ENTRIES * NUMBER
    gpus = math.ceil(2 * data / (USED * GPU_BYTES))
    rows = [
        (
            f"{CORES} cores, {CORES // CORES_PER_WORKER} machines",
            work * core / CORES / share,
            CORES // CORES_PER_WORKER,
        ),
        (f"{gpus} GPUs, as many as hold the data", work * gpu / gpus / share, gpus),
    ]
    lines = [
        f"| 10⁹ samples | an iteration | {ITERATIONS} of them | memory of a machine or GPU | travels in one |",
        "|---|---|---|---|---|",
    ]
    for name, seconds, workers in rows:
        travels = workers * ENTRIES * RANK * NUMBER
        lines.append(
            f"| {name} | {_time(seconds)} | {_time(ITERATIONS * seconds)} | {2 * data / workers / 1e9:.0f} GB "
            f"| {travels / 1e6:.1f} MB |"
        )
    start, fetched = SAMPLES * RANK * (8 + 2 * NUMBER), 4 * SAMPLES * RANK * NUMBER
    return [
        *lines,
        "",
        f"The data have {data / 1e12:.1f} TB. A worker holds its blocks as they are read and scaled, which is twice",
        "as much. The process that asks draws the start and receives the sample factor,",
        f"{start / 1e9:.0f} GB at rank {RANK}; every 20 iterations {fetched / 1e9:.0f} GB travel to it and back.",
        "Larger ranks, or less memory there, are for `MiniBatchGWNTF`, which holds one batch.",
    ]


def _rate(result: Mapping[str, Any], name: str) -> float:
    return _claim(result, f"samples per second {name}")


def _claim(result: Mapping[str, Any], what: str) -> float:
    return next(float(claim["value"]) for claim in result["claims"] if claim["what"] == what)


def _time(seconds: float) -> str:
    """Write a time in the unit that a person would choose."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
