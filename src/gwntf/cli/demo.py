"""`gwntf demo`: digits, scores beside k-means, and a picture."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from gwntf.datasets import load_digits_tensor
from gwntf.estimators import GWNTF
from gwntf.evaluation import SCORES, clustering_scores
from gwntf.io import atomic_path
from gwntf.plots import overview

_CLASSES = 10
_RUNS = 3
_SETTING: Mapping[str, Any] = {
    "n_components": 60,
    "n_clusters": _CLASSES,
    "costs": (None, "grid", "grid"),
    "graph_reg": 600,
    "graph_weight": "self-tuning",
    "inner_iter": 10,
    "tol": 0,
    "assign_labels": "discretize",
    "dtype": "float32",
    "progress": True,
}


def demo(folder: Path) -> None:
    """Factorise the digits, print scores beside k-means on pixels, and write a figure to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    X, y = load_digits_tensor()
    pixels = X.reshape(len(X), -1)
    models = [GWNTF(**_SETTING, random_state=seed) for seed in range(_RUNS)]
    print(f"{len(X)} handwritten digits of {X.shape[1]} x {X.shape[2]} pixels, {_CLASSES} classes;")
    print(f"scores in percent and seconds for one run, averages of {_RUNS} runs\n")
    means = [KMeans(_CLASSES, n_init=20, random_state=seed) for seed in range(_RUNS)]
    rows = [
        _row("k-means on pixels", means, pixels, y),
        _row("GWNTF", models, X, y),
    ]
    print(f"{'':18}{''.join(f'{name:>8}' for name in SCORES)}{'seconds':>10}")
    print("\n".join(rows))
    target = folder / "digits.png"
    shown = np.array([np.flatnonzero(y == digit)[0] for digit in range(_CLASSES)])
    with atomic_path(target) as path:
        overview(models[0], X[shown], title="GWNTF on handwritten digits").savefig(path, dpi=110)
    print(f"\ncomponents, reconstructions and objective: {target}")


def _row(name: str, estimators: Sequence[Any], X: Any, y: Any) -> str:
    """Fit every estimator and return a line of average scores."""
    start = time.perf_counter()
    scores = [list(clustering_scores(y, estimator.fit_predict(X)).values()) for estimator in estimators]
    seconds = (time.perf_counter() - start) / len(estimators)
    return f"{name:18}{''.join(f'{100 * score:8.1f}' for score in np.mean(scores, axis=0))}{seconds:10.1f}"
