"""From runs to a table: means, deviations and differences from the figures in print."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from gwntf._version import __version__
from gwntf.evaluation import SCORES
from gwntf.experiments.runner import RunResult
from gwntf.experiments.table import Table


@dataclass(frozen=True)
class Cell:
    """One score of one method, in percent.

    Attributes
    ----------
    mean, deviation : float
        Over the runs; the deviation is that of a single run.
    paper : float or None
        The figure in print.
    """

    mean: float
    deviation: float
    paper: float | None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None else self.mean - self.paper


@dataclass(frozen=True)
class TableSummary:
    """A table with its cells filled in.

    Attributes
    ----------
    rows : mapping
        Method to score to cell.
    seconds : mapping
        Method to the average time of a run.
    runs : int
        Runs per method.
    on_the_way : mapping
        Method to score to a list of (iteration, mean in percent).
    environment : mapping
        Versions and machine.
    """

    table: Table
    rows: Mapping[str, Mapping[str, Cell]]
    seconds: Mapping[str, float]
    runs: int
    on_the_way: Mapping[str, Mapping[str, list[tuple[int, float]]]]
    environment: Mapping[str, str]

    def best(self, score: str) -> str:
        """Return the method with the highest mean."""
        return max(self.rows, key=lambda method: self.rows[method][score].mean)

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {
            "table": self.table.name,
            "title": self.table.title,
            "dataset": self.table.dataset,
            "runs": self.runs,
            "kmeans_starts": self.table.kmeans_starts,
            "environment": dict(self.environment),
            "methods": {
                method.name: {
                    "estimator": method.estimator,
                    "params": dict(method.params),
                    "seconds_per_run": round(self.seconds[method.name], 3),
                    "scores": {
                        score: {
                            "mean": round(cell.mean, 2),
                            "deviation": round(cell.deviation, 2),
                            "paper": cell.paper,
                        }
                        for score, cell in self.rows[method.name].items()
                    },
                    "on_the_way": self.on_the_way.get(method.name, {}),
                }
                for method in self.table.methods
            },
        }

    def to_markdown(self) -> str:
        """Return a table of mean ± deviation (paper, difference)."""
        head = ["method", *SCORES, "seconds per run"]
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for method, cells in self.rows.items():
            shown = [_markdown(cell, self.best(score) == method) for score, cell in cells.items()]
            lines.append("| " + " | ".join([method, *shown, f"{self.seconds[method]:.1f}"]) + " |")
        return "\n".join(lines) + "\n"


def summarise(table: Table, results: Sequence[RunResult]) -> TableSummary:
    """Average the runs of every method."""
    rows, seconds, on_the_way = {}, {}, {}
    runs = 0
    for method in table.methods:
        own = [result for result in results if result.method == method.name]
        runs = len(own)
        rows[method.name] = {
            score: _cell([result.scores[score] for result in own], method.expected.get(score))
            for score in SCORES
        }
        seconds[method.name] = float(np.mean([result.seconds for result in own]))
        if own[0].on_the_way:
            on_the_way[method.name] = {score: _curve(own, score) for score in SCORES}
    return TableSummary(table, rows, seconds, runs, on_the_way, environment())


def environment() -> dict[str, str]:
    """Versions and machine, for the record."""
    found = {"gwntf": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for package in ("numpy", "scipy", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def _cell(values: Sequence[float], paper: float | None) -> Cell:
    percent = 100 * np.asarray(values)
    deviation = float(percent.std(ddof=1)) if len(percent) > 1 else 0.0
    return Cell(float(percent.mean()), deviation, paper)


def _curve(results: Sequence[RunResult], score: str) -> list[tuple[int, float]]:
    iterations = sorted(int(text) for text in results[0].on_the_way)
    return [
        (iteration, float(np.mean([100 * result.on_the_way[str(iteration)][score] for result in results])))
        for iteration in iterations
    ]


def _markdown(cell: Cell, best: bool) -> str:
    mean = f"**{cell.mean:.1f}**" if best else f"{cell.mean:.1f}"
    text = f"{mean} ± {cell.deviation:.1f}"
    if cell.paper is None:
        return text
    return f"{text} ({cell.paper:.1f}, {cell.difference:+.1f})"
