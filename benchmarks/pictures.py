"""Pictures of the page on performance: how many times faster, and curves of time to accuracy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.harness import Curve
from gwntf.io import atomic_path

OURS = "gwntf"
OWN, FIRST, SECOND = "#1F5FA8", "#D55E00", "#8C8C8C"
"""Colours of this library, and of the programs that it is compared with, in the order of a panel."""

COLUMNS = 3
HIGHEST, HEADROOM = 3.0, 20.0
"""Largest distance that a panel shows, and how many times as far its axis goes, to make room for the names."""

LOWEST, LOWEST_EXACT = 1e-4, 1e-7
"""Smallest distance that a panel shows: in general, and where the optimum is known."""

NEAR = 0.01
"""Distance at which a fit with transport counts as arrived."""

WIDE = 100
"""Ratio of the ends of an axis above which only powers of ten are labelled."""


class Bar(NamedTuple):
    """A bar: what was compared, with whom, how many times faster it is, and whether it may be more."""

    what: str
    peer: str
    value: float
    more: bool


def times(value: float) -> str:
    """Return how many times faster as text."""
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def draw_bars(bars: Sequence[Bar], path: Path) -> None:
    """Draw how many times faster, on a logarithmic axis that begins at equal speed."""
    with mpl.rc_context({"font.size": 9}):
        figure = Figure(figsize=(9, 0.36 * len(bars) + 0.9), layout="constrained")
        axes = figure.add_subplot()
        for place, bar in enumerate(bars):
            end = max(bar.value, 1e-3)
            axes.plot([1, end], [place, place], color="#4C72B0", linewidth=7, solid_capstyle="butt")
            text = f"{'over ' * bar.more}{times(bar.value)}x"
            axes.annotate(text, (max(end, 1), place), (6, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(bars)), [f"{bar.what}, against {bar.peer}" for bar in bars])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlim(0.7, max(3000.0, 4 * max((bar.value for bar in bars), default=1.0)))
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_xlabel("times faster (left of the line: slower)")
        axes.spines[["top", "right", "left"]].set_visible(False)
        _save(figure, path)


def draw_curves(panels: Mapping[str, Mapping[str, Curve]], path: Path) -> None:
    """Draw the distance from the best value known against seconds, a panel for each problem."""
    if not panels:
        return
    with mpl.rc_context({"font.size": 9}):
        rows = math.ceil(len(panels) / COLUMNS)
        figure = Figure(figsize=(10, 2.8 * rows + 0.6), layout="constrained")
        for place, (title, lines) in enumerate(panels.items(), start=1):
            _panel(figure.add_subplot(rows, COLUMNS, place), title, lines)
        figure.supxlabel("seconds")
        figure.supylabel("relative distance of the objective from the lowest value found")
        _save(figure, path)


def _panel(axes: Any, title: str, lines: Mapping[str, Curve]) -> None:
    """Draw the curves of one problem, from where the first of them has come near."""
    best = min(value for curve in lines.values() for _, value in curve)
    lowest = LOWEST_EXACT if title.startswith("new samples") else LOWEST
    colors, seen = iter((FIRST, SECOND)), []
    for name, curve in lines.items():
        ours = name == OURS
        seconds = [at for at, _ in curve]
        distances = [max((value - best) / abs(best), lowest / 10) for _, value in curve]
        color, width = (OWN, 2.4) if ours else (next(colors), 1.6)
        axes.plot(seconds, distances, label=name, color=color, linewidth=width, zorder=3 if ours else 2)
        seen += [at for at, distance in zip(seconds, distances, strict=True) if distance <= HIGHEST]
    axes.set(xscale="log", yscale="log", ylim=(lowest, HEADROOM * HIGHEST), xlim=(0.8 * min(seen), 1.25 * max(seen)))
    if title.startswith("GWNTF"):
        axes.axhline(NEAR, color="black", linewidth=0.8, linestyle=(0, (4, 4)))
        axes.annotate("1%", (1, NEAR), (-2, 3), ("axes fraction", "data"), "offset points", ha="right", fontsize=8)
    axes.set_title(title, fontsize=10)
    axes.grid(which="major", color="#E5E5E5", linewidth=0.8)
    axes.legend(loc="upper right", labelcolor="linecolor", handlelength=1.2, fontsize=8, frameon=False, borderpad=0)
    axes.spines[["top", "right"]].set_visible(False)
    _label_seconds(axes)


def _label_seconds(axes: Any) -> None:
    """Label seconds with plain numbers: powers of ten, and more where there are few of these."""
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if high / low > WIDE else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _save(figure: Figure, path: Path) -> None:
    with atomic_path(path) as aside:
        figure.savefig(aside, dpi=120, format="png")
