"""Timing that is fair: one process, variants in turn, medians with their spread."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from gwntf._version import __version__
from gwntf.core import FloatArray
from gwntf.io import atomic_path

RESULTS = Path(__file__).parent / "results"
PAUSE = 0.2
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "POT", "tensorly", "torch", "triton")


@dataclass(frozen=True)
class Timing:
    """Seconds of one variant: the median of its turns, the fastest and the slowest."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Claim:
    """A figure and what it should be.

    Attributes
    ----------
    what : str
        In words.
    value : float
        As measured.
    target : float or None
        As hoped for; None if it is only reported.
    at_least : bool
        Whether more is better.
    lower_bound : bool
        Whether the measurement ended too early to say more than that the value is higher.
    """

    what: str
    value: float
    target: float | None = None
    at_least: bool = True
    lower_bound: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target was reached."""
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target


Curve = Sequence[tuple[float, float]]
"""Seconds and the value reached by then, in the order of time."""

Table = Mapping[str, Mapping[str, float]]
"""Figures by row and column."""


@dataclass(frozen=True)
class Outcome:
    """What a case found.

    Attributes
    ----------
    title : str
        Of its section on the page.
    timings : mapping of str to Timing
        By variant.
    claims : sequence of Claim
        In the order of the page.
    notes : sequence of str
        Sentences below the tables.
    curves : mapping of str to mapping of str to curve
        By panel of the picture and by variant.
    tables : mapping of str to table
        By what the figures are.
    """

    title: str
    timings: Mapping[str, Timing]
    claims: Sequence[Claim]
    notes: Sequence[str] = field(default_factory=tuple)
    curves: Mapping[str, Mapping[str, Curve]] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)


def race(variants: Mapping[str, Callable[[], Any]], turns: int = 7) -> dict[str, Timing]:
    """Time variants in turn, after one turn that is not counted.

    Before each there is a pause, in which the idle threads of the one before it (OpenBLAS keeps them spinning) go to
    sleep.
    """
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(turns + 1):
        for name, run in variants.items():
            time.sleep(PAUSE)
            start = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {name: Timing(statistics.median(s), min(s), max(s)) for name, s in seconds.items()}


def relative_difference(reference: FloatArray, found: FloatArray) -> float:
    """How far an array is from a reference, in the norm of the reference."""
    return float(np.linalg.norm(found - reference) / np.linalg.norm(reference))


def machine() -> dict[str, Any]:
    """Versions and machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found: dict[str, Any] = {"gwntf": __version__}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found | {"python": platform.python_version(), "processor": _processor(), "cores": cores}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


def save(name: str, outcome: Outcome, command: str | None = None, device: str | None = None) -> None:
    """Write a result, whole or not at all."""
    record = asdict(outcome)
    for claim, given in zip(record["claims"], outcome.claims, strict=True):
        claim["met"] = given.met
        if not given.lower_bound:
            del claim["lower_bound"]
    for part in ("curves", "tables"):
        if not record[part]:
            del record[part]
    where = machine() if device is None else machine() | {"device": device}
    record |= {"command": command or f"python -m benchmarks {name}", "machine": where}
    RESULTS.mkdir(exist_ok=True)
    with atomic_path(RESULTS / f"{name}.json") as aside:
        aside.write_text(_points_on_lines(json.dumps(record, indent=1)) + "\n", encoding="utf-8")


def _points_on_lines(text: str) -> str:
    """Put every point of a curve on one line."""
    return re.sub(r"\[\s+([-+.\deE]+),\s+([-+.\deE]+)\s+\]", r"[\1, \2]", text)
