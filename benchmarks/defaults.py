"""What the defaults are worth: a classifier on the embedding, and the reconstruction, for several graph weights.

`python -m benchmarks.defaults` writes `results/defaults.json` and the table of `docs/choosing.md`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import NMF
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.harness import RESULTS, machine
from benchmarks.pages import DOCS, replace_between
from gwntf import GWNTF
from gwntf.core import FloatArray
from gwntf.datasets import load_coil20, load_digits_tensor, load_pie_pose27
from gwntf.io import atomic_path

SAMPLES, SPLITS = 300, 2
WEIGHTS = (0.0, 0.01, 0.1, 1.0, 1e4)
FIGURES = {"accuracy": "accuracy", "scaled": "accuracy, embedding scaled", "error": "reconstruction error"}
Scores = dict[str, dict[str, dict[str, list[float]]]]


def data_sets() -> Iterator[tuple[str, FloatArray, NDArray[np.int_], int]]:
    """Give images, measurements, spectra and counts: name, samples, classes and the rank."""
    rng = np.random.default_rng(0)
    for name, load in (("digits", load_digits_tensor), ("COIL20", load_coil20), ("PIE_pose27", load_pie_pose27)):
        X, y = load()
        kept = rng.permutation(np.flatnonzero(y < 20))[:SAMPLES]
        yield name, X[kept].astype(np.float64), y[kept], 20
    yield "breast cancer", *load_breast_cancer(return_X_y=True), 8
    yield "wine", *load_wine(return_X_y=True), 6
    yield "drifting spectra", *_spectra(rng), 6
    yield "counts", *_counts(rng), 8


def _spectra(rng: np.random.Generator) -> tuple[FloatArray, NDArray[np.int_]]:
    """Mixtures of six substances with three peaks each, all shifted by the same amount; three kinds of mixture."""
    axis, peaks, heights = np.linspace(0, 10, 150), rng.uniform(0.5, 9.5, (6, 3)), rng.random((6, 3))
    kinds, y = rng.dirichlet(np.full(6, 0.5), 3), rng.integers(0, 3, 400)
    shares = np.array([rng.dirichlet(8 * kinds[kind] + 0.05) for kind in y])
    shift = 0.08 * rng.standard_normal(400)
    places = axis[None, None, None, :] - peaks[None, :, :, None] - shift[:, None, None, None]
    X: FloatArray = np.einsum("ik,kp,ikpx->ix", shares, heights, np.exp(-0.5 * (places / 0.12) ** 2))
    return X, y


def _counts(rng: np.random.Generator) -> tuple[FloatArray, NDArray[np.int_]]:
    """Words of short texts on eight topics; four kinds of text."""
    topics, kinds = rng.dirichlet(np.full(80, 0.1), 8), rng.dirichlet(np.full(8, 0.4), 4)
    y = rng.integers(0, 4, 400)
    X = np.array([rng.poisson(60 * rng.dirichlet(6 * kinds[kind] + 0.05) @ topics) for kind in y]).astype(np.float64)
    filled = X.sum(axis=1) > 0
    return X[filled], y[filled]


def models(rank: int, ndim: int) -> dict[str, Callable[[], Any]]:
    """Return the models that are compared, by name."""
    found: dict[str, Callable[[], Any]] = {
        "scikit-learn's NMF": lambda: NMF(rank, init="nndsvda", max_iter=1000, random_state=0)
    }
    for weight in WEIGHTS:
        found[f"graph_reg={weight:g}"] = partial(GWNTF, rank, graph_reg=weight, random_state=0)
    costs = ("cosine", *["grid"] * (ndim - 1))
    found["graph_reg=0.1, samples transported"] = lambda: GWNTF(rank, costs=costs, graph_reg=0.1, random_state=0)
    return found


def run() -> Scores:
    """Scores by data set, model and figure, one for every split."""
    scores: Scores = {}
    for name, X, y, rank in data_sets():
        splits = StratifiedShuffleSplit(SPLITS, test_size=1 / 3, random_state=0).split(X, y)
        for number, (train, test) in enumerate(splits):
            sys.stderr.write(f"{name}, split {number}\n")
            for model_name, build in models(rank, X.ndim).items():
                flat = X.reshape(len(X), -1) if "scikit-learn" in model_name else X
                found = _figures(build(), flat[train], y[train], flat[test], y[test])
                for figure, value in found.items():
                    scores.setdefault(name, {}).setdefault(model_name, {}).setdefault(figure, []).append(value)
    return scores


def _figures(
    model: Any, X: FloatArray, y: NDArray[np.int_], X_new: FloatArray, y_new: NDArray[np.int_]
) -> dict[str, float]:
    """Share of new samples whose class is right, and how far their model is from them."""
    Z = model.fit_transform(X)
    Z_new = model.transform(X_new)
    plain = LogisticRegression(max_iter=500)
    scaled = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    rebuilt = model.inverse_transform(Z_new)
    return {
        "accuracy": plain.fit(Z, y).score(Z_new, y_new),
        "scaled": scaled.fit(Z, y).score(Z_new, y_new),
        "error": float(np.linalg.norm(rebuilt - X_new) / np.linalg.norm(X_new)),
        "iterations": float(model.n_iter_),
    }


def table(scores: Mapping[str, Mapping[str, Mapping[str, list[float]]]], figure: str) -> str:
    """Means over splits as Markdown, models down and data sets across; the last column is the mean of all sets."""
    rows = [f"| {FIGURES[figure]} | {' | '.join(scores)} | mean |", "|---" * (len(scores) + 2) + "|"]
    for model in next(iter(scores.values())):
        values = [float(np.mean(found[model][figure])) for found in scores.values()]
        rows.append(f"| {model} | {' | '.join(f'{value:.2f}' for value in values)} | {np.mean(values):.3f} |")
    return "\n".join(rows)


def body(scores: Mapping[str, Any]) -> str:
    """Return what the page shows of the results."""
    return "\n\n".join(table(scores, figure) for figure in FIGURES)


def main() -> None:
    """Run, save, report."""
    scores = run()
    record = {
        "command": "python -m benchmarks.defaults",
        "splits": SPLITS,
        "scores": scores,
        "machine": machine(),
    }
    RESULTS.mkdir(exist_ok=True)
    with atomic_path(RESULTS / "defaults.json") as aside:
        aside.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    replace_between(DOCS / "choosing.md", "defaults", body(scores))


if __name__ == "__main__":
    main()
