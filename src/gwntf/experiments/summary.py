"""The scores of a table: means, deviations and differences from the published scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gwntf.evaluation import SCORES
from gwntf.experiments.runs import RunResult
from gwntf.experiments.table import Table


@dataclass(frozen=True)
class Cell:
    """One score of one method, in percent."""

    mean: float
    deviation: float  # of a single run
    paper: float | None  # the published score

    @property
    def difference(self) -> float | None:
        """Mean minus the published score."""
        return None if self.paper is None else self.mean - self.paper

    def text(self, mark: str) -> str:
        """Return mean, between marks, and deviation as text, with the published score and the difference, if any."""
        text = f"{mark}{self.mean:.1f}{mark} ± {self.deviation:.1f}"
        return text if self.paper is None else f"{text} ({self.paper:.1f}, {self.difference:+.1f})"


@dataclass(frozen=True)
class TableSummary:
    """A table with its scores; all mappings but the last have the methods as keys."""

    table: Table
    rows: Mapping[str, Mapping[str, Cell]]  # cells by score
    seconds: Mapping[str, float]  # mean time of a run
    runs: int  # per method
    on_the_way: Mapping[str, Mapping[str, list[tuple[int, float]]]]  # (iteration, mean in percent) by score
    environment: Mapping[str, str]  # versions and machine of the runs

    def best(self, score: str) -> str:
        """Return the method with the highest mean."""
        return max(self.rows, key=lambda method: self.rows[method][score].mean)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "table": self.table.name,
            "title": self.table.title,
            "dataset": self.table.dataset,
            "runs": self.runs,
            "kmeans_starts": self.table.kmeans_starts,
            "environment": dict(self.environment),
            "methods": {
                method.name: {
                    **method.settings(),
                    "seconds_per_run": round(self.seconds[method.name], 3),
                    "scores": {
                        score: {"mean": round(cell.mean, 2), "deviation": round(cell.deviation, 2), "paper": cell.paper}
                        for score, cell in self.rows[method.name].items()
                    },
                    "on_the_way": self.on_the_way.get(method.name, {}),
                }
                for method in self.table.methods
            },
        }

    @property
    def legend(self) -> str:
        """Sentence that explains the numbers."""
        runs = f"{self.runs} runs per method" if self.runs > 1 else "One run per method"
        printed = any(cell.paper is not None for row in self.rows.values() for cell in row.values())
        compared = " (the paper's figure, our difference)" if printed else ""
        return f"{runs}; mean ± standard deviation of a run{compared}, in percent."

    def to_markdown(self) -> str:
        """Return the table in Markdown, the best means in bold."""
        rows = [[text.replace("|", "\\|") for text in cells] for cells in self._cells(bold="**")]
        lines = ["| " + " | ".join(cells) + " |" for cells in rows]
        return "\n".join([lines[0], "|" + "---|" * (len(SCORES) + 2), *lines[1:]]) + "\n"

    def to_text(self) -> str:
        """Return the table in aligned columns, the best means starred."""
        rows = self._cells(bold="*")
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join(line.rstrip() for line in lines) + "\n"

    def _cells(self, bold: str) -> list[list[str]]:
        best = {score: self.best(score) for score in SCORES}
        rows = [["method", *SCORES, "seconds per run"]]
        for method, cells in self.rows.items():
            texts = [cell.text(bold if best[score] == method else "") for score, cell in cells.items()]
            rows.append([method, *texts, f"{self.seconds[method]:.1f}"])
        return rows


def summarise(table: Table, results: Sequence[RunResult]) -> TableSummary:
    """Average the runs of every method."""
    rows, seconds, on_the_way = {}, {}, {}
    for method in table.methods:
        own = [result for result in results if result.method == method.name]
        rows[method.name] = {
            score: _cell([result.scores[score] for result in own], method.expected.get(score)) for score in SCORES
        }
        seconds[method.name] = float(np.mean([result.seconds for result in own]))
        if own[0].on_the_way:
            on_the_way[method.name] = {score: _curve(own, score) for score in SCORES}
    names = sorted({name for result in results for name in result.environment})
    environment = {  # where runs differ, all values that occur
        name: ", ".join(sorted({result.environment.get(name, "unknown") for result in results})) for name in names
    }
    runs = len(results) // max(1, len(table.methods))
    return TableSummary(table, rows, seconds, runs, on_the_way, environment)


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
