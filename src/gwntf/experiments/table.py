"""A table as described by a TOML file: data set, methods, their settings, the published scores."""

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from gwntf import estimators
from gwntf.clustering import ASSIGN_LABELS
from gwntf.core import DataError, InputError
from gwntf.estimators import TransportOptions
from gwntf.estimators.base import check_parameters
from gwntf.evaluation import SCORES
from gwntf.geometry import KNNGraph
from gwntf.losses import Plain

DATASETS = ("coil20", "pie_pose27", "digits")
METHODS = ("NMF", "GNMF", "SDNMF", "NCP", "GNCP", "GWNTF", "SWIFT")
FOREIGN: Mapping[str, tuple[str, ...]] = {"KMeans": (), "SpectralClustering": ("graph",)}
"""Methods of scikit-learn, on the samples or on their graph, with their parameters; a table's defaults do not apply."""

RESERVED = ("callbacks", "random_state")  # parameters that the runner sets itself

NESTED: Mapping[str, Any] = {"graph": KNNGraph, "transport": TransportOptions}
"""Parameters that are inline tables in TOML, and the class that each is built with."""

_TABLE_KEYS = {"title", "dataset", "runs", "kmeans_starts", "score_at", "defaults", "plain", "method"}
_LABEL_KEYS = {"assign_labels", "refine_labels"}
_METHOD_KEYS = {"name", "estimator", "params", "plain", "expected", *_LABEL_KEYS}


@dataclass(frozen=True)
class Method:
    """A row of the table."""

    name: str
    estimator: str  # a class of the library, or a key of FOREIGN
    params: Mapping[str, Any]  # of the constructor, as in the file, with the table-wide defaults
    expected: Mapping[str, float]  # published scores in percent, by name; may be empty
    assign_labels: str = "kmeans"  # how the embedding is labelled
    refine_labels: bool = False  # whether the labels are then refined on the graph
    plain: Mapping[str, Any] | None = None  # parameters of the scheme of the papers; None is that of the library

    def build(self) -> Any:
        """Return the estimator with its parameters, or None for a method of scikit-learn."""
        if self.estimator in FOREIGN:
            return None
        model = getattr(estimators, self.estimator)(**_built(self.params))
        model._plain = None if self.plain is None else Plain(**self.plain)
        return model

    def graph(self) -> KNNGraph | None:
        """Return the `KNNGraph` of the method, or None if it has no graph."""
        if self.estimator == "KMeans":
            return None
        model = self.build()
        found = _built(self.params).get("graph", "knn") if model is None else getattr(model, "graph", None)
        return KNNGraph() if isinstance(found, str) else found

    def settings(self) -> dict[str, Any]:
        """Return the estimator, its parameters and the labelling, for JSON."""
        return {
            "estimator": self.estimator,
            "params": dict(self.params),
            "assign_labels": self.assign_labels,
            "refine_labels": self.refine_labels,
            "plain": None if self.plain is None else dict(self.plain),
        }


def _built(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with inline tables replaced by the objects that they describe."""
    return {
        name: NESTED[name](**value) if name in NESTED and isinstance(value, Mapping) else value
        for name, value in params.items()
    }


@dataclass(frozen=True)
class Table:
    """A data set and the methods compared on it."""

    name: str
    title: str
    dataset: str
    runs: int
    kmeans_starts: int  # restarts of every k-means
    score_at: tuple[int, ...]  # outer iterations after which the embedding is scored as well
    methods: tuple[Method, ...]

    def only(self, names: Sequence[str] | None) -> "Table":
        """Return a table with some of the methods, in the same order and under another name."""
        if names is None:
            return self
        known = [method.name for method in self.methods]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise InputError("methods", ", ".join(unknown), f"some of {', '.join(known)}")
        kept = tuple(method for method in self.methods if method.name in names)
        return replace(self, name=f"{self.name}-selected", methods=kept)


def known_tables() -> dict[str, Path]:
    """Return the tables that are distributed with the library, by name."""
    here = Path(__file__).resolve().parent
    folders = [here.parents[2] / "paper", here / "tables"]
    return {file.stem: file for folder in folders for file in sorted(folder.glob("*.toml"))}


def find_table(name: str) -> Path:
    """Return the file of a table given by its path (ending in .toml) or by its name in `known_tables`."""
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise DataError(f"there is no table {path}")
        return path
    tables = known_tables()
    if name not in tables:
        raise InputError("table", repr(name), f"a path to a TOML file, or one of {', '.join(tables)}")
    return tables[name]


def load_table(path: Path) -> Table:
    """Read a table and check all of it, including the parameters of the estimators."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not TOML: {error}") from error
    _check_keys(content, _TABLE_KEYS, {"dataset", "method"}, str(path))
    dataset, score_at = content["dataset"], content.get("score_at", [])
    runs, kmeans_starts = content.get("runs", 10), content.get("kmeans_starts", 20)
    _check(dataset in DATASETS, f"{path}: dataset", repr(dataset), f"one of {', '.join(DATASETS)}")
    valid = isinstance(score_at, list) and all(map(_is_positive, score_at))
    _check(valid, f"{path}: score_at", repr(score_at), "a list of whole numbers of at least 1")
    for name, value in (("runs", runs), ("kmeans_starts", kmeans_starts)):
        _check(_is_positive(value), f"{path}: {name}", repr(value), "a whole number of at least 1")
    defaults = _mapping(content, "defaults", str(path))
    entries = content["method"]
    valid = isinstance(entries, list) and bool(entries) and all(isinstance(entry, dict) for entry in entries)
    _check(valid, f"{path}: method", type(entries).__name__, "one or more [[method]] tables")
    plain = _mapping(content, "plain", str(path)) if "plain" in content else None
    methods = tuple(_method(entry, defaults, plain, bool(score_at), path) for entry in entries)
    name, times = Counter(method.name for method in methods).most_common(1)[0]
    _check(times == 1, f"{path}: method", f"the name {name!r} {times} times", "a different name for every row")
    title = str(content.get("title", path.stem))
    return Table(path.stem, title, dataset, runs, kmeans_starts, tuple(score_at), methods)


