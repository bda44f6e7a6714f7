"""The curve of `model_selection.stability_curve`."""

from typing import Any

import numpy as np

from gwntf.model_selection import StabilityCurve
from gwntf.plots.frames import new_axes


def plot_stability(result: StabilityCurve, ax: Any = None) -> Any:
    """Draw the agreement of fits against the rank, and their reconstruction error on a second axis.

    Lines are means over pairs of fits (over fits for the error), bands one standard deviation; a vertical line stands
    at `best_rank`.

    Parameters
    ----------
    result : StabilityCurve
        From `stability_curve`.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
        Of the agreements; the error's share their horizontal axis.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf import NCP
    >>> from gwntf.datasets import make_kruskal_tensor
    >>> from gwntf.model_selection import stability_curve
    >>> from gwntf.plots import plot_stability
    >>> X, _ = make_kruskal_tensor((20, 6, 5), 2, random_state=0)
    >>> curve = stability_curve(NCP(max_iter=50, tol=0), X, [1, 2, 3], n_seeds=2, random_state=0)
    >>> plot_stability(curve, ax=Figure().subplots()).get_xlabel()
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
