"""`--dry-run`: what a fit will take, from a few iterations on some of the samples."""

from __future__ import annotations

import math
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from gwntf.cli.voice import Voice, duration, times
from gwntf.geometry.costs import SAMPLE_MODE_LIMIT
from gwntf.readers import format_bytes

_ENTRIES = 2_000_000
"""Of the samples that are tried: a second or so of work."""

_ITERATIONS = 3
_FEW, _MANY = 40, 1000
"""Samples tried at least; samples from which kernels may be others, which are then compiled before the clock runs."""


def tell_plan(voice: Voice, model: Any, X: Any, *, labelled: bool) -> None:
    """Fit a few iterations to some samples and say what all of them will take."""
    n_samples = X.shape[0]
    entries = int(np.prod(X.shape[1:])) or 1
    least = min(n_samples, max(_FEW, 3 * (model.n_clusters or 1)))
    tried = min(n_samples, max(least, _ENTRIES // entries))
    part = X[np.linspace(0, n_samples - 1, tried).astype(int)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _try(model, part[: max(least, _MANY)], labelled)  # compiles what has to be compiled
        before = _most_memory()
        once, each = _try(model, part, labelled)
        after = _most_memory()
    growth = n_samples / tried
    quadratic = _samples_are_transported(model, n_samples)
    most = model.max_iter * model.n_init
    seconds = growth * once + (growth**2 if quadratic else growth) * each * most
    memory = None if before is None or after is None else int(before + growth * (after - before))
    _tell(voice, model, X, tried=tried, quadratic=quadratic, each=each, seconds=seconds, memory=memory)


def _tell(voice: Voice, model: Any, X: Any, **found: Any) -> None:
    n_samples = X.shape[0]
    rank = model.n_components
    needed = "unknown on this system" if found["memory"] is None else format_bytes(found["memory"])
    most = model.max_iter * model.n_init
    entries = math.prod(X.shape)
    voice.say("model", f"{type(model).__name__} of rank {rank}, data of {entries} entries")
    voice.say("memory", f"about {needed} at most, this program and the data included")
    voice.say(
        "time", f"about {duration(found['seconds'])} for {most} iterations; fewer if the fit settles before"
    )
    how = f"{_ITERATIONS} iterations on {found['tried']} of {n_samples} samples took {duration(found['each'])} each"
    power = "the square of their number" if found["quadratic"] else "their number"
    assumed = (
        ""
        if found["tried"] == n_samples
        else f"; an iteration grows with {power}, all else with their number"
    )
    voice.say("assumed", f"{how}{assumed}. Nothing was written.")
    voice.keep(
        plan={
            "shape": times(X.shape),
            "rank": rank,
            "tried_samples": found["tried"],
            "seconds_per_iteration_tried": found["each"],
            "grows_quadratically": found["quadratic"],
            "most_iterations": most,
            "expected_seconds": found["seconds"],
            "expected_bytes": found["memory"],
        }
    )


def _try(model: Any, part: Any, labelled: bool) -> tuple[float, float]:
    """Fit a few iterations; return the seconds outside of them and those of one."""
    marks: list[float] = []
    trial = clone(model).set_params(
        max_iter=_ITERATIONS,
        tol=0,
        n_init=1,
        progress=False,
        checkpoint=None,
        callbacks=[lambda _: marks.append(time.perf_counter())],
    )
    start = time.perf_counter()
    trial.fit_predict(part) if labelled else trial.fit(part)
    whole = time.perf_counter() - start
    each = (marks[-1] - marks[0]) / (len(marks) - 1)
    return max(0.0, whole - each * len(marks)), each


def _samples_are_transported(model: Any, n_samples: int) -> bool:
    """Whether an iteration visits all pairs of samples."""
    costs = getattr(model, "costs", None)
    if costs is None:
        return False
    return n_samples <= SAMPLE_MODE_LIMIT if isinstance(costs, str) else costs[0] is not None


def _most_memory() -> int | None:
    """Return the most memory that this process has had, in bytes."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
