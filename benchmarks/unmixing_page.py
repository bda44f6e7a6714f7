"""The picture of `docs/unmixing_results.md`: accuracy of the methods by gain, by NMR mixture and by kind of drift."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.harness import Table
from benchmarks.unmixing_methods import BLURRED, GRID_TRIANGULAR, KL, LEAST_SQUARES
from gwntf.io import atomic_path

CASES = (
    "unmixing-gamma",
    "unmixing-noise",
    "unmixing-nmr",
    "unmixing-synthetic",
    "unmixing-speed",
    "unmixing-speed-nmr",
)
_TITLE_OF_COUNTS = "2,000 counts"
_LOWEST = 40.0


class _Line(NamedTuple):
    label: str
    color: str
    marker: str


_STYLES = {
    "Unmixer": _Line("Unmixer (transport)", "#1F5FA8", "o"),
    GRID_TRIANGULAR: _Line("least squares over shifts", "#D55E00", "s"),
    KL + BLURRED: _Line("KL, both sides blurred", "#9A6FB0", "v"),
    KL: _Line("KL", "#6B6B6B", "^"),
    LEAST_SQUARES: _Line("nonnegative least squares", "#B0B0B0", "D"),
    "Magnetstein, default settings": _Line("Magnetstein", "#2A9D6F", "P"),
}
"""Methods of the picture, in the order of its legend."""


def draw_unmixing(found: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw the three panels; nothing if a case has not been run."""
    if any(name not in found for name in ("unmixing-gamma", "unmixing-nmr", "unmixing-synthetic")):
        return
    with mpl.rc_context({"font.size": 9}):
        figure = Figure(figsize=(11, 4.3), layout="constrained")
        gamma, nmr, synthetic = figure.subplots(1, 3, width_ratios=(1.1, 1, 1.1))
        _draw_gains(gamma, _first(found["unmixing-gamma"]))
        _draw_bars(nmr, _first(found["unmixing-nmr"]))
        nmr.set(title="three NMR mixtures", ylabel="mean relative error of the molar shares")
        tables: Mapping[str, Table] = found["unmixing-synthetic"]["tables"]
        _draw_bars(synthetic, next(table for title, table in tables.items() if title.startswith(_TITLE_OF_COUNTS)))
        synthetic.set(title="synthetic spectra of 2,000 counts, by drift", ylabel="share assigned to a wrong part, %")
        handles = [
            mpl.lines.Line2D([], [], color=style.color, marker=style.marker, label=style.label)
            for style in _STYLES.values()
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
        with atomic_path(path) as aside:
            figure.savefig(aside, dpi=120, format="png")


def _first(record: Mapping[str, Any]) -> Table:
    """Return the first table of a record."""
    tables: Mapping[str, Table] = record["tables"]
    return next(iter(tables.values()))


def _rows(table: Table) -> dict[str, Mapping[str, float]]:
    """Return the methods of the picture that a table has; ours is the first row."""
    own = next(iter(table))
    named = {("Unmixer" if row == own else row): cells for row, cells in table.items()}
    return {name: named[name] for name in _STYLES if name in named}


def _draw_gains(axes: Any, table: Table) -> None:
    """Draw the percentages by constant gain, and by varying gain at the right."""
    for name, cells in reversed(_rows(table).items()):
        style = _STYLES[name]
        constant = [column for column in cells if " to " not in column]
        axes.plot(range(len(constant)), [cells[c] for c in constant], color=style.color, marker=style.marker, ms=5)
        varying = [column for column in cells if " to " in column]
        places = len(constant) + np.arange(len(varying))
        axes.plot(places, [cells[c] for c in varying], color=style.color, marker=style.marker, ms=5, linestyle="none")
    labels = [column.replace(" to ", "\nto ") for column in next(iter(table.values()))]
    axes.set_xticks(range(len(labels)), labels, fontsize=7.5)
    axes.set(
        ylim=(_LOWEST, 103),
        xlabel="gain (energy per channel)",
        ylabel="right isotope, %",
        title="measured gamma spectra",
    )
    axes.grid(axis="y", color="#E5E5E5")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_bars(axes: Any, table: Table) -> None:
    """Draw groups of bars by column."""
    rows = _rows(table)
    columns = list(next(iter(table.values())))
    width = 0.84 / len(rows)
    for number, (name, cells) in enumerate(rows.items()):
        places = np.arange(len(columns)) + (number - (len(rows) - 1) / 2) * width
        axes.bar(places, [cells[column] for column in columns], width, color=_STYLES[name].color)
    axes.set_xticks(range(len(columns)), [column.replace("experiment ", "exp. ") for column in columns])
    axes.grid(axis="y", color="#E5E5E5")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
