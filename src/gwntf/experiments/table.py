"""A table as one TOML file describes it: data set, methods, their settings, the figures in print."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gwntf import estimators
from gwntf.clustering import ASSIGN_LABELS
from gwntf.core import DataError, InputError
from gwntf.evaluation import SCORES

DATASETS = ("coil20", "pie_pose27", "digits")
METHODS = ("NMF", "GNMF", "SDNMF", "NCP", "GNCP", "GWNTF", "SWIFT")
FOREIGN: Mapping[str, tuple[str, ...]] = {
    "KMeans": (),
    "SpectralClustering": ("n_neighbors", "graph_weight", "graph_metric", "assign_labels"),
}
"""Methods of scikit-learn with the parameters they take; the defaults of the table do not apply to them."""

RESERVED = ("graph", "callbacks", "progress", "n_clusters", "random_state")
"""Parameters that the runner sets itself."""

_TABLE_KEYS = {"title", "dataset", "runs", "kmeans_starts", "score_at", "defaults", "method"}
_METHOD_KEYS = {"name", "estimator", "params", "expected"}


@dataclass(frozen=True)
class Method:
    """A row of the table.

    Attributes
    ----------
    name : str
        As shown.
    estimator : str
        Class of the library, or scikit-learn's "KMeans" on the samples or "SpectralClustering" on their graph.
    params : mapping
        Constructor parameters, table-wide defaults included.
    expected : mapping
        Figures in print, in percent, by score; may be empty.
    """

    name: str
    estimator: str
    params: Mapping[str, Any]
    expected: Mapping[str, float]

    def build(self) -> Any:
        """Return the estimator with its parameters, or None for a method of scikit-learn."""
        if self.estimator in FOREIGN:
            return None
        return getattr(estimators, self.estimator)(**self.params)


@dataclass(frozen=True)
class Table:
    """A data set and the methods compared on it.

    Attributes
    ----------
    kmeans_starts : int
        Restarts of every k-means.
    score_at : tuple of int
        Outer iterations after which the embedding is scored as well.
    """

    name: str
    title: str
    dataset: str
    runs: int
    kmeans_starts: int
    score_at: tuple[int, ...]
    methods: tuple[Method, ...]

    def only(self, names: Sequence[str] | None) -> Table:
        """Return the table with some methods only, in the table's order and under a name of its own."""
        if names is None:
            return self
        known = [method.name for method in self.methods]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise InputError("methods", ", ".join(unknown), f"some of {', '.join(known)}")
        kept = tuple(method for method in self.methods if method.name in names)
        return replace(self, name=f"{self.name}-selected", methods=kept)


def known_tables() -> dict[str, Path]:
    """Return the tables that come with the library, by name."""
    here = Path(__file__).resolve().parent
    folders = [here.parents[2] / "paper", here / "tables"]
    return {file.stem: file for folder in folders for file in sorted(folder.glob("*.toml"))}


def find_table(name: str) -> Path:
    """Return the file of a table given by its path (ending in .toml) or by the name of one that comes along."""
    path = Path(name)
    if path.suffix == ".toml":
        if path.is_file():
            return path
        raise DataError(f"there is no table {path}")
    tables = known_tables()
    if name not in tables:
        raise InputError("table", repr(name), f"a path to a TOML file, or one of {', '.join(tables)}")
    return tables[name]


def load_table(path: Path) -> Table:
    """Read a table and check all of it, parameters of the estimators included."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not TOML: {error}") from error
    _check_keys(content, _TABLE_KEYS, {"dataset", "method"}, str(path))
    if content["dataset"] not in DATASETS:
        raise InputError(f"{path}: dataset", repr(content["dataset"]), f"one of {', '.join(DATASETS)}")
    defaults = _mapping(content.get("defaults", {}), f"{path}: defaults")
    score_at = content.get("score_at", [])
    if not isinstance(score_at, list) or not all(_is_positive(place) for place in score_at):
        raise InputError(f"{path}: score_at", repr(score_at), "a list of whole numbers of at least 1")
    return Table(
        name=path.stem,
        title=str(content.get("title", path.stem)),
        dataset=content["dataset"],
        runs=_positive(content.get("runs", 10), f"{path}: runs"),
        kmeans_starts=_positive(content.get("kmeans_starts", 20), f"{path}: kmeans_starts"),
        score_at=tuple(score_at),
        methods=_methods(content["method"], defaults, bool(score_at), path),
    )


def _methods(entries: Any, defaults: Mapping[str, Any], scored: bool, path: Path) -> tuple[Method, ...]:
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{path}: method", type(entries).__name__, "one or more [[method]] tables")
    methods = tuple(_method(entry, defaults, scored, path) for entry in entries)
    name, times = Counter(method.name for method in methods).most_common(1)[0]
    if times > 1:
        raise InputError(
            f"{path}: method", f"the name {name!r} {times} times", "a name of its own for every row"
        )
    return methods


def _method(entry: Mapping[str, Any], defaults: Mapping[str, Any], scored: bool, path: Path) -> Method:
    where = f"{path}: method {entry.get('name', '?')}"
    _check_keys(entry, _METHOD_KEYS, {"name"}, where)
    estimator = entry.get("estimator", entry["name"])
    if estimator not in (*FOREIGN, *METHODS):
        raise InputError(f"{where}: estimator", repr(estimator), f"one of {', '.join((*FOREIGN, *METHODS))}")
    expected = _mapping(entry.get("expected", {}), f"{where}: expected")
    _check_keys(expected, set(SCORES), set(), f"{where}: expected")
    own = _mapping(entry.get("params", {}), f"{where}: params")
    params = own if estimator in FOREIGN else {**defaults, **own}
    method = Method(str(entry["name"]), estimator, _with_none(params), expected)
    _check_params(method, scored, where)
    return method


def _check_params(method: Method, scored: bool, where: str) -> None:
    """Build the estimator and let it check its parameters, before anything runs."""
    for name in RESERVED:
        if name in method.params:
            raise InputError(f"{where}: {name}", "a value", "none: the runner sets it")
    if method.estimator in FOREIGN:
        _check_keys(method.params, set(FOREIGN[method.estimator]), set(), f"{where}: params")
        how = method.params.get("assign_labels", "discretize")
        if how not in ASSIGN_LABELS:
            raise InputError(f"{where}: assign_labels", repr(how), f"one of {', '.join(ASSIGN_LABELS)}")
        return
    try:
        method.build()._validate_params()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{where}: params", f"something wrong ({error})", "parameters of the estimator"
        ) from error
    if scored and method.params.get("n_init", 1) > 1:
        raise InputError(
            f"{where}: n_init", repr(method.params["n_init"]), "1 where scores are taken on the way"
        )


def _with_none(params: Mapping[str, Any]) -> dict[str, Any]:
    """Read "none" among costs as None, which TOML cannot write."""
    costs = params.get("costs")
    if not isinstance(costs, list):
        return dict(params)
    return {**params, "costs": [None if cost == "none" else cost for cost in costs]}


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(where, type(value).__name__, "a table of names and values")
    return value


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _positive(value: Any, where: str) -> int:
    if not _is_positive(value):
        raise InputError(where, repr(value), "a whole number of at least 1")
    return int(value)


def _check_keys(content: Mapping[str, Any], known: set[str], needed: set[str], where: str) -> None:
    extra, lacking = set(content) - known, needed - set(content)
    if extra or lacking:
        given = f"unknown {sorted(extra)}" if extra else f"no {sorted(lacking)}"
        raise InputError(where, given, f"keys among {sorted(known)}")
