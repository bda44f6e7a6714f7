"""Comparisons of methods: bars, and curves over iterations."""

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
    """Draw one horizontal bar per method, with its deviation and a line at a reference value.

    Parameters
    ----------
    means : mapping of method to value
        Top to bottom in this order.
    deviations, references : mapping of method to value, optional
        Length of the error bars; position of the lines. Methods may be missing.
    reference_name : str
        Name of the lines in the legend.
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
    known = references or {}
    marked = [(place, known[name]) for place, name in zip(places, names, strict=True) if name in known]
    if marked:
        at, values = np.array(marked).T
        ax.vlines(values, at - 0.42, at + 0.42, color="#c44e52", linewidth=2.5, label=reference_name)
        place = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
        ax.legend(frameon=False, fontsize="small", **place)
    ax.set_yticks(places, [_escape(name) for name in names])
    ax.set_xlim(0, 100)
    ax.grid(axis="x", alpha=0.3)
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
        marker = "o" if len(points) < 20 else None
        ax.plot(*zip(*points, strict=True), label=_escape(name), marker=marker, markersize=3)
    ax.set(xlabel=x_label, ylabel=y_label, yscale="log" if logarithmic else "linear")
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small")
    return ax


def _escape(name: str) -> str:
    """Shorten a name, and escape the character that begins formulas in matplotlib."""
    short = name if len(name) <= 24 else f"{name[:23]}…"
    return short.replace("$", "\\$")
