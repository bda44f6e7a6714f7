"""Whether near-far kernels change what clusters are found: ten seeds on PIE_pose27, near-far against all pairs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.data import images
from benchmarks.harness import Claim, Outcome, Timing, relative_difference
from gwntf import GWNTF
from gwntf.estimators.labels import assign
from gwntf.evaluation import SCORES, clustering_scores

SEEDS, ITERATIONS = 10, 30
OPTIONS: dict[str, Any] = {
    "graph_reg": 1e4,
    "update": "multiplicative",
    "tol": 0,
    "transport_max_iter": 5,
    "transport_tol": 0,
    "max_iter": ITERATIONS,
}


def scores_of_near_far() -> Outcome:
    """GWNTF at the paper's settings, 30 iterations, with both kernels from the same starts."""
    X, y = images("pie_pose27")
    found: dict[str, list[list[float]]] = {"all pairs": [], "near-far": []}
    seconds: dict[str, list[float]] = {name: [] for name in found}
    apart = []
    for seed in range(SEEDS):
        embeddings = []
        for name, tol in (("all pairs", 0.0), ("near-far", 0.01)):
            start = time.perf_counter()
            model = GWNTF(68, kernel_tol=tol, random_state=seed, **OPTIONS).fit(X)
            seconds[name].append(time.perf_counter() - start)
            scores = clustering_scores(y, assign(model.embedding_, 68, "kmeans", seed))
            found[name].append([100 * scores[score] for score in SCORES])
            embeddings.append(model.embedding_)
        apart.append(relative_difference(*embeddings))
    means = {name: np.mean(values, axis=0) for name, values in found.items()}
    noise = np.std(found["all pairs"], axis=0) * np.sqrt(2 / SEEDS)
    claims = [Claim("relative difference of the embeddings, mean", float(np.mean(apart)))]
    for place, score in enumerate(SCORES):
        claims += [Claim(f"{score}, {name}", float(means[name][place])) for name in found]
        difference = abs(means["all pairs"][place] - means["near-far"][place])
        claims.append(
            Claim(
                f"{score}, difference in standard errors", float(difference / noise[place]), 2, at_least=False
            )
        )
    timings = {name: Timing(float(np.median(s)), min(s), max(s)) for name, s in seconds.items()}
    return Outcome(
        "GWNTF on PIE_pose27, ten seeds, 30 iterations: do near-far kernels change the scores?",
        timings,
        claims,
    )


CASES = (scores_of_near_far,)
