"""`--dry-run`: an estimate of time and memory from a few iterations on some of the samples."""

import math
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from gwntf.cli.output import Output, format_duration, format_shape
from gwntf.estimators import TensorClustering
from gwntf.readers import format_bytes

_ENTRIES = 2_000_000
"""Number of entries of the samples that are tried: about a second of work."""

_ITERATIONS = 3
_MIN_SAMPLES, _WARM_UP_SAMPLES = 40, 1000
"""Minimum number of samples tried; number of samples of a first fit, which compiles kernels and is not timed."""


def print_plan(output: Output, estimator: Any, X: Any) -> None:
    """Fit a few iterations to some samples, and print the expected time and memory of the whole fit."""
    n_samples, entries = X.shape[0], math.prod(X.shape)
    least = min(n_samples, max(_MIN_SAMPLES, 3 * getattr(estimator, "n_clusters", 1)))
    tried = min(n_samples, max(least, _ENTRIES * n_samples // (entries or 1)))
    part = X[np.linspace(0, n_samples - 1, tried).astype(int)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _time_fit(estimator, part[: max(least, _WARM_UP_SAMPLES)])
        before = _peak_memory()
        once, each = _time_fit(estimator, part)
        after = _peak_memory()
    clusters = isinstance(estimator, TensorClustering)
    model = estimator.factorization() if clusters else estimator
    growth, iterations = n_samples / tried, getattr(model, _limit(model)) * getattr(model, "n_init", 1)
    costs = getattr(model, "costs", [None])  # a cost between samples visits all pairs of them
    quadratic = costs != "auto" and costs[0] is not None
    seconds = growth * once + (growth**2 if quadratic else growth) * each * iterations
    memory = None if before is None or after is None else int(before + growth * (after - before))
    rank, unit = model.n_components, "epochs" if _limit(model) == "max_epochs" else "iterations"
    name = f"{type(estimator).__name__} with {type(model).__name__}" if clusters else type(model).__name__
    needed = "unknown on this system" if memory is None else format_bytes(memory)
    how = f"{_ITERATIONS} {unit} on {tried} of {n_samples} samples took {format_duration(each)} each"
    if tried < n_samples:
        power = "the square of their number" if quadratic else "their number"
        how += f"; the time of an iteration is taken to grow with {power}, everything else with their number"
    output.line("model", f"{name} of rank {rank}, data of {entries} entries")
    output.line("memory", f"about {needed} at most, including this program and the data")
    earlier = "; less if the fit converges earlier" if model.tol > 0 else ""
    output.line("time", f"about {format_duration(seconds)} for {iterations} {unit}{earlier}")
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


def _limit(estimator: Any) -> str:
    """Return the parameter that limits the length of a fit."""
    return "max_epochs" if hasattr(estimator, "max_epochs") else "max_iter"


def _time_fit(estimator: Any, part: Any) -> tuple[float, float]:
    """Fit a few iterations; return the seconds outside of them and those of one."""
    marks: list[float] = []
    settings = {"tol": 0, "n_init": 1, _limit(estimator): _ITERATIONS}
    own = estimator.get_params(deep=False)
    trial = clone(estimator).set_params(**{name: value for name, value in settings.items() if name in own})
    trial.set_params(callbacks=[lambda _: marks.append(time.perf_counter())])  # no progress bar, no checkpoint
    start = time.perf_counter()
    trial.fit(part)
    total = time.perf_counter() - start
    calls = len(marks)  # in an epoch one for each batch
    each = (marks[-1] - marks[0]) / (calls - 1) * calls / _ITERATIONS
    return max(0.0, total - each * _ITERATIONS), each


def _peak_memory() -> int | None:
    """Return the peak memory of this process in bytes, None on systems that do not report it."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
