"""Comparisons: methods as bars and as curves over iterations, ranks by the stability of their fits."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gwntf.model_selection import StabilityCurve
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
        Drawn in this order, from the top.
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
    """Shorten a name, and escape the character that starts formulas in matplotlib."""
    short = name if len(name) <= 24 else f"{name[:23]}…"
    return short.replace("$", "\\$")


def plot_stability(result: StabilityCurve, ax: Any = None) -> Any:
    """Draw the agreement of fits against the rank, and their reconstruction error on a second axis.

    Lines are means over pairs of fits (over fits for the error), bands one standard deviation; a vertical line marks
    `best_rank`.

    Parameters
    ----------
    result : StabilityCurve
        From `stability_curve`.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
        The axes of the agreements; those of the error share their horizontal axis.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf import NCP, datasets, plots
    >>> from gwntf.model_selection import stability_curve
    >>> X, _ = datasets.make_kruskal_tensor((20, 6, 5), 2, random_state=0)
    >>> curve = stability_curve(NCP(max_iter=50, tol=0), X, [1, 2, 3], n_seeds=2, random_state=0)
    >>> plots.plot_stability(curve, ax=Figure().subplots()).get_xlabel()
    'rank (n_components)'
    """
    ax = new_axes(ax)
    error_ax = ax.twinx()
    error_ax.set_zorder(ax.get_zorder() - 1)
    ax.patch.set_visible(False)
    lines = [
        _band(ax, result.ranks, result.component_agreement, "#4c72b0", "o", "components (mean cosine)"),
        _band(ax, result.ranks, result.label_agreement, "#dd8452", "s", "labels (adjusted Rand)"),
        _band(error_ax, result.ranks, result.reconstruction_err, "#999999", "", "reconstruction error"),
    ]
    label = f"best_rank = {result.best_rank}"
    best = ax.axvline(result.best_rank, color="black", linewidth=1, linestyle="--", label=label)
    ax.set(xticks=result.ranks, xlabel="rank (n_components)", ylabel="agreement of fits")
    ax.set_ylim(min(0.0, float(result.label_agreement.min())), 1.03)
    error_ax.set_ylim(bottom=0)
    error_ax.set_ylabel("relative reconstruction error", color="#777777")
    error_ax.tick_params(axis="y", colors="#777777")
    ax.grid(alpha=0.3)
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 2}
    ax.legend(handles=[*lines, best], fontsize="small", frameon=False, **place)
    return ax


def _band(ax: Any, ranks: Any, values: Any, color: str, marker: str, label: str) -> Any:
    """Draw the mean of every row, with a band of one standard deviation."""
    mean, spread = np.mean(values, axis=1), np.std(values, axis=1)
    ax.fill_between(ranks, mean - spread, mean + spread, color=color, alpha=0.2, linewidth=0)
    style = {"marker": marker, "markersize": 4} if marker else {"linestyle": ":"}
    return ax.plot(ranks, mean, color=color, label=label, **style)[0]
