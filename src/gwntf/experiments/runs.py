"""One run of a table: its settings, the fit, its labels and scores, and its cache file."""

import hashlib
import json
import platform
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import spectral_clustering
from sklearn.preprocessing import normalize

from gwntf._version import __version__
from gwntf.backends import to_host
from gwntf.clustering import assign, check_clusters, choose_graph, most_modular
from gwntf.core import FloatArray, GwntfError
from gwntf.data import as_data
from gwntf.datasets import load_coil20, load_digits_tensor, load_pie_pose27
from gwntf.estimators import TransportOptions
from gwntf.estimators.clusterer import for_clusters
from gwntf.evaluation import clustering_scores
from gwntf.experiments.table import FOREIGN, Method
from gwntf.geometry import check_costs, neighbor_graph, resolve_costs
from gwntf.io import atomic_path
from gwntf.solver import Iteration

PROTOCOL = 5  # increase it with every change that affects results, so that cached runs are repeated

_MAX_PICTURES = 10

ScoresAt = Mapping[str, Mapping[str, float]]  # scores by iteration, as text
GraphKey = tuple[int, str, Any, str | None]  # neighbours, weight, metric, sample_norm


def environment(device: str | None = None) -> dict[str, str]:
    """Return versions and machine, and the device if one was used."""
    found = {"gwntf": __version__, "python": platform.python_version(), "machine": platform.machine()}
    packages = ["numpy", "scipy", "scikit-learn"]
    if device is not None:
        from gwntf.backends.torch.arrays import device_name

        found["device"] = device_name(device)
        packages += ["torch", "triton"]
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


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
        """Name of its cache file, different for every setting, including defaults of the library."""
        settings = self.method.settings() | {
            "protocol": PROTOCOL,
            "dataset": self.dataset,
            "params": _all_params(self.method),
            "kmeans_starts": self.kmeans_starts,
            "score_at": self.score_at,
        }
        text = json.dumps(settings, sort_keys=True, default=repr)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"{self.dataset}-{self.method.estimator}-{digest}-{self.seed:03d}"


@dataclass(frozen=True)
class RunResult:
    """Result of one run: scores between 0 and 1, seconds, iterations, scores at `score_at`, and where it ran."""

    method: str
    seed: int
    scores: Mapping[str, float]
    seconds: float
    n_iter: int
    objective: float | None
    on_the_way: ScoresAt
    environment: Mapping[str, str] = field(default_factory=environment)


@dataclass(frozen=True)
class Setting:
    """Shared input of all runs on a data set, computed once: data, graphs by their parameters, and sample costs."""

    X: FloatArray
    y: NDArray[np.int_]
    graphs: Mapping[GraphKey, Any]
    sample_cost: FloatArray

    @property
    def classes(self) -> int:
        """Number of true classes."""
        return len(np.unique(self.y))


def load_setting(dataset: str, methods: Iterable[Method]) -> Setting:
    """Load a data set and compute the graphs and costs of these methods."""
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


def do_run(run: Run, setting: Setting, cache: Path) -> tuple[str, RunResult]:
    """Fit, label, score and write the result; return its key too."""
    if run.method.estimator in FOREIGN:
        unscored = RunResult(run.method.name, run.seed, {}, 0.0, 0, None, {})
        return label_run(run, None, unscored, setting, cache)
    return label_run(run, *fit_run(run, setting, cache), setting, cache)


def fit_run(run: Run, setting: Setting, cache: Path) -> tuple[FloatArray, RunResult]:
    """Fit a factorization; return its embedding, and its result, which has no scores but those at `run.score_at`."""
    started = time.perf_counter()
    on_the_way: dict[str, Mapping[str, float]] = {}

    def score(report: Iteration) -> None:
        if report.iteration in run.score_at:
            labels = _labels(to_host(report.factors[0]), run, setting)
            on_the_way[str(report.iteration)] = clustering_scores(setting.y, labels)

    with _naming(run):
        model = estimator(run, setting).set_params(callbacks=[score] if run.score_at else None)
        model.fit(setting.X)
        return fit_result(run, model, time.perf_counter() - started, setting, cache, on_the_way)


def fit_result(
    run: Run, model: Any, seconds: float, setting: Setting, cache: Path, on_the_way: ScoresAt | None = None
) -> tuple[FloatArray, RunResult]:
    """Return embedding and unscored result of a fitted model, and write its arrays for reports if it is the first."""
    if has_pictures(run):
        _write_pictures(cache / f"{run.key}.npz", model, setting)
    fit = (seconds, model.n_iter_, model.objective_, on_the_way or {}, environment(model.device))
    return model.factors_[0], RunResult(run.method.name, run.seed, {}, *fit)


