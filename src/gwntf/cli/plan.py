"""`--dry-run`: an estimate of time and memory from a few iterations on some of the samples."""

import math
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from gwntf.cli.output import Output, format_duration, format_shape
from gwntf.readers import format_bytes

_ENTRIES = 2_000_000  # entries of the samples that are tried: about a second of work

_ITERATIONS = 3
_MIN_SAMPLES, _WARM_UP_SAMPLES = 40, 1000
"""Samples tried at least; samples of the fit before, which compiles kernels so that their compilation is not timed."""


def print_plan(output: Output, model: Any, X: Any, *, labelled: bool) -> None:
    """Fit a few iterations to some samples, and print the expected time and memory of the whole fit."""
    n_samples, entries = X.shape[0], math.prod(X.shape)
    least = min(n_samples, max(_MIN_SAMPLES, 3 * (model.n_clusters or 1)))
    tried = min(n_samples, max(least, _ENTRIES * n_samples // (entries or 1)))
    part = X[np.linspace(0, n_samples - 1, tried).astype(int)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _time_fit(model, part[: max(least, _WARM_UP_SAMPLES)], labelled)
        before = _peak_memory()
        once, each = _time_fit(model, part, labelled)
        after = _peak_memory()
    growth, iterations = n_samples / tried, model.max_iter * model.n_init
    costs = getattr(model, "costs", [None])  # a cost between samples visits all pairs of them
    quadratic = costs != "auto" and costs[0] is not None
    seconds = growth * once + (growth**2 if quadratic else growth) * each * iterations
    memory = None if before is None or after is None else int(before + growth * (after - before))
    name, rank = type(model).__name__, model.n_components
    needed = "unknown on this system" if memory is None else format_bytes(memory)
    how = f"{_ITERATIONS} iterations on {tried} of {n_samples} samples took {format_duration(each)} each"
    if tried < n_samples:
        power = "the square of their number" if quadratic else "their number"
        how += f"; an iteration grows with {power}, everything else with their number"
    output.line("model", f"{name} of rank {rank}, data of {entries} entries")
    output.line("memory", f"about {needed} at most, including this program and the data")
    limit = f"about {format_duration(seconds)} for {iterations} iterations"
    output.line("time", f"{limit}; less if the fit converges earlier")
    output.line("assumed", f"{how}. Nothing was written.")
    output.record(
        plan={
            "shape": format_shape(X.shape),
            "rank": rank,
            "tried_samples": tried,
            "seconds_per_iteration_tried": each,
            "grows_quadratically": quadratic,
            "most_iterations": iterations,
            "expected_seconds": seconds,
            "expected_bytes": memory,
        }
    )


def _time_fit(model: Any, part: Any, labelled: bool) -> tuple[float, float]:
    """Fit a few iterations; return the seconds outside of them and those of one."""
    marks: list[float] = []
    trial = clone(model).set_params(max_iter=_ITERATIONS, tol=0, n_init=1, progress=False, checkpoint=None)
    trial.set_params(callbacks=[lambda _: marks.append(time.perf_counter())])
    start = time.perf_counter()
    trial.fit_predict(part) if labelled else trial.fit(part)
    total = time.perf_counter() - start
    each = (marks[-1] - marks[0]) / (len(marks) - 1)
    return max(0.0, total - each * len(marks)), each


def _peak_memory() -> int | None:
    """Return the peak memory of this process in bytes, None on systems that do not report it."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
