"""Running a table: one cached file per run, seeds in parallel, restart where a killed run stopped."""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans, spectral_clustering

from gwntf import estimators
from gwntf._version import __version__
from gwntf.core import DataError, FloatArray
from gwntf.datasets import load_coil20, load_digits_tensor, load_pie_pose27
from gwntf.estimators.labels import assign
from gwntf.evaluation import clustering_scores
from gwntf.experiments.table import FOREIGN, Method, Table
from gwntf.geometry import check_costs, neighbor_graph, resolve_costs
from gwntf.io import atomic_path
from gwntf.problem import as_tensor, normalise_samples
from gwntf.solvers import Iteration

_SHOWN = 10

GraphKey = tuple[int, str, str]
GRAPH_DEFAULT: GraphKey = (5, "binary", "cosine")


@dataclass(frozen=True)
class Run:
    """One fit: everything its result depends on."""

    dataset: str
    method: Method
    kmeans_starts: int
    score_at: tuple[int, ...]
    seed: int

    @property
    def key(self) -> str:
        """Name of its cache file: readable, and different for every setting."""
        text = json.dumps(
            {
                "dataset": self.dataset,
                "estimator": self.method.estimator,
                "params": dict(self.method.params),
                "kmeans_starts": self.kmeans_starts,
                "score_at": self.score_at,
                "version": __version__,
            },
            sort_keys=True,
        )
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"{self.dataset}-{self.method.estimator}-{digest}-{self.seed:03d}"


@dataclass(frozen=True)
class RunResult:
    """What one run gave: scores as shares of one, seconds, iterations, and scores on the way."""

    method: str
    seed: int
    scores: Mapping[str, float]
    seconds: float
    n_iter: int
    objective: float | None
    on_the_way: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Setting:
    """What all runs on a data set share: data, graphs (by their parameters) and costs, computed once."""

    X: FloatArray
    y: NDArray[np.int_]
    graphs: Mapping[GraphKey, Any]
    sample_cost: FloatArray


def load_setting(dataset: str, methods: Iterable[Method]) -> Setting:
    """Load a data set and compute what the runs of these methods share."""
    loaders = {"coil20": load_coil20, "pie_pose27": load_pie_pose27, "digits": load_digits_tensor}
    X, y = loaders[dataset]()
    tensor, _ = normalise_samples(as_tensor(X), "l2")
    specs = check_costs(["cosine", *[None] * (X.ndim - 1)], X.shape)
    sample_cost = resolve_costs(specs, tensor)[0]
    keys = {_graph_key(method) for method in methods}
    graphs = {
        key: neighbor_graph(tensor, key[0], weight=key[1], metric=key[2]) for key in keys if key is not None
    }
    return Setting(X, y, graphs, np.asarray(sample_cost))


def run_table(
    table: Table,
    *,
    runs: int | None = None,
    cache: Path,
    engine: str | None = None,
    jobs: int | None = None,
    on_result: Callable[[RunResult], None] | None = None,
) -> list[RunResult]:
    """Do all runs of a table that are not cached yet, and return every result.

    Parameters
    ----------
    table : Table
        What to run.
    runs : int, optional
        Seeds per method, from 0; the table's own number by default.
    cache : path
        Folder of results, one file per run; each appears whole, so that a killed table goes on where it
        stopped.
    engine : str, optional
        Engine of every factorization.
    jobs : int, optional
        Processes; by default one per core. Each gets its share of the cores for its own threads.
    on_result : callable, optional
        Called with every result as it arrives, cached ones first.
    """
    cache.mkdir(parents=True, exist_ok=True)
    seeds = range(table.runs if runs is None else runs)
    todo = [
        Run(table.dataset, _with_engine(method, engine), table.kmeans_starts, table.score_at, seed)
        for method in table.methods
        for seed in seeds
    ]
    results: dict[str, RunResult] = {}
    for run in todo:
        cached = read_result(cache, run)
        if cached is not None:
            results[run.key] = cached
            if on_result:
                on_result(cached)
    missing = [run for run in todo if run.key not in results]
    for key, result in _in_parallel(missing, cache, jobs) if missing else ():
        results[key] = result
        if on_result:
            on_result(result)
    return [results[run.key] for run in todo]


def _with_engine(method: Method, engine: str | None) -> Method:
    if engine is None or method.estimator in FOREIGN:
        return method
    return replace(method, params={**method.params, "engine": engine})


def read_result(cache: Path, run: Run) -> RunResult | None:
    """Return the cached result of a run, or None if there is none that can be read."""
    try:
        content = json.loads((cache / f"{run.key}.json").read_text(encoding="utf-8"))
        return RunResult(**{**content, "method": run.method.name})
    except FileNotFoundError:
        return None
    except (json.JSONDecodeError, TypeError, UnicodeDecodeError) as error:
        path = cache / f"{run.key}.json"
        raise DataError(
            f"{path} is not a result of this program ({error}): remove it and run again"
        ) from error


def first_pictures(table: Table, cache: Path, engine: str | None = None) -> dict[str, dict[str, Any]]:
    """Return, by method, the arrays kept of its first run for reports; k-means has none."""
    found = {}
    for method in table.methods:
        run = Run(table.dataset, _with_engine(method, engine), table.kmeans_starts, table.score_at, 0)
        path = cache / f"{run.key}.npz"
        if path.exists():
            with np.load(path, allow_pickle=False) as arrays:
                found[method.name] = {name: arrays[name] for name in arrays.files}
    return found


