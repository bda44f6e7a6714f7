"""How well hidden pixels are filled in: `python -m benchmarks.imputation`, all methods on the same holes.

Three tenths of the pixels are hidden at random, and the relative error |X - X^| / |X| is taken over them alone.
Settings were chosen on holes of seed 0; the tables have those of other seeds. Seconds are those of the processor.
Writes `results/imputation-*.json`, the tables of `docs/missing.md` and its picture; the names of data sets as
arguments run those only, `page` none of them.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from benchmarks.harness import RESULTS, machine
from benchmarks.imputation_page import write_page
from gwntf import GNMF, GWNTF, NCP, NMF, KNNGraph
from gwntf.core import FloatArray
from gwntf.datasets import load_coil20, load_digits_tensor
from gwntf.io import atomic_path

HIDDEN, HELD_OUT = 0.3, 0.1

Mask = NDArray[np.bool_]
Fill = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Entry:
    """A line of a table: a method, its rank where it has one, and how it fills an array with NaN."""

    method: str
    rank: int | None
    fill: Fill


@dataclass(frozen=True)
class Study:
    """A data set: how to load it, the seeds of its holes, the methods, and the settings looked at on held-out pixels.

    Attributes
    ----------
    load : callable
        Returns X and labels.
    seeds : tuple of int
        Of the holes.
    entries : tuple of Entry
        Lines of the table.
    graph : mapping
        Parameters of the graph beside its weight.
    ranks, weights : tuple
        Grid whose error is measured on pixels held out from the observed ones.
    max_iter : int
        Iterations of a fit of the grid.
    """

    load: Callable[[], tuple[FloatArray, Any]]
    seeds: tuple[int, ...]
    entries: tuple[Entry, ...]
    graph: Mapping[str, Any]
    ranks: tuple[int, ...]
    weights: tuple[float, ...]
    max_iter: int


def hide(shape: tuple[int, ...], share: float, seed: int) -> Mask:
    """Which entries are hidden."""
    return np.random.default_rng(seed).random(shape) < share


def hidden_error(filled: FloatArray, X: FloatArray, hidden: Mask) -> float:
    """|X - X^| / |X| over the hidden entries."""
    return float(np.linalg.norm((filled - X)[hidden]) / np.linalg.norm(X[hidden]))


def peer(method: str, imputer: Any) -> Entry:
    """Fill with an imputer of scikit-learn, one row per sample."""

    def fill(X: FloatArray) -> FloatArray:
        filled: FloatArray = imputer.fit_transform(X.reshape(len(X), -1))
        return filled.reshape(X.shape)

    return Entry(method, None, fill)


def fit(method: str, make: Callable[..., Any], rank: int, *, rows: bool = False, **params: Any) -> Entry:
    """Fill with the fit of a factorization, of rows where it would take a tensor as one."""
    settings = {"missing": "ignore", "tol": 0, "random_state": 0} | params

    def fill(X: FloatArray) -> FloatArray:
        filled: FloatArray = make(rank, **settings).fit_impute(X.reshape(len(X), -1) if rows else X)
        return filled.reshape(X.shape)

    return Entry(method, rank, fill)


def kl_rows(rank: int, **params: Any) -> Entry:
    """Fill with the KL loss on rows and a graph: GWNTF without transport, the method this page recommends."""
    return fit("KL, rows, graph", GWNTF, rank, rows=True, costs=(None, None), **params)


def refined(rank: int, *, first: int, graph: KNNGraph, **params: Any) -> Entry:
    """Fill twice: the graph of the second fit is built from the data that the first fit, of rank `first`, completed."""

    def fill(X: FloatArray) -> FloatArray:
        ready = graph.build(kl_rows(first, graph=graph, **params).fill(X))
        return kl_rows(rank, graph=ready, **params).fill(X)

    return Entry("KL, rows, graph of filled data", rank, fill)


MEAN = peer("column mean", SimpleImputer(keep_empty_features=True))
KNN = peer("scikit-learn KNNImputer, 5 neighbours", KNNImputer(n_neighbors=5, keep_empty_features=True))
KL_TENSOR: dict[str, Any] = {"costs": (None, None, None)}
IMAGES: dict[str, Any] = {"costs": (None, "grid", "grid")}
COIL20_GRAPH: dict[str, Any] = {"graph": KNNGraph(3)}
DIGITS_GRAPH: dict[str, Any] = {"graph": KNNGraph(8, weight="self-tuning")}

STUDIES = {
    "coil20": Study(
        load_coil20,
        (1,),
        (
            MEAN,
            KNN,
            peer(
                "scikit-learn KNNImputer, 3 neighbours by distance",
                KNNImputer(n_neighbors=3, weights="distance", keep_empty_features=True),
            ),
            fit("NCP", NCP, 60, max_iter=300),
            fit("NMF", NMF, 60, max_iter=300),
            fit("KL, tensor", GWNTF, 60, max_iter=300, graph_reg=0, **KL_TENSOR),
            kl_rows(60, max_iter=300, graph_reg=0.03, **COIL20_GRAPH),
            fit(
                "GWNTF, image axes transported",
                GWNTF,
                60,
                max_iter=60,
                graph_reg=0.2,
                **COIL20_GRAPH,
                **IMAGES,
            ),
            fit("NCP", NCP, 200, max_iter=300),
            fit("NMF", NMF, 200, max_iter=300),
            fit("GNMF", GNMF, 200, max_iter=300, graph_reg=0.01, **COIL20_GRAPH),
            kl_rows(200, max_iter=300, graph_reg=0.1, **COIL20_GRAPH),
            refined(200, first=60, max_iter=300, graph_reg=0.1, **COIL20_GRAPH),
            kl_rows(400, max_iter=300, graph_reg=0.2, **COIL20_GRAPH),
            kl_rows(800, max_iter=300, graph_reg=0.2, **COIL20_GRAPH),
        ),
        COIL20_GRAPH,
        (60, 200),
        (0.0, 0.1, 1.0),
        100,
    ),
    "digits": Study(
        load_digits_tensor,
        (1, 2, 3),
        (
            MEAN,
            KNN,
            peer(
                "scikit-learn KNNImputer, 5 neighbours by distance",
                KNNImputer(n_neighbors=5, weights="distance", keep_empty_features=True),
            ),
            peer("scikit-learn IterativeImputer", IterativeImputer(random_state=0, keep_empty_features=True)),
            fit("NCP", NCP, 10, max_iter=200),
            fit("NMF", NMF, 10, max_iter=200),
            fit("NMF", NMF, 20, max_iter=200),
            fit("KL, tensor, graph", GWNTF, 160, max_iter=200, graph_reg=1, **DIGITS_GRAPH, **KL_TENSOR),
            fit(
                "GWNTF, image axes transported",
                GWNTF,
                160,
                max_iter=60,
                graph_reg=1,
                **DIGITS_GRAPH,
                **IMAGES,
            ),
            kl_rows(20, max_iter=200, graph_reg=1, **DIGITS_GRAPH),
            kl_rows(160, max_iter=200, graph_reg=1, **DIGITS_GRAPH),
            kl_rows(400, max_iter=200, graph_reg=1, **DIGITS_GRAPH),
            refined(160, first=160, max_iter=200, graph_reg=1, **DIGITS_GRAPH),
            refined(400, first=160, max_iter=200, graph_reg=1, **DIGITS_GRAPH),
        ),
        DIGITS_GRAPH,
        (20, 160),
        (0.0, 0.1, 1.0, 10.0),
        200,
    ),
}


def compare(study: Study) -> list[dict[str, Any]]:
    """Error and CPU seconds of every method, for every seed of the holes."""
    X = study.load()[0].astype(np.float32)
    lines = []
    for entry in study.entries:
        errors, seconds = [], []
        for seed in study.seeds:
            hidden = hide(X.shape, HIDDEN, seed)
            start = time.process_time()
            filled = entry.fill(np.where(hidden, np.nan, X))
            seconds.append(time.process_time() - start)
            errors.append(hidden_error(filled, X, hidden))
        lines.append({"method": entry.method, "rank": entry.rank, "errors": errors, "seconds": seconds})
        sys.stderr.write(f"  {entry.method}, rank {entry.rank}: {np.mean(errors):.4f}\n")
    return lines


def hold_out(study: Study) -> list[dict[str, Any]]:
    """Error of a grid of settings on a tenth of the observed pixels, and on the hidden ones, which decide nothing."""
    X = study.load()[0].astype(np.float32)
    hidden = hide(X.shape, HIDDEN, study.seeds[0])
    held = hide(X.shape, HELD_OUT, 0) & ~hidden
    lines = []
    for rank in study.ranks:
        for weight in study.weights:
            entry = kl_rows(rank, max_iter=study.max_iter, graph_reg=weight, **study.graph)
            filled = entry.fill(np.where(hidden | held, np.nan, X))
            found = {"held_out": hidden_error(filled, X, held), "hidden": hidden_error(filled, X, hidden)}
            lines.append({"rank": rank, "graph_reg": weight} | found)
            sys.stderr.write(f"  held out: {lines[-1]}\n")
    return lines


def main() -> None:
    """Run the studies named, or all; write results, page and picture."""
    for name in sys.argv[1:] or list(STUDIES):
        if name == "page":
            continue
        sys.stderr.write(f"{name}\n")
        study = STUDIES[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            record: dict[str, Any] = {"table": compare(study), "held_out": hold_out(study)}
        record |= {"hidden": HIDDEN, "seeds": study.seeds, "machine": machine()}
        record["command"] = f"python -m benchmarks.imputation {name}"
        with atomic_path(RESULTS / f"imputation-{name}.json") as aside:
            aside.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    write_page()


if __name__ == "__main__":
    main()
