"""Panels that compare methods: bars, and curves over iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gwntf.plots.frames import new_axes


def plot_bars(
    means: Mapping[str, float],
    *,
    deviations: Mapping[str, float] | None = None,
    references: Mapping[str, float] | None = None,
    reference_name: str = "paper",
    ax: Any = None,
) -> Any:
    """Draw one horizontal bar per method, with its deviation and a line at the figure to compare with.

    Parameters
    ----------
    means : mapping of method to value
        Top to bottom in this order.
    deviations, references : mapping of method to value, optional
        Length of the error bars; place of the lines. Methods may be absent.
    reference_name : str
        What the lines are, for the legend.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf.plots import plot_bars
    >>> ax = plot_bars({"NMF": 65.1, "GNMF": 81.9}, references={"NMF": 57.9}, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['NMF', 'GNMF']
    """
    ax = new_axes(ax)
    names = list(means)
    places = np.arange(len(names))[::-1]
    spread = [(deviations or {}).get(name, 0.0) for name in names]
    ax.barh(places, list(means.values()), xerr=spread, height=0.6, color="#4c72b0", capsize=2)
    lines = references or {}
    marked = [(place, lines[name]) for place, name in zip(places, names, strict=True) if name in lines]
    for number, (place, value) in enumerate(marked):
        label = reference_name if number == 0 else None
        ax.plot([value, value], [place - 0.42, place + 0.42], color="#c44e52", linewidth=2.5, label=label)
    ax.set_yticks(places, [_plain(name) for name in names])
    ax.set_xlim(0, 100)
    ax.grid(axis="x", alpha=0.3)
    if marked:
        ax.legend(
            loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, frameon=False, fontsize="small"
        )
    return ax


def plot_curves(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x_label: str,
    y_label: str,
    logarithmic: bool = False,
    ax: Any = None,
) -> Any:
    """Draw one line per method through its (x, y) points.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf.plots import plot_curves
    >>> lines = {"NMF": [(1, 9.0), (2, 4.0)], "NCP": [(1, 8.0), (2, 5.0)]}
    >>> len(plot_curves(lines, x_label="iteration", y_label="error", ax=Figure().subplots()).lines)
    2
    """
    ax = new_axes(ax)
    for name, points in curves.items():
        ax.plot(
            *zip(*points, strict=True),
            label=_plain(name),
            marker="o" if len(points) < 20 else None,
            markersize=3,
        )
    if logarithmic:
        ax.set_yscale("log")
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small")
    return ax


def _plain(name: str) -> str:
    """Shorten a name and keep matplotlib from reading it as mathematics."""
    short = name if len(name) <= 24 else f"{name[:23]}…"
    return short.replace("$", "\\$")