def _in_parallel(runs: list[Run], cache: Path, jobs: int | None) -> Iterator[tuple[str, RunResult]]:
    from joblib import Parallel, delayed, parallel_config

    cores = os.cpu_count() or 1
    jobs = max(1, min(jobs or cores, len(runs)))
    setting = load_setting(runs[0].dataset, [run.method for run in runs])
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=max(1, cores // jobs)):
        work = (delayed(do_run)(run, setting, cache) for run in runs)
        yield from Parallel(return_as="generator_unordered")(work)


def do_run(run: Run, setting: Setting, cache: Path) -> tuple[str, RunResult]:
    """Fit, label, score and write the result."""
    started = time.perf_counter()
    if run.method.estimator == "KMeans":
        rows = setting.X.reshape(len(setting.X), -1)
        labels = _labels(rows / np.linalg.norm(rows, axis=1, keepdims=True), run, setting)
        result = _result(run, setting, labels, started)
    elif run.method.estimator == "SpectralClustering":
        result = _result(run, setting, _spectral_labels(run, setting), started)
    else:
        result = _factorise(run, setting, started, cache)
    with atomic_path(cache / f"{run.key}.json") as path:
        path.write_text(json.dumps(asdict(result), indent=1), encoding="utf-8")
    return run.key, result


def _factorise(run: Run, setting: Setting, started: float, cache: Path) -> RunResult:
    on_the_way: dict[str, dict[str, float]] = {}

    def look(news: Iteration) -> None:
        if news.iteration in run.score_at:
            labels = _labels(np.asarray(news.factors[0]), run, setting)
            on_the_way[str(news.iteration)] = clustering_scores(setting.y, labels)

    model = _estimator(run, setting)
    model.set_params(callbacks=[look] if run.score_at else None)
    model.fit(setting.X)
    labels = _labels(model.embedding_, run, setting)
    result = _result(run, setting, labels, started, model, on_the_way)
    if run.seed == 0:
        _keep_pictures(cache / f"{run.key}.npz", model, setting)
    return result


def _estimator(run: Run, setting: Setting) -> Any:
    """Build the estimator of a run around the shared graph and costs."""
    kind = getattr(estimators, run.method.estimator)
    params = {
        "n_components": len(np.unique(setting.y)),
        "random_state": run.seed,
        **run.method.params,
    }
    if "costs" in params:
        params["costs"] = [None if cost == "none" else cost for cost in params["costs"]]
        if params["costs"][0] == "cosine":
            params["costs"][0] = setting.sample_cost
    key = _graph_key(run.method)
    if key is not None:
        params["graph"] = setting.graphs[key]
    return kind(**params)


def _graph_key(method: Method) -> GraphKey | None:
    """Return neighbours, weight and metric of the graph of a method; None if it has none."""
    if method.estimator == "KMeans":
        return None
    names = ("n_neighbors", "graph_weight", "graph_metric")
    known: dict[str, Any] = dict(zip(names, GRAPH_DEFAULT, strict=True))
    if method.estimator != "SpectralClustering":
        known = getattr(estimators, method.estimator)().get_params()
    if names[0] not in known:
        return None
    neighbors, weight, metric = ({**known, **method.params}[name] for name in names)
    return neighbors, weight, metric


def _labels(embedding: FloatArray, run: Run, setting: Setting) -> NDArray[np.int_]:
    classes = len(np.unique(setting.y))
    how = run.method.params.get("assign_labels", "kmeans")
    if how != "kmeans":
        return assign(embedding, classes, how, run.seed)
    means = KMeans(classes, n_init=run.kmeans_starts, random_state=run.seed)
    labels: NDArray[np.int_] = means.fit_predict(embedding)
    return labels


def _spectral_labels(run: Run, setting: Setting) -> NDArray[np.int_]:
    graph = setting.graphs[_graph_key(run.method) or GRAPH_DEFAULT]
    how = run.method.params.get("assign_labels", "discretize")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        labels: NDArray[np.int_] = spectral_clustering(
            graph, n_clusters=len(np.unique(setting.y)), assign_labels=how, random_state=run.seed
        )
    return labels


def _result(
    run: Run,
    setting: Setting,
    labels: NDArray[np.int_],
    started: float,
    model: Any = None,
    on_the_way: Mapping[str, Mapping[str, float]] | None = None,
) -> RunResult:
    scores = clustering_scores(setting.y, labels)
    seconds = time.perf_counter() - started
    iterations, objective = (model.n_iter_, model.objective_) if model is not None else (0, None)
    return RunResult(run.method.name, run.seed, scores, seconds, iterations, objective, on_the_way or {})


def _keep_pictures(target: Path, model: Any, setting: Setting) -> None:
    """Keep what a report draws: components, a few reconstructions, the embedding and the objective."""
    first = [int(np.flatnonzero(setting.y == label)[0]) for label in np.unique(setting.y)[:_SHOWN]]
    model_of = (model.embedding_[first] * model.sample_scale_[first][:, None]) @ model.components_
    with atomic_path(target) as path:
        np.savez_compressed(
            path,
            components=model.components_.astype(np.float32),
            samples=setting.X[first].reshape(len(first), -1).astype(np.float32),
            reconstructions=model_of.astype(np.float32),
            embedding=model.embedding_.astype(np.float32),
            objective_curve=model.objective_curve_,
            sample_shape=np.array(setting.X.shape[1:]),
            labels=setting.y,
        )
