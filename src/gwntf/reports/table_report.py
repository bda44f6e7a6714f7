"""The report of a table: scores with the published ones, charts, and a model of every method."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from gwntf.evaluation import SCORES
from gwntf.experiments import TableSummary
from gwntf.plots import flatten_embedding, plot_bars, plot_curves, plot_embedding, plot_images
from gwntf.reports.page import cell, html_table, new_figure, page, paragraph, picture, preformatted, section

Pictures = Mapping[str, Mapping[str, Any]]


def table_report(summary: TableSummary, pictures: Pictures) -> str:
    """Return the report as one self-contained HTML document.

    Parameters
    ----------
    summary : TableSummary
        The table.
    pictures : mapping of method to arrays
        Arrays of the first run of each factorization (`experiments.runner.first_pictures`); methods may be missing.
    """
    sections = [
        paragraph(f"{summary.legend} Each k-means had {summary.table.kmeans_starts} restarts."),
        section("Scores", _scores(summary), paragraph(_LEGEND)),
        section("Charts", picture(_bars(new_figure(10, 7), summary), _BARS)),
    ]
    if summary.on_the_way:
        curves = picture(_score_curves(new_figure(10, 6), summary), _SCORE_CURVES)
        sections.append(section("Scores during the fit", curves))
    if pictures:
        sections.append(section("Objective", picture(_objectives(pictures), _OBJECTIVES)))
        sections.append(section("Models of the methods", *[_inside(name, pictures[name]) for name in pictures]))
    methods = {method.name: method.settings() for method in summary.table.methods}
    settings = preformatted(json.dumps(methods, indent=1, sort_keys=True))
    versions = preformatted("\n".join(f"{name} {value}" for name, value in summary.environment.items()))
    sections.append(section("Settings and versions", settings, versions))
    return page(summary.table.title, sections)


def summary_chart(summary: TableSummary) -> Any:
    """Return a figure of the table: scores during the fit if there are any, otherwise bars."""
    draw = _score_curves if summary.on_the_way else _bars
    figure = draw(new_figure(10, 6.5), summary)
    figure.suptitle(summary.table.title.replace("$", "\\$"))
    return figure


_LEGEND = (
    "Mean and standard deviation over the runs; below it the published score and the difference from it. The best "
    "mean of each column is highlighted."
)
_BARS = "Means (bars), standard deviations over the runs (error bars) and published scores (red lines)."
_SCORE_CURVES = "Scores of the embedding by outer iteration, means over the runs."
_OBJECTIVES = "Objective of the first run, relative to its value at the start."


def _scores(summary: TableSummary) -> str:
    best = {score: summary.best(score) for score in SCORES}
    rows = []
    for method, cells in summary.rows.items():
        row = [cell(method)]
        for score, one in cells.items():
            note = "" if one.paper is None else f"paper {one.paper:.2f}, {one.difference:+.2f}"
            row.append(cell(f"{one.mean:.2f} ± {one.deviation:.2f}", note, best=best[score] == method))
        rows.append([*row, cell(f"{summary.seconds[method]:.1f}")])
    return html_table(["method", *SCORES, "seconds per run"], rows)


def _bars(figure: Any, summary: TableSummary) -> Any:
    for ax, score in zip(figure.subplots(2, 2).ravel(), SCORES, strict=True):
        cells = {method: row[score] for method, row in summary.rows.items()}
        plot_bars(
            {method: one.mean for method, one in cells.items()},
            deviations={method: one.deviation for method, one in cells.items()},
            references={method: one.paper for method, one in cells.items() if one.paper is not None},
            ax=ax,
        )
        ax.set_title(score)
    return figure


def _score_curves(figure: Any, summary: TableSummary) -> Any:
    for ax, score in zip(figure.subplots(2, 2).ravel(), SCORES, strict=True):
        curves = {method: scores[score] for method, scores in summary.on_the_way.items()}
        plot_curves(curves, x_label="outer iteration", y_label=score, ax=ax)
        ax.set_xscale("log")
    return figure


def _objectives(pictures: Pictures) -> Any:
    relative = {name: one["objective_curve"] / abs(one["objective_curve"][0]) for name, one in pictures.items()}
    curves = {name: list(enumerate(curve.tolist())) for name, curve in relative.items()}
    figure = new_figure(9, 4)
    labels = {"x_label": "outer iteration", "y_label": "F / F at the start"}
    positive = all(curve.min() > 0 for curve in relative.values())
    plot_curves(curves, **labels, logarithmic=positive, ax=figure.subplots())
    return figure


def _inside(name: str, arrays: Mapping[str, Any]) -> str:
    shape = tuple(int(size) for size in arrays["sample_shape"])
    parts, samples, models = (arrays[key] for key in ("components", "samples", "reconstructions"))
    figure = new_figure(11, 5)
    heights = [max(1, len(parts) / 20 + 1), 2]
    grid = figure.add_gridspec(2, 2, width_ratios=[1.3, 1], height_ratios=heights)
    if len(shape) == 2:
        top, bottom = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
        plot_images(parts[:40].reshape(-1, *shape), ax=top).set_title("components")
        pairs = np.concatenate([samples, models]).reshape(-1, *shape)
        plot_images(pairs, columns=len(samples), ax=bottom).set_title("samples and their reconstructions")
    right = figure.add_subplot(grid[:, 1])
    plot_embedding(arrays["embedding"], arrays["labels"], projection=flatten_embedding, ax=right)
    right.set_title("embedding (t-SNE), coloured by class")
    caption = f"{name}, first run: up to 40 components, samples with their reconstructions, and the embedding."
    return picture(figure, caption)
