"""Complete fits: the compiled engine with all its options against the reference engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.data import images
from benchmarks.harness import Claim, Outcome, race, relative_difference
from gwntf import GWNTF, TransportOptions
from gwntf.clustering import assign
from gwntf.evaluation import clustering_scores
from gwntf.losses import Plain

PAPER: dict[str, Any] = {
    "graph_reg": 1e4,
    "reg": 0.01,
    "tol": 0,
    "random_state": 0,
}
EXACT = {"transport": TransportOptions(5, tol=0, kernel_tol=0)}
ADAPTIVE = {"transport": TransportOptions("auto", tol=0, kernel_tol=0.03)}
IMAGE_MODES, ALL_MODES = (None, "grid", "grid"), ("cosine", "grid", "grid")


def coil20_fits() -> Outcome:
    """GWNTF on COIL20 at the paper's settings, 100 iterations."""
    X, y = images("coil20")
    fitted: dict[str, GWNTF] = {}

    def fit(name: str, **params: Any) -> None:
        model = GWNTF(20, max_iter=100, **PAPER, **params)
        model._plain = Plain("multiplicative")
        fitted[name] = model.fit(X)

    settings: dict[str, dict[str, Any]] = {
        "reference": {"engine": "numpy", "costs": ALL_MODES, **EXACT},
        "compiled, near-far, adaptive": {"engine": "cpu", "costs": ALL_MODES, **ADAPTIVE},
        "reference, images only": {"engine": "numpy", "costs": IMAGE_MODES, **EXACT},
        "compiled, images only": {"engine": "cpu", "costs": IMAGE_MODES, **EXACT},
    }
    GWNTF(20, costs=ALL_MODES, max_iter=1, engine="cpu", **PAPER, **ADAPTIVE).fit(X)
    turns: dict[str, Callable[[], Any]] = {name: partial(fit, name, **s) for name, s in settings.items()}
    timings = race(turns, turns=1)
    scores = {
        name: np.mean(
            [list(clustering_scores(y, assign(model.embedding_, 20, "kmeans", seed)).values()) for seed in range(5)]
        )
        for name, model in fitted.items()
    }
    pairs = (
        ("times faster than the reference, all modes", "reference", "compiled, near-far, adaptive", 8),
        (
            "times faster than the reference, images only",
            "reference, images only",
            "compiled, images only",
            3.5,
        ),
    )
    claims = [Claim(what, timings[slow].median / timings[fast].median, target) for what, slow, fast, target in pairs]
    for _, slow, fast, _ in pairs:
        difference = float(abs(scores[slow] - scores[fast]))
        claims.append(Claim(f"difference of the mean score, {fast}", 100 * difference, 1.0, at_least=False))
        apart = relative_difference(fitted[slow].embedding_, fitted[fast].embedding_)
        claims.append(Claim(f"relative difference of the embedding, {fast}", apart))
    return Outcome("GWNTF on COIL20, the paper's settings, 100 iterations, float32", timings, claims)


def sharp_costs() -> Outcome:
    """Spectra with empty baselines under a cost whose kernel vanishes a few places away, 20 iterations."""
    axis = np.linspace(0, 10, 400)
    cost = np.abs(axis[:, None] - axis[None, :]) / 0.1
    peaks = np.array([[1, 3], [5, 6.5], [8, 9.2]])
    parts = np.exp(-0.5 * ((axis - peaks[:, :, None]) / 0.05) ** 2).sum(axis=1)
    X = np.random.default_rng(0).dirichlet(np.ones(3), 20) @ parts
    X[X < 1e-3] = 0
    model = GWNTF(3, costs=(None, cost), graph_reg=0, max_iter=20, tol=0, random_state=0)
    timings = race({"with zeros": lambda: model.fit(X), "the same + 1e-9": lambda: model.fit(X + 1e-9)})
    return Outcome(
        "20 spectra of 400 places, two thirds of them zero, cost |i - j| / 4 places, 20 iterations, float64",
        timings,
        [
            Claim(
                "times the time without zeros",
                timings["with zeros"].median / timings["the same + 1e-9"].median,
                2,
                at_least=False,
            ),
            Claim("part of the entries that are zero", float((X == 0).mean())),
        ],
    )


CASES = (coil20_fits, sharp_costs)
