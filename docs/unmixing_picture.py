"""Draw the first picture of the README: ``python docs/unmixing_picture.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import nnls

from gwntf import Unmixer
from gwntf.datasets import load_example_spectra
from gwntf.io import atomic_path

TARGET = Path(__file__).parent / "images" / "unmixing_example.png"
MIXTURE = 0
COLORS = ("#1F5FA8", "#D55E00", "#2A9D6F", "#9A6FB0")
GREY = "#7A7A7A"


def draw(target: Path) -> None:
    """Draw a mixture, the moved parts that explain it, and the shares with their intervals."""
    mpl.use("Agg")
    data = load_example_spectra()
    found = Unmixer(data.references, positions=data.ppm).fit().unmix(data.mixtures)
    squares = np.array([nnls(data.references.T, mixture)[0] for mixture in data.mixtures])
    squares /= squares.sum(axis=1, keepdims=True)
    mixture, parts = found.mixtures[MIXTURE], found.moved_parts[MIXTURE]
    unmoved = found.shares[MIXTURE][:, None] * data.references
    top = 1.15 * max(mixture.max(), unmoved.sum(axis=0).max())
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = plt.figure(figsize=(10, 4.2), layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=(2.1, 1))
        above, below = (figure.add_subplot(grid[row, 0]) for row in (0, 1))
        right = figure.add_subplot(grid[:, 1])
        for axes, drawn, title in (
            (above, unmoved, "four known spectra, times the shares found: the peaks of the mixture have drifted"),
            (below, parts, "the same, moved by transport: what each substance contributes to the mixture"),
        ):
            axes.stackplot(data.ppm, drawn, colors=COLORS, alpha=0.85)
            axes.plot(data.ppm, mixture, color="black", linewidth=0.9, label="measured mixture")
            axes.set(ylim=(0, top), yticks=[], xlim=(8.2, 1.8))
            axes.set_title(title, loc="left", fontsize=9)
        above.legend(loc="upper left", frameon=False)
        above.set_xticklabels([])
        below.set_xlabel("ppm")
        _draw_shares(right, found, MIXTURE, data, squares[MIXTURE])
        with atomic_path(target) as path:
            figure.savefig(path, dpi=110, format="png")
        plt.close(figure)


def _draw_shares(axes, found, row, data, squares) -> None:
    places = np.arange(len(data.names))[::-1]
    shares, lower, upper = found.shares[row], found.lower[row], found.upper[row]
    for place, share, low, high, color in zip(places, shares, lower, upper, COLORS, strict=True):
        axes.plot([low, high], [place, place], color=color, linewidth=5, alpha=0.45, solid_capstyle="butt")
        axes.plot(share, place, "o", color=color, markersize=8, zorder=3)
    axes.plot([], [], "o", color="black", markersize=7, label="Unmixer, with its interval of 90%")
    axes.plot(data.shares[row], places - 0.22, "^", color="black", markersize=6, label="true share")
    axes.plot(squares, places + 0.22, "x", color=GREY, markersize=7, markeredgewidth=2, label="least squares")
    axes.set_yticks(places, data.names)
    axes.set(ylim=(-1.6, len(places) - 0.4), xlim=(-0.02, None), xlabel="share in the mixture")
    axes.set_title("how much of each?", loc="left", fontsize=9)
    axes.legend(loc="lower right", frameon=False)
    axes.grid(axis="x", color="#E5E5E5")
    axes.set_axisbelow(True)


if __name__ == "__main__":
    draw(TARGET)