def _method(
    entry: Mapping[str, Any], defaults: Mapping[str, Any], plain: Mapping[str, Any] | None, scored: bool, path: Path
) -> Method:
    where = f"{path}: method {entry.get('name', '?')}"
    _check_keys(entry, _METHOD_KEYS, {"name"}, where)
    estimator, known = entry.get("estimator", entry["name"]), (*FOREIGN, *METHODS)
    _check(estimator in known, f"{where}: estimator", repr(estimator), f"one of {', '.join(known)}")
    expected = _mapping(entry, "expected", where)
    _check_keys(expected, set(SCORES), set(), f"{where}: expected")
    params = dict(_mapping(entry, "params", where))
    if estimator not in FOREIGN:
        params = {**defaults, **params}
    if isinstance(params.get("costs"), list):  # TOML has no None
        params["costs"] = [None if cost == "none" else cost for cost in params["costs"]]
    if params.get("graph") == "none":
        params["graph"] = None
    usual = "discretize" if estimator == "SpectralClustering" else "kmeans"
    labelling = entry.get("assign_labels", usual), entry.get("refine_labels", False)
    if "plain" in entry:
        plain = {**(plain or {}), **_mapping(entry, "plain", where)}
    _check_keys(plain or {}, {field.name for field in fields(Plain)}, set(), f"{where}: plain")
    method = Method(str(entry["name"]), estimator, params, expected, *labelling, plain)
    _check_params(method, scored, where)
    _check_labelling(method, entry, where)
    return method


def _check_params(method: Method, scored: bool, where: str) -> None:
    """Build the estimator and let it check its parameters, before anything runs."""
    params = method.params
    for name in RESERVED:
        _check(name not in params, f"{where}: {name}", "a value", "none: the runner sets it")
    if method.estimator in FOREIGN:
        _check_keys(params, set(FOREIGN[method.estimator]), set(), f"{where}: params")
    for name in NESTED:
        named = name == "graph" and (params.get(name) == "knn" or method.estimator not in FOREIGN)
        valid = name not in params or isinstance(params[name], dict) or (named and params[name] in ("knn", None))
        _check(valid, f"{where}: {name}", repr(params.get(name)), "an inline table of its parameters")
    try:
        for name, value in _built(params).items():
            if name in NESTED and isinstance(value, NESTED[name]):
                value.check()
        if method.estimator not in FOREIGN:
            check_parameters(method.build())
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: params", f"invalid values ({error})", "parameters of the estimator") from error
    starts = params.get("n_init", 1)
    _check(not scored or starts <= 1, f"{where}: n_init", repr(starts), "1 where score_at is given")


def _check_labelling(method: Method, entry: Mapping[str, Any], where: str) -> None:
    allowed = {"KMeans": set(), "SpectralClustering": {"assign_labels"}}.get(method.estimator, _LABEL_KEYS)
    unknown = sorted(_LABEL_KEYS & set(entry) - allowed)
    _check(not unknown, where, f"{', '.join(unknown)} for {method.estimator}", "none of these keys")
    how, refined = method.assign_labels, method.refine_labels
    _check(how in ASSIGN_LABELS, f"{where}: assign_labels", repr(how), f"one of {', '.join(ASSIGN_LABELS)}")
    _check(isinstance(refined, bool), f"{where}: refine_labels", repr(refined), "true or false")
    _check(not refined or method.graph() is not None, f"{where}: refine_labels", "true without a graph", "false")


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _mapping(content: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value: Mapping[str, Any] = content.get(key, {})
    _check(isinstance(value, dict), f"{where}: {key}", type(value).__name__, "a table of names and values")
    return value


def _check_keys(content: Mapping[str, Any], known: set[str], needed: set[str], where: str) -> None:
    unknown, missing = sorted(set(content) - known), sorted(needed - set(content))
    given = f"unknown {unknown}" if unknown else f"no {missing}"
    _check(not unknown and not missing, where, given, f"keys among {sorted(known)}")


def _check(valid: bool, argument: str, given: str, allowed: str) -> None:
    if not valid:
        raise InputError(argument, given, allowed)
