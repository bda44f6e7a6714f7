"""The tables of `docs/missing.md` from the results, and its picture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.impute import KNNImputer

from benchmarks.harness import RESULTS
from benchmarks.pages import DOCS, replace_between
from gwntf import GWNTF, KNNGraph
from gwntf.core import FloatArray
from gwntf.datasets import load_digits_tensor
from gwntf.io import atomic_path

PAGE = DOCS / "missing.md"
NAMES = ("coil20", "digits")


def write_page() -> None:
    """Put what the results on disk say into the page, and draw its picture."""
    paths = {name: RESULTS / f"imputation-{name}.json" for name in NAMES}
    for name in (name for name, path in paths.items() if path.exists()):
        record = json.loads(paths[name].read_text(encoding="utf-8"))
        replace_between(PAGE, name, comparison(record))
        replace_between(PAGE, f"{name} held out", held_out(record))
    draw_fills(DOCS / "images" / "missing.png")


def comparison(record: Mapping[str, Any]) -> str:
    """Return the table of methods; the lowest error is bold."""
    means = [float(np.mean(line["errors"])) for line in record["table"]]
    lines = ["| method | rank | error on hidden pixels | CPU seconds |", "|---|---|---|---|"]
    for line, error in zip(record["table"], means, strict=True):
        figure = f"**{error:.3f}**" if error == min(means) else f"{error:.3f}"
        rank = "" if line["rank"] is None else line["rank"]
        lines.append(f"| {line['method']} | {rank} | {figure} | {np.mean(line['seconds']):.3g} |")
    seeds = record["seeds"]
    spread = max(float(np.ptp(line["errors"])) for line in record["table"])
    if len(seeds) > 1:
        numbers = ", ".join(map(str, seeds))
        about = f"Means over the holes of seeds {numbers}; the errors of a line differ by at most {spread:.3f}."
    else:
        about = f"The holes of seed {seeds[0]}."
    return "\n".join([*lines, "", f"{about} `{record['command']}`."])


def held_out(record: Mapping[str, Any]) -> str:
    """Return the table of settings; the lowest error of each column is bold."""
    columns = ("held_out", "hidden")
    best = {column: min(line[column] for line in record["held_out"]) for column in columns}
    lines = ["| rank | `graph_reg` | held-out pixels | hidden pixels |", "|---|---|---|---|"]
    for line in record["held_out"]:
        figures = [
            f"**{line[column]:.3f}**" if line[column] == best[column] else f"{line[column]:.3f}" for column in columns
        ]
        lines.append(f"| {line['rank']} | {line['graph_reg']:g} | {' | '.join(figures)} |")
    return "\n".join(lines)


def draw_fills(path: Path) -> None:
    """Draw one of each digit: as it is, with its holes, and filled in three ways."""
    X, y = load_digits_tensor()
    hidden = np.random.default_rng(1).random(X.shape) < 0.3
    holed = np.where(hidden, np.nan, X)
    rows = holed.reshape(len(X), -1)
    mean = np.broadcast_to(np.nanmean(rows, axis=0).reshape(X.shape[1:]), X.shape)
    near = KNNImputer(n_neighbors=5, keep_empty_features=True).fit_transform(rows).reshape(X.shape)
    model = GWNTF(
        160,
        costs=(None, None),
        graph_reg=1,
        graph=KNNGraph(8, weight="self-tuning"),
        missing="ignore",
        max_iter=200,
        tol=0,
        random_state=0,
    )
    ours = model.fit_impute(rows).reshape(X.shape)
    chosen = [int(np.flatnonzero(y == digit)[1]) for digit in range(10)]
    panels = [
        ("the digit", X[chosen], None),
        ("30% hidden", X[chosen], hidden[chosen]),
        ("column mean", np.where(hidden, mean, X)[chosen], None),
        ("KNNImputer", near[chosen], None),
        ("KL, rows, graph", ours[chosen], None),
    ]
    _draw(panels, path)


def _draw(panels: Sequence[tuple[str, FloatArray, NDArray[np.bool_] | None]], path: Path) -> None:
    grey = mpl.colormaps["gray"].with_extremes(bad="#E07B39")
    with mpl.rc_context({"font.size": 9}):
        figure = Figure(figsize=(7.6, 3.9), layout="constrained")
        axes = figure.subplots(len(panels), len(panels[0][1]))
        for row, (name, images, holes) in zip(axes, panels, strict=True):
            for place, (cell, image) in enumerate(zip(row, images, strict=True)):
                shown = image if holes is None else np.ma.MaskedArray(image, mask=holes[place])
                cell.imshow(shown, cmap=grey, vmin=0, vmax=16, interpolation="nearest")
                cell.set(xticks=[], yticks=[])
            row[0].set_ylabel(name, rotation=0, ha="right", va="center")
        with atomic_path(path) as aside:
            figure.savefig(aside, dpi=120, format="png")
