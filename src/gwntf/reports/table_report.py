"""The report of a table: figures beside the paper's, charts, and a look inside every method."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from gwntf.evaluation import SCORES
from gwntf.experiments import Cell, TableSummary
from gwntf.plots import flatten_embedding, plot_bars, plot_curves, plot_embedding, plot_images
from gwntf.reports.page import cell, html_table, page, paragraph, picture, preformatted, section

Pictures = Mapping[str, Mapping[str, Any]]


def table_report(summary: TableSummary, pictures: Pictures) -> str:
    """Return the report as one self-contained HTML document.

    Parameters
    ----------
    summary : TableSummary
        The table.
    pictures : mapping of method to arrays
        What was kept of the first run of each factorization; methods may be absent.
    """
    sections = [
        paragraph(f"{summary.legend} Each k-means had {summary.table.kmeans_starts} restarts."),
        section("Scores", _scores(summary), paragraph(_LEGEND)),
        section("Charts", picture(lambda figure: _bars(figure, summary), _BARS, size=(10, 7))),
    ]
    if summary.on_the_way:
        drawn = picture(lambda figure: _on_the_way(figure, summary), _ON_THE_WAY, size=(10, 6))
        sections.append(section("Scores on the way", drawn))
    if pictures:
        drawn = picture(lambda figure: _objectives(figure, pictures), _OBJECTIVES, size=(9, 4))
        sections.append(section("Objective", drawn))
        sections.append(section("Inside the methods", *[_inside(name, pictures[name]) for name in pictures]))
    sections.append(section("Settings and versions", *_settings(summary)))
    return page(summary.table.title, sections)


def summary_chart(summary: TableSummary) -> Any:
    """Return a figure of the table: scores on the way where they were taken, else bars."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6.5), layout="constrained")
    draw = _on_the_way if summary.on_the_way else _bars
    draw(figure, summary)
    figure.suptitle(summary.table.title.replace("$", "\\$"))
    return figure


_LEGEND = (
    "Mean and standard deviation of a run; below it the figure in print and our difference from it. The best "
    "mean of each column is marked."
)
_BARS = "Means (bars), standard deviation of a run (whiskers) and the figure in print (red lines)."
_ON_THE_WAY = "Scores of the embedding after so many outer iterations, means over the runs."
_OBJECTIVES = "Objective of the first run, as a share of its value at the start."


def _scores(summary: TableSummary) -> str:
    best = {score: summary.best(score) for score in SCORES}
    rows = [
        [
            cell(method),
            *[_score_cell(one, best[score] == method) for score, one in cells.items()],
            cell(f"{summary.seconds[method]:.1f}"),
        ]
        for method, cells in summary.rows.items()
    ]
    return html_table(["method", *SCORES, "seconds per run"], rows)


def _score_cell(one: Cell, best: bool) -> str:
    note = "" if one.paper is None else f"paper {one.paper:.2f}, {one.difference:+.2f}"
    return cell(f"{one.mean:.2f} ± {one.deviation:.2f}", note, best=best)


def _bars(figure: Any, summary: TableSummary) -> None:
    for ax, score in zip(figure.subplots(2, 2).ravel(), SCORES, strict=True):
        cells = {method: row[score] for method, row in summary.rows.items()}
        plot_bars(
            {method: one.mean for method, one in cells.items()},
            deviations={method: one.deviation for method, one in cells.items()},
            references={method: one.paper for method, one in cells.items() if one.paper is not None},
            ax=ax,
        )
        ax.set_title(score)


def _on_the_way(figure: Any, summary: TableSummary) -> None:
    for ax, score in zip(figure.subplots(2, 2).ravel(), SCORES, strict=True):
        curves = {method: scores[score] for method, scores in summary.on_the_way.items()}
        plot_curves(curves, x_label="outer iteration", y_label=score, ax=ax)
        ax.set_xscale("log")


def _objectives(figure: Any, pictures: Pictures) -> None:
    curves = {}
    for name, arrays in pictures.items():
        curve = arrays["objective_curve"]
        curves[name] = [(float(k), float(value / abs(curve[0]))) for k, value in enumerate(curve)]
    lowest = min(value for points in curves.values() for _, value in points)
    plot_curves(
        curves,
        x_label="outer iteration",
        y_label="F / F at the start",
        logarithmic=lowest > 0,
        ax=figure.subplots(),
    )


def _inside(name: str, arrays: Mapping[str, Any]) -> str:
    shape = tuple(int(size) for size in arrays["sample_shape"])

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2, width_ratios=[1.3, 1])
        images = [arrays[part].reshape(-1, *shape) for part in ("components", "samples", "reconstructions")]
        grid = left.get_subplotspec().subgridspec(2, 1, height_ratios=[max(1, len(images[0]) / 20 + 1), 2])
        left.remove()
        top, bottom = (figure.add_subplot(place) for place in grid)
        if len(shape) == 2:
            plot_images(images[0][:40], ax=top).set_title("components")
            pairs = np.concatenate(images[1:])
            plot_images(pairs, columns=len(images[1]), ax=bottom).set_title("samples and their models")
        else:
            top.set_axis_off()
            bottom.set_axis_off()
        plot_embedding(arrays["embedding"], arrays["labels"], projection=flatten_embedding, ax=right)
        right.set_title("embedding (t-SNE), coloured by class")

    caption = f"{name}, first run: up to 40 components, ten samples above their models, the embedding."
    return picture(draw, caption, size=(11, 5))


def _settings(summary: TableSummary) -> list[str]:
    content = summary.to_json()
    methods = {name: entry["params"] for name, entry in content["methods"].items()}
    return [
        preformatted(json.dumps(methods, indent=1, sort_keys=True)),
        preformatted("\n".join(f"{name} {value}" for name, value in content["environment"].items())),
    ]
