"""A table as one TOML file describes it: data set, methods, their settings, the figures in print."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gwntf.core import DataError, InputError
from gwntf.evaluation import SCORES

DATASETS = ("coil20", "pie_pose27", "digits")
ESTIMATORS = ("KMeans", "SpectralClustering", "NMF", "GNMF", "SDNMF", "NCP", "GNCP", "GWNTF", "SWIFT")
FOREIGN = ("KMeans", "SpectralClustering")
"""Methods of scikit-learn, to which the defaults of the table do not apply."""

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

    def only(self, names: list[str] | None) -> Table:
        """Return the table with some methods only, in the table's order."""
        if names is None:
            return self
        known = [method.name for method in self.methods]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise InputError("methods", ", ".join(unknown), f"some of {', '.join(known)}")
        kept = tuple(method for method in self.methods if method.name in names)
        return Table(self.name, self.title, self.dataset, self.runs, self.kmeans_starts, self.score_at, kept)


def find_table(name: str) -> Path:
    """Return the file of a table given by path or by name.

    A name is looked for in ``paper/`` of the working folder, then among the tables that come with the
    library.
    """
    path = Path(name)
    if path.suffix == ".toml":
        if path.is_file():
            return path
        raise DataError(f"there is no table {path}")
    here = Path(__file__).resolve().parent
    folders = [Path("paper"), here / "tables", here.parents[2] / "paper"]
    for folder in folders:
        if (folder / f"{name}.toml").is_file():
            return folder / f"{name}.toml"
    known = sorted({file.stem for folder in folders for file in folder.glob("*.toml")})
    raise InputError("table", repr(name), f"a path to a TOML file, or one of {', '.join(known)}")


def load_table(path: Path) -> Table:
    """Read and check a table."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not TOML: {error}") from error
    _check_keys(content, _TABLE_KEYS, {"dataset", "method"}, str(path))
    if content["dataset"] not in DATASETS:
        raise InputError(f"{path}: dataset", repr(content["dataset"]), f"one of {', '.join(DATASETS)}")
    defaults = content.get("defaults", {})
    return Table(
        name=path.stem,
        title=content.get("title", path.stem),
        dataset=content["dataset"],
        runs=content.get("runs", 10),
        kmeans_starts=content.get("kmeans_starts", 20),
        score_at=tuple(content.get("score_at", ())),
        methods=tuple(_method(entry, defaults, path) for entry in content["method"]),
    )


def _method(entry: Mapping[str, Any], defaults: Mapping[str, Any], path: Path) -> Method:
    where = f"{path}: method {entry.get('name', '?')}"
    _check_keys(entry, _METHOD_KEYS, {"name"}, where)
    estimator = entry.get("estimator", entry["name"])
    if estimator not in ESTIMATORS:
        raise InputError(f"{where}: estimator", repr(estimator), f"one of {', '.join(ESTIMATORS)}")
    expected = entry.get("expected", {})
    _check_keys(expected, set(SCORES), set(), f"{where}: expected")
    foreign = estimator in FOREIGN
    params = {**({} if foreign else defaults), **entry.get("params", {})}
    return Method(entry["name"], estimator, params, expected)


def _check_keys(content: Mapping[str, Any], known: set[str], needed: set[str], where: str) -> None:
    extra, lacking = set(content) - known, needed - set(content)
    if extra or lacking:
        given = f"unknown {sorted(extra)}" if extra else f"no {sorted(lacking)}"
        raise InputError(where, given, f"keys among {sorted(known)}")
