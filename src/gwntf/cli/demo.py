"""`gwntf demo`: digits, scores beside k-means, and a picture."""

from __future__ import annotations

import time
from collections.abc import Mapping
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
_SETTING: Mapping[str, Any] = {
    "n_components": 30,
    "n_clusters": _CLASSES,
    "costs": (None, "grid", "grid"),
    "graph_reg": 1200,
    "graph_weight": "self-tuning",
    "inner_iter": 10,
    "assign_labels": "discretize",
    "dtype": "float32",
    "random_state": 0,
}


def demo(folder: Path) -> None:
    """Factorise the digits, print scores beside k-means on pixels, and write a figure to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    X, y = load_digits_tensor()
    print(f"{len(X)} handwritten digits of {X.shape[1]} x {X.shape[2]} pixels, {_CLASSES} classes\n")
    pixels = X.reshape(len(X), -1)
    means = KMeans(_CLASSES, n_init=20, random_state=0)
    model = GWNTF(**_SETTING, progress=True)
    print(f"{'':18}{''.join(f'{name:>8}' for name in SCORES)}{'seconds':>10}")
    _row("k-means on pixels", y, lambda: means.fit_predict(pixels))
    _row("GWNTF", y, lambda: model.fit_predict(X))
    shown = np.array([np.flatnonzero(y == digit)[0] for digit in range(_CLASSES)])
    target = folder / "digits.png"
    with atomic_path(target) as path:
        overview(model, X[shown], title="GWNTF on handwritten digits").savefig(path, dpi=110)
    print(f"\ncomponents, reconstructions and objective: {target}")


def _row(name: str, y: Any, labels: Any) -> None:
    start = time.perf_counter()
    scores = clustering_scores(y, labels())
    seconds = time.perf_counter() - start
    print(f"{name:18}{''.join(f'{100 * score:8.1f}' for score in scores.values())}{seconds:10.1f}")
