"""Time to accuracy of new samples: this version against the updates of version 0.1, from the same start."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.arrival import lowest, reached, silent, thinned, timed
from benchmarks.harness import Claim, Curve, Outcome, Timing
from gwntf import GWNTF, NMF
from gwntf.core import Array, FloatArray
from gwntf.data import DataTensor, khatri_rao
from gwntf.datasets import load_digits_tensor
from gwntf.losses import NO_PENALTY
from gwntf.losses.graph import ratio
from gwntf.losses.least_squares import gram_of, other_grams
from gwntf.solver import Stopping, project
from gwntf.transport import TransportLimits

COUNT, RANK, NEAR = 200, 10, 1e-6
"""Number of new samples, rank, and the distance from the optimum, in relation to the data, that counts as arrived."""

LONGER, FEWEST_SECONDS, MOST_SECONDS = 12, 3.0, 60.0
"""Version 0.1 may take so many times longer than this version, at least and at most so many seconds."""

LONG = 2_000
"""Iterations of the run that finds the optimum."""

LIMITS_THEN, LIMITS_EXACT = TransportLimits(16, 1e-6), TransportLimits(20_000, 1e-12)
"""Accuracy of the transports in version 0.1, and of those by which all embeddings are judged."""

GROWTH = 1.2
"""Ratio of the numbers of iterations of two points of a curve."""

BEYOND = 0.01
"""Part of the distance at which the curve of this version ends."""


@dataclass(frozen=True)
class Held:
    """New samples and a fitted model."""

    tensor: DataTensor
    loss: Any
    rest: list[FloatArray]

    @property
    def block(self) -> Any:
        """The samples, dense, in memory."""
        return self.tensor.dense_block

    @property
    def start(self) -> Array:
        """Equal weights for all components, with the mass of the sample, from which both versions start."""
        masses = np.prod([factor.sum(axis=0) for factor in self.rest], axis=0)
        return self.block.sums()[:, None] / (len(masses) * masses)

    @property
    def size(self) -> float:
        """The size of the data in the units of the loss."""
        return float(self.loss.sizes(self.block).sum())

    def embedded(self, count: int) -> Array:
        """Embed the samples with a number of iterations, as `transform` does."""
        return project(self.tensor, self.loss, self.rest, Stopping(count, 0.0))[0]


@cache
def _split() -> tuple[FloatArray, FloatArray]:
    X, _ = load_digits_tensor()
    order = np.random.default_rng(0).permutation(len(X))
    return X[order[COUNT:]], X[order[:COUNT]]


def held_out(model: Any) -> Held:
    """Fit a model to all digits but those held out."""
    rest, new = _split()
    with silent():
        fitted = model.fit(rest)
    with fitted._context(new) as context:
        tensor, _ = fitted._tensor(new, context, reset=False).normalised(fitted.sample_norm)
    return Held(tensor, fitted._loss_of_new_samples(), fitted.factors_[1:])


# --- version 0.1 ---


def transport_then(held: Held) -> Callable[[Array], Array]:
    """Return the step of version 0.1 under transport: one update for every transport, which starts warm."""
    loss = replace(held.loss, reuse=False, limits=LIMITS_THEN)
    state = None

    def step(a: Array) -> Array:
        nonlocal state
        moved, _, state = loss.sample_step(held.block, a, held.rest, None, NO_PENALTY, state)
        return moved

    return step


def least_squares_then(held: Held) -> Callable[[Array], Array]:
    """Return the step of version 0.1 under least squares: multiplicative updates."""
    product = held.block.row_product(held.rest)
    gram = other_grams([held.rest[0][:0], *(gram_of(np, factor) for factor in held.rest)], 0)
    return lambda a: ratio(np, a, product, a @ gram, None, NO_PENALTY)


# --- values ---


def transport_value(held: Held, a: Array) -> float:
    """Return the objective at an embedding, with transports to convergence."""
    loss = replace(held.loss, reuse=False, warm=False, limits=LIMITS_EXACT)
    swept, _ = loss.compare(held.block, a, held.rest, None, LIMITS_EXACT.max_iter)
    return float(swept.costs.sum())


def least_squares_value(held: Held, a: Array) -> float:
    """Return the objective at an embedding."""
    return float(0.5 * ((held.block.rows - a @ khatri_rao(held.rest).T) ** 2).sum())


def least_squares_optimum(held: Held) -> float:
    """Return the objective of SciPy's solver, sample by sample."""
    parts = khatri_rao(held.rest)
    return float(0.5 * sum(nnls(parts, sample)[1] ** 2 for sample in held.block.rows))


