"""One run: everything its result depends on, the fit, its labels and scores, and the file that keeps them."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import spectral_clustering
from sklearn.preprocessing import normalize

from gwntf.backends import to_host
from gwntf.clustering import assign, check_clusters, choose_graph, clearest
from gwntf.core import FloatArray, GwntfError
from gwntf.data import as_data
from gwntf.datasets import load_coil20, load_digits_tensor, load_pie_pose27
from gwntf.evaluation import clustering_scores
from gwntf.experiments.environment import environment
from gwntf.experiments.table import FOREIGN, Method
from gwntf.geometry import check_costs, neighbor_graph, resolve_costs
from gwntf.io import atomic_path
from gwntf.solver import Iteration

PROTOCOL = 4
"""To be raised whenever the same run would give another result than before: cached runs are then done anew."""

_SHOWN = 10

GraphKey = tuple[int, str, str, str | None]
GRAPH_DEFAULT: GraphKey = (5, "binary", "cosine", "l2")


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
        """Name of its cache file: readable, and different for every setting, defaults of the library included."""
        built = self.method.build()
        params = self.method.params if built is None else built.get_params()
        settings = {
            "protocol": PROTOCOL,
            "dataset": self.dataset,
            "estimator": self.method.estimator,
            "params": {name: value for name, value in params.items() if name != "checkpoint"},
            "kmeans_starts": self.kmeans_starts,
            "score_at": self.score_at,
        }
        text = json.dumps(settings, sort_keys=True, default=repr)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"{self.dataset}-{self.method.estimator}-{digest}-{self.seed:03d}"


@dataclass(frozen=True)
class RunResult:
    """What one run gave: scores as shares of one, seconds, iterations, scores on the way, and where it ran."""

    method: str
    seed: int
    scores: Mapping[str, float]
    seconds: float
    n_iter: int
    objective: float | None
    on_the_way: Mapping[str, Mapping[str, float]]
    environment: Mapping[str, str] = field(default_factory=environment)


@dataclass(frozen=True)
class Setting:
    """What all runs on a data set share: data, graphs (by their parameters) and costs, computed once."""

    X: FloatArray
    y: NDArray[np.int_]
    graphs: Mapping[GraphKey, Any]
    sample_cost: FloatArray

    @property
    def classes(self) -> int:
        """Number of true classes."""
        return len(np.unique(self.y))


def load_setting(dataset: str, methods: Iterable[Method]) -> Setting:
    """Load a data set and compute what the runs of these methods share."""
    loaders = {"coil20": load_coil20, "pie_pose27": load_pie_pose27, "digits": load_digits_tensor}
    X, y = loaders[dataset]()
    raw = as_data(X)
    specs = check_costs(["cosine", *[None] * (X.ndim - 1)], X.shape)
    sample_cost = resolve_costs(specs, raw.normalised("l2")[0])[0]
    graphs = {}
    for key in {_graph_key(method) for method in methods}:
        if key is not None:
            neighbors, weight, metric, norm = key
            tensor, _ = raw.normalised(norm)
            if metric == "auto":
                graphs[key] = choose_graph(tensor, neighbors, weight, len(np.unique(y)), 0)[1]
            else:
                graphs[key] = neighbor_graph(tensor, neighbors, weight=weight, metric=metric)
    return Setting(X, y, graphs, np.asarray(sample_cost))


@dataclass(frozen=True)
class Fitted:
    """What a result takes from a model, the seconds of its fit, and where that was."""

    embedding: FloatArray
    n_iter: int
    objective: float
    seconds: float
    environment: Mapping[str, str]


def fitted_of(run: Run, model: Any, seconds: float, setting: Setting, cache: Path) -> Fitted:
    """Take what the result needs from a model, and keep its pictures if it is the first."""
    if has_pictures(run):
        _keep_pictures(cache / f"{run.key}.npz", model, setting)
    where = environment(model.device)
    return Fitted(model.embedding_, model.n_iter_, model.objective_, seconds, where)


def do_run(run: Run, setting: Setting, cache: Path) -> tuple[str, RunResult]:
    """Fit, label, score and write the result."""
    started = time.perf_counter()
    with _naming(run):
        if run.method.estimator == "KMeans":
            labels = _labels(normalize(setting.X.reshape(len(setting.X), -1)), run, setting)
            return _written(run, _result(run, setting, labels, started), cache)
        if run.method.estimator == "SpectralClustering":
            return _written(run, _result(run, setting, _spectral_labels(run, setting), started), cache)
        fitted, on_the_way = factorise(run, setting, cache)
    return label_run(run, fitted, setting, cache, on_the_way)


def label_run(
    run: Run,
    fitted: Fitted,
    setting: Setting,
    cache: Path,
    on_the_way: Mapping[str, Mapping[str, float]] | None = None,
) -> tuple[str, RunResult]:
    """Label what was fitted, score and write the result."""
    started = time.perf_counter() - fitted.seconds
    with _naming(run):
        labels = _labels(fitted.embedding, run, setting)
        result = _result(run, setting, labels, started)
    places = {
        str(place): result.scores for place in run.score_at
    }  # a fit that stopped early stays where it stopped
    return _written(
        run,
        replace(
            result,
            n_iter=fitted.n_iter,
            objective=fitted.objective,
            on_the_way=places | dict(on_the_way or {}),
            environment=fitted.environment,
        ),
        cache,
    )


@contextmanager
def _naming(run: Run) -> Iterator[None]:
    """Say in errors which run it was."""
    try:
        yield
    except Exception as error:
        message = f"run {run.seed} of {run.method.name} failed: {type(error).__name__}: {error}"
        raise GwntfError(message) from error


def _written(run: Run, result: RunResult, cache: Path) -> tuple[str, RunResult]:
    with atomic_path(cache / f"{run.key}.json") as path:
        path.write_text(json.dumps(asdict(result), indent=1), encoding="utf-8")
    return run.key, result


def factorise(run: Run, setting: Setting, cache: Path) -> tuple[Fitted, Mapping[str, Mapping[str, float]]]:
    """Fit, and score on the way where that is asked for."""
    started = time.perf_counter()
    on_the_way: dict[str, Mapping[str, float]] = {}

    def look(news: Iteration) -> None:
        if news.iteration in run.score_at:
            labels = _labels(to_host(news.factors[0]), run, setting)
            on_the_way[str(news.iteration)] = clustering_scores(setting.y, labels)

    model = estimator(run, setting)
    model.set_params(callbacks=[look] if run.score_at else None)
    model.fit(setting.X)
    return fitted_of(run, model, time.perf_counter() - started, setting, cache), on_the_way


def estimator(run: Run, setting: Setting) -> Any:
    """Build the estimator of a run around the shared graph and costs."""
    params: dict[str, Any] = {"random_state": run.seed, "n_clusters": setting.classes}
    if "n_components" not in run.method.params:
        params["n_components"] = setting.classes
    key = _graph_key(run.method)
    if key is not None:
        params["graph"] = setting.graphs[key]
    model = run.method.build().set_params(**params)
    if run.method.estimator == "GWNTF" and model.costs == "auto":
        model.costs = check_costs("auto", setting.X.shape)
    costs = getattr(model, "costs", "auto")
    exact = isinstance(costs, list | tuple) and isinstance(costs[0], str) and model.kernel_tol == 0
    if exact and costs[0] == "cosine" and model.sample_norm == "l2":
        model.costs = [setting.sample_cost, *costs[1:]]
    return model


def check_labelling(run: Run, setting: Setting) -> None:
    """Raise where so many classes could not be told apart, before any work."""
    if run.method.estimator not in FOREIGN:
        model = estimator(run, setting)
        check_clusters(setting.classes, len(setting.X), model.n_components, model.assign_labels)


def has_pictures(run: Run) -> bool:
    """Whether arrays of the run are kept for reports: of the first one of every factorization."""
    return run.seed == 0 and run.method.estimator not in FOREIGN


def _graph_key(method: Method) -> GraphKey | None:
    """Return neighbours, weight, metric and normalisation of the graph of a method; None if it has none."""
    if method.estimator == "KMeans":
        return None
    names = ("n_neighbors", "graph_weight", "graph_metric", "sample_norm")
    built = method.build()
    known = {**dict(zip(names, GRAPH_DEFAULT, strict=True)), **method.params}
    if built is not None:
        known = built.get_params()
    if names[0] not in known:
        return None
    neighbors, weight, metric, norm = (known[name] for name in names)
    return neighbors, weight, metric, norm


def _labels(embedding: FloatArray, run: Run, setting: Setting) -> NDArray[np.int_]:
    how = run.method.params.get("assign_labels", "kmeans")
    labels = assign(embedding, setting.classes, how, run.seed, run.kmeans_starts)
    key = _graph_key(run.method)
    if key is None or not run.method.params.get("refine_labels", False):
        return labels
    return clearest(setting.graphs[key], labels, setting.classes, run.seed)


def _spectral_labels(run: Run, setting: Setting) -> NDArray[np.int_]:
    graph = setting.graphs[_graph_key(run.method) or GRAPH_DEFAULT]
    how = run.method.params.get("assign_labels", "discretize")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        labels: NDArray[np.int_] = spectral_clustering(
            graph, n_clusters=setting.classes, assign_labels=how, random_state=run.seed
        )
    return labels


def _result(run: Run, setting: Setting, labels: NDArray[np.int_], started: float) -> RunResult:
    scores = clustering_scores(setting.y, labels)
    return RunResult(run.method.name, run.seed, scores, time.perf_counter() - started, 0, None, {})


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