def label_run(
    run: Run, embedding: FloatArray | None, unscored: RunResult, setting: Setting, cache: Path
) -> tuple[str, RunResult]:
    """Label an embedding, or the samples themselves, score the labels and write the result; return its key too."""
    started = time.perf_counter()
    with _naming(run):
        scores = clustering_scores(setting.y, _labels(embedding, run, setting))
    seconds = unscored.seconds + time.perf_counter() - started
    on_the_way = dict(unscored.on_the_way)
    if embedding is not None:  # a fit that stopped early keeps its final scores
        on_the_way = {str(iteration): scores for iteration in run.score_at} | on_the_way
    result = replace(unscored, scores=scores, seconds=seconds, on_the_way=on_the_way)
    with atomic_path(cache / f"{run.key}.json") as path:
        path.write_text(json.dumps(asdict(result), indent=1), encoding="utf-8")
    return run.key, result


@contextmanager
def _naming(run: Run) -> Iterator[None]:
    """Name the run in errors."""
    try:
        yield
    except Exception as error:
        raise GwntfError(f"run {run.seed} of {run.method.name} failed: {type(error).__name__}: {error}") from error


def estimator(run: Run, setting: Setting) -> Any:
    """Build the estimator of a run with the shared graph and costs."""
    params: dict[str, Any] = {"random_state": run.seed}
    if "n_components" not in run.method.params:
        params["n_components"] = setting.classes
    key = _graph_key(run.method)
    if key is not None:
        params["graph"] = setting.graphs[key]
    model = for_clusters(run.method.build().set_params(**params), setting.classes)
    costs, options = getattr(model, "costs", "auto"), getattr(model, "transport", None)
    exact = isinstance(costs, list | tuple) and options is not None and options.kernel_tol == 0
    if exact and costs[0] == "cosine" and model.sample_norm == "l2":
        model.costs = [setting.sample_cost, *costs[1:]]
    return model


def check_labelling(run: Run, setting: Setting) -> None:
    """Raise InputError if the labelling cannot produce the number of clusters."""
    if run.method.estimator not in FOREIGN:
        model = estimator(run, setting)
        check_clusters(setting.classes, len(setting.X), model.n_components, run.method.assign_labels)


def has_pictures(run: Run) -> bool:
    """Whether arrays of the run are written for reports: those of the first run of every factorization."""
    return run.seed == 0 and run.method.estimator not in FOREIGN


def _all_params(method: Method) -> dict[str, Any]:
    """Return the parameters of a method with their defaults, those of graph and transport nested."""
    model = method.build()
    if model is None:
        rule = method.graph()
        return {} if rule is None else {"graph": rule.get_params()}
    if getattr(model, "transport", False) is None:
        model.set_params(transport=TransportOptions())
    params: dict[str, Any] = model.get_params()
    return params


def _graph_key(method: Method) -> GraphKey | None:
    """Return neighbours, weight, metric and normalisation of the graph of a method; None if it has none."""
    rule, model = method.graph(), method.build()
    if rule is None:
        return None
    return rule.n_neighbors, rule.weight, rule.metric, "l2" if model is None else model.sample_norm


def _labels(embedding: FloatArray | None, run: Run, setting: Setting) -> NDArray[np.int_]:
    """Return labels of an embedding, or of the samples by a method of scikit-learn."""
    key, how = _graph_key(run.method), run.method.assign_labels
    if run.method.estimator == "SpectralClustering" and key is not None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Graph is not fully connected")
            options = {"n_clusters": setting.classes, "assign_labels": how, "random_state": run.seed}
            return np.asarray(spectral_clustering(setting.graphs[key], **options))
    rows = normalize(setting.X.reshape(len(setting.X), -1)) if embedding is None else embedding
    labels = assign(rows, setting.classes, how, run.seed, run.kmeans_starts)
    if key is None or not run.method.refine_labels:
        return labels
    return most_modular(setting.graphs[key], labels, setting.classes, run.seed)


def _write_pictures(target: Path, model: Any, setting: Setting) -> None:
    """Write the arrays that a report draws: components, a few reconstructions, the embedding and the objective."""
    first = np.unique(setting.y, return_index=True)[1][:_MAX_PICTURES]  # one sample of each class
    reconstructions = model.embedding_[first] @ model.components_
    with atomic_path(target) as path:
        np.savez_compressed(
            path,
            components=model.components_.astype(np.float32),
            samples=setting.X[first].reshape(len(first), -1).astype(np.float32),
            reconstructions=reconstructions.astype(np.float32),
            embedding=model.embedding_.astype(np.float32),
            objective_curve=model.objective_curve_,
            sample_shape=np.array(setting.X.shape[1:]),
            labels=setting.y,
        )
