"""Transport fits on data where a random start used to end on a plateau: noisy counts with a dense cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, pairwise_distances

from benchmarks.arrival import silent
from benchmarks.harness import Claim, Outcome, race
from gwntf import GWNTF
from gwntf.core import FloatArray

SEEDS, SIGNALS = tuple(range(11)), (0.25, 0.2, 0.15)
"""Problems: every seed with the strongest signal, and the first seed with every signal."""

RANK, GROUPS, SAMPLES_PER_GROUP, FEATURES, COUNTS = 5, 3, 70, 400, 150
WEIGHTS = ((1.0, 1.0), (math.inf, 1.0), (math.inf, 0.1))
FIRM, LOOSE = (math.inf, 10.0), (math.inf, 0.1)
FOUND = 0.95
"""Adjusted Rand index from which on the groups have been found."""

COMMON: dict[str, Any] = {"graph_reg": 0, "sample_norm": "l1", "random_state": 0}


@dataclass(frozen=True)
class Groups:
    """Samples of three groups that differ in a part of their counts, the cost between features, and the groups."""

    X: FloatArray
    cost: FloatArray
    truth: NDArray[np.int_]

    @classmethod
    def drawn(cls, seed: int, signal: float) -> Groups:
        """Draw counts, of which that part depends on the group."""
        rng = np.random.default_rng(seed)
        profiles, base = rng.dirichlet(np.full(FEATURES, 0.3), GROUPS), rng.dirichlet(np.ones(FEATURES))
        truth = np.repeat(np.arange(GROUPS), SAMPLES_PER_GROUP)
        X = rng.poisson(COUNTS * ((1 - signal) * base + signal * profiles[truth])).astype(float) + 1e-6
        X /= X.sum(axis=1, keepdims=True)
        cost = pairwise_distances(X.T, metric="cosine")
        return cls(X, cost / cost.max(), truth)

    def transported(self, reg_m: tuple[float, float], init: Any = "random") -> GWNTF:
        """Fit with transport along the features, all else by default."""
        return GWNTF(RANK, costs=(None, self.cost), reg=0.05, reg_m=reg_m, init=init, **COMMON).fit(self.X)

    def kl(self) -> GWNTF:
        """Fit without transport."""
        return GWNTF(RANK, costs=(None, None), **COMMON).fit(self.X)

    def index(self, model: GWNTF) -> float:
        """Return the adjusted Rand index of k-means on the shares of the components."""
        shares = model.factors_[0] / model.factors_[0].sum(axis=1, keepdims=True)
        labels = KMeans(GROUPS, n_init=10, random_state=0).fit_predict(np.sqrt(shares))
        return float(adjusted_rand_score(self.truth, labels))


@dataclass(frozen=True)
class Found:
    """What the fits of one problem with one `reg_m` found.

    Attributes
    ----------
    kl, transport : float
        Adjusted Rand index without and with transport.
    excess : float
        By how much F is higher than that of a fit from the factors of KL, in relation to F and the data.
    """

    kl: float
    transport: float
    excess: float

    @property
    def missed(self) -> bool:
        """Whether only KL found the groups."""
        return self.kl >= FOUND > self.transport


def _found(groups: Groups, weights: Sequence[tuple[float, float]]) -> list[Found]:
    kl, size = groups.kl(), float(groups.X.sum())
    results = []
    for reg_m in weights:
        own, other = groups.transported(reg_m), groups.transported(reg_m, kl.factors_)
        excess = (own.objective_ - other.objective_) / max(abs(other.objective_), size)
        results.append(Found(groups.index(kl), groups.index(own), excess))
    return results


def arrival_balance(
    seeds: Sequence[int] = SEEDS,
    signals: Sequence[float] = SIGNALS,
    weights: Sequence[tuple[float, float]] = WEIGHTS,
) -> Outcome:
    """Count the fits that miss groups that KL finds, and time a firm marginal."""
    problems = [(seed, signals[0]) for seed in seeds] + [(seeds[0], signal) for signal in signals[1:]]
    with silent():
        found = [one for seed, signal in problems for one in _found(Groups.drawn(seed, signal), weights)]
        first = Groups.drawn(seeds[0], signals[0])
        fits = {f"reg_m={reg_m}": partial(first.transported, reg_m) for reg_m in (FIRM, LOOSE)}
        timings = race(fits, turns=3)
    clear = [one.transport for one in found if one.kl >= FOUND]
    firm, loose = (timing.median for timing in timings.values())
    return Outcome(
        f"Noisy counts with a dense cost: {GROUPS * SAMPLES_PER_GROUP} x {FEATURES}, rank {RANK}, default options",
        timings,
        [
            Claim("fits that miss groups that KL finds", sum(one.missed for one in found), 0, at_least=False),
            Claim("fits", len(found)),
            Claim("of these, KL finds the groups", len(clear)),
            Claim("lowest adjusted Rand index of a transport fit there", min(clear, default=math.nan)),
            Claim("largest excess of F over a fit from the factors of KL, relative", max(one.excess for one in found)),
            Claim(f"time with reg_m={FIRM} over that with {LOOSE}", firm / loose, 3, at_least=False),
        ],
        [
            f"{len(problems)} problems, each with reg_m {', '.join(map(str, weights))}; groups are found if the "
            f"adjusted Rand index is at least {FOUND:g}.",
        ],
    )


CASES = (arrival_balance,)