# --- curves ---


def curve_then(
    held: Held, step: Callable[[Array], Array], value: Callable[[Array], float], stop: Callable[[float], bool]
) -> Curve:
    """Run version 0.1 until `stop`, a function of the seconds, is true; values are computed afterwards."""
    kept: list[tuple[float, Array]] = []
    a, count, following, seconds = held.start, 0, 1, 0.0
    with held.block.backend.quiet():
        start = time.perf_counter()
        while not stop(seconds):
            a, count = step(a), count + 1
            seconds = time.perf_counter() - start
            if count == following:
                kept.append((seconds, a))
                following = math.ceil(GROWTH * count)
    return [(at, value(found)) for at, found in [*kept, (seconds, a)]]


def curve_now(held: Held, value: Callable[[Array], float], goal: float) -> Curve:
    """Embed with more and more iterations, each time from the start, until the goal is reached."""
    curve: list[tuple[float, float]] = []
    count = 1
    while count <= LONG and (not curve or curve[-1][1] > goal):
        turns = [timed(partial(held.embedded, count)) for _ in range(2)]
        curve.append((min(seconds for seconds, _ in turns), value(turns[0][1])))
        count = math.ceil(GROWTH * count)
    return curve


@dataclass(frozen=True)
class Race:
    """A model whose new samples are embedded by both versions.

    Attributes
    ----------
    value : callable
        The objective at an embedding.
    then : callable
        Returns the step of version 0.1.
    optimum : callable
        Returns the lowest value of the objective.
    target : float or None
        How many times sooner this version should arrive.
    """

    model: Any
    value: Callable[[Held, Array], float]
    then: Callable[[Held], Callable[[Array], Array]]
    optimum: Callable[[Held], float]
    target: float | None

    def run(self, what: str) -> Outcome:
        """Run both versions."""
        held = held_out(self.model)
        value, optimum = partial(self.value, held), self.optimum(held)
        goal = optimum + NEAR * held.size
        now = curve_now(held, value, optimum + BEYOND * NEAR * held.size)
        arrived = reached(now, goal)
        limit = max(FEWEST_SECONDS, min(MOST_SECONDS, LONGER * arrived))
        turns = [curve_then(held, self.then(held), value, lambda seconds: seconds > limit) for _ in range(2)]
        then = min(turns, key=lambda curve: reached(curve, goal))
        later = reached(then, goal)
        bound = math.isinf(later)
        distance = (lowest(then) - optimum) / held.size
        found = {"this version": arrived, "version 0.1": later}
        return Outcome(
            what,
            {f"{what}, {who}": Timing(at, at, at) for who, at in found.items() if math.isfinite(at)},
            [
                Claim(f"{what}: times sooner than version 0.1", min(later, limit) / arrived, self.target, True, bound),
                Claim(f"{what}: distance of version 0.1 from the optimum at its end", distance),
            ],
            curves={f"new samples, {what}": {"gwntf": thinned(now), "version 0.1": thinned(then)}},
        )


def arrival_new_samples() -> Outcome:
    """Digits embedded into models of the others, under transport and under least squares."""
    transport = GWNTF(RANK, costs=(None, "grid", "grid"), graph_reg=0, random_state=0)
    races = {
        "transport": Race(
            transport, transport_value, transport_then, lambda held: transport_value(held, held.embedded(LONG)), 10
        ),
        "least squares": Race(
            NMF(RANK, random_state=0), least_squares_value, least_squares_then, least_squares_optimum, None
        ),
    }
    found = [race.run(what) for what, race in races.items()]
    return Outcome(
        f"New samples: time until the objective of {COUNT} digits is within {NEAR:g} of the optimum",
        {name: timing for outcome in found for name, timing in outcome.timings.items()},
        [claim for outcome in found for claim in outcome.claims],
        [
            "The distance is relative to the size of the data. All embeddings are judged by the same objective: with "
            f"transports to convergence; the optimum is that of {LONG:,} iterations, and of SciPy's `nnls` for least "
            "squares. Version 0.1 made one update per transport of 16 scalings, and multiplicative updates under "
            "least squares.",
        ],
        {panel: curves for outcome in found for panel, curves in outcome.curves.items()},
    )


CASES = (arrival_new_samples,)
