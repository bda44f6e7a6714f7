"""Time to accuracy: what the cases whose names begin with `arrival_` share."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TypeVar
from warnings import catch_warnings, simplefilter

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.data import images
from benchmarks.harness import PAUSE, Claim, Curve, Timing
from gwntf import Iteration
from gwntf.core import EmptyComponentWarning, FloatArray
from gwntf.data import as_data
from gwntf.datasets import load_digits_tensor

Result = TypeVar("Result")
Factors = Sequence[FloatArray]
"""Factors of a model, samples first."""

RANKS = {"COIL20": 20, "PIE_pose27": 68, "digits": 10}
"""Rank of the models of each data set: its number of groups."""

STEPS = (1, 2, 5, 10, 20, 50, 100, 200)
"""Iterations after which the curve of a program without callbacks has a point."""

POINTS = 60
"""Largest number of points of a curve in a results file."""


@cache
def samples(name: str) -> FloatArray:
    """Return COIL20, PIE_pose27 or the digits as a loss sees them: samples of length one, float32."""
    if name != "digits":
        return images(name.lower())[0]
    X, _ = load_digits_tensor()
    tensor, _ = as_data(X.astype(np.float32)).normalised("l2")
    unit: FloatArray = tensor.host_rows().reshape(X.shape)
    return unit


def random_matrices(X: FloatArray | csr_array, rank: int, seed: int) -> list[FloatArray]:
    """Return the factors from which scikit-learn starts with ``init="random"``, both with a column per component."""
    rng, scale = np.random.RandomState(seed), math.sqrt(float(X.mean()) / rank)
    return [np.abs(scale * rng.standard_normal((size, rank))).astype(X.dtype) for size in X.shape]


class Trace:
    """A callback that notes seconds, counted from `begin`, and the objective after every iteration.

    It stops the fit where `stop`, a function of seconds and objective, is true.
    """

    def __init__(self, stop: Callable[[float, float], bool] = lambda *_: False) -> None:
        self.points: list[tuple[float, float]] = []
        self._stop = stop
        self.begin()

    def begin(self) -> None:
        """Start the clock."""
        self._start = time.perf_counter()

    def __call__(self, iteration: Iteration) -> bool:
        """Note the iteration."""
        point = time.perf_counter() - self._start, iteration.objective
        self.points.append(point)
        return self._stop(*point)


def reached(curve: Curve, value: float) -> float:
    """Return the seconds until a curve is at a value or below; infinite if it never is."""
    return next((seconds for seconds, found in curve if found <= value), math.inf)


def lowest(*curves: Curve) -> float:
    """Return the lowest value on some curves."""
    return min(value for curve in curves for _, value in curve)


def thinned(curve: Curve) -> list[tuple[float, float]]:
    """Return at most `POINTS` points of a curve, even in the logarithm of the seconds, with the first and the last."""
    kept = set(range(len(curve)))
    if len(curve) > POINTS:
        logs = np.log([seconds for seconds, _ in curve])
        kept = {0, len(curve) - 1, *np.searchsorted(logs, np.linspace(logs[0], logs[-1], POINTS - 1)[:-1]).tolist()}
    return [(float(f"{curve[k][0]:.4g}"), float(f"{curve[k][1]:.9g}")) for k in sorted(kept)]


@contextmanager
def silent() -> Iterator[None]:
    """Ignore warnings of fits whose number of iterations is given: they may not converge, or have hardly begun."""
    with catch_warnings():
        simplefilter("ignore", ConvergenceWarning)
        simplefilter("ignore", EmptyComponentWarning)
        yield


def timed(run: Callable[[], Result]) -> tuple[float, Result]:
    """Return seconds and result of a function, after a pause in which idle threads go to sleep."""
    time.sleep(PAUSE)
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def stepwise(run: Callable[[int], Factors], error: Callable[[Factors], float], most: int) -> Curve:
    """Return the curve of a program without callbacks: each point is a run of its own, from the start.

    A point whose run was disturbed is moved back to the seconds of a longer run that took less.
    """
    run(1)
    found = [timed(partial(run, count)) for count in STEPS if count <= most]
    seconds = np.minimum.accumulate([second for second, _ in found][::-1])[::-1]
    return thinned([(float(at), error(factors)) for at, (_, factors) in zip(seconds, found, strict=True)])


@dataclass(frozen=True)
class Duel:
    """Two programs that fit the same model to the same data from the same start.

    Attributes
    ----------
    ours : callable
        Fits with a number of iterations and with callbacks; returns the factors.
    theirs : callable
        Fits with a number of iterations; returns the factors.
    error : callable
        Returns what both minimise, in float64, at given factors.
    iterations : int
        Of theirs; the goal is the error after them.
    peer : str
        Name of theirs.
    others : mapping
        More programs whose curves are drawn, like `theirs`, by name.
    """

    ours: Callable[[int, Sequence[Trace]], Factors]
    theirs: Callable[[int], Factors]
    error: Callable[[Factors], float]
    iterations: int
    peer: str
    others: Mapping[str, Callable[[int], Factors]] = field(default_factory=dict)

    def curves(self) -> dict[str, Curve]:
        """Return the curves of all programs but ours."""
        programs = {self.peer: self.theirs, **self.others}
        with silent():
            return {name: stepwise(run, self.error, self.iterations) for name, run in programs.items()}


@dataclass(frozen=True)
class Meeting:
    """What a duel found.

    Attributes
    ----------
    ours, theirs : float
        Seconds until the error of theirs at its end; ours are infinite if it was not reached.
    excess : float
        By how much our error at that time is larger, in relation to theirs: rounding.
    same_time : float
        Our error after the seconds of theirs over their error.
    curve : Curve
        Our error.
    """

    ours: float
    theirs: float
    excess: float
    same_time: float
    curve: Curve

    @property
    def ratio(self) -> float:
        """Our time over theirs."""
        return self.ours / self.theirs


def meet(duel: Duel, most: int = 400, turns: int = 3) -> Meeting:
    """Find the number of our iterations that reach the error of theirs, and time complete fits in turn.

    Of every program the fastest turn counts. In every second turn BLAS has one thread, with which other programs may be
    faster.
    """
    with silent():
        duel.ours(1, [])
        seconds, factors = timed(lambda: duel.theirs(duel.iterations))
        theirs, goal, trace = [seconds], duel.error(factors), Trace()
        duel.ours(most, [trace])
        count = next((k for k, (_, value) in enumerate(trace.points, start=1) if value <= goal), None)
        ours, excess = [math.inf], 0.0
        for turn in range(turns):
            if turn > 0:
                with threadpool_limits(turn % 2 or None):
                    theirs.append(timed(lambda: duel.theirs(duel.iterations))[0])
            if count is not None:
                seconds, factors = timed(lambda: duel.ours(count, []))
                ours.append(seconds)
                excess = duel.error(factors) / goal - 1
    by_then = [value for second, value in trace.points if second <= min(theirs)]
    same_time = by_then[-1] / goal if by_then else math.inf
    return Meeting(min(ours), min(theirs), excess, same_time, trace.points)


def claims_of(what: str, peer: str, meetings: Sequence[Meeting], target: float) -> list[Claim]:
    """Return what several starts of the same duel say."""
    ratio = statistics.median(meeting.ratio for meeting in meetings)
    there = sum(math.isfinite(meeting.ours) for meeting in meetings)
    after = statistics.fmean(meeting.same_time for meeting in meetings)
    return [
        Claim(f"{what}: time over that of {peer}, median of {len(meetings)} starts", ratio, target, at_least=False),
        Claim(f"{what}: times faster than {peer}", 1 / ratio),
        Claim(f"{what}: starts, of {len(meetings)}, that reach the error of {peer}", there),
        Claim(f"{what}: error after the same time over that of {peer}, mean", after),
    ]


def rounding(meetings: Sequence[Meeting]) -> Claim:
    """Return by how much our error is larger where it was said to be the same."""
    return Claim("largest relative excess of our error", max(m.excess for m in meetings), 1e-5, at_least=False)


def timings_of(what: str, peer: str, meetings: Sequence[Meeting]) -> dict[str, Timing]:
    """Return the seconds of both programs over the starts; ours only of those that arrived."""
    ours, theirs = ([getattr(meeting, name) for meeting in meetings] for name in ("ours", "theirs"))
    rows = {f"{what}, gwntf": [seconds for seconds in ours if math.isfinite(seconds)], f"{what}, {peer}": theirs}
    return {name: Timing(statistics.median(found), min(found), max(found)) for name, found in rows.items() if found}
