"""Plots of fitted models and of comparisons, drawn with matplotlib (the `plots` extra).

May import `experiments` and everything below. Start with `samples`. Every function takes one axes as `ax` and returns
the axes it drew on; several panels are drawn inside the frame of that axes and returned as an array (`frames`). No
function changes matplotlib's settings or opens a window. `samples`, `flow` and `embedding` show one model, `unmixing`
one mixture of known parts, `tables` compares several models, `panels` has images, the objective, and an overview of
both. `docs/plots.md` has examples.
"""

from gwntf.plots.embedding import flatten_embedding, plot_embedding, principal_plane
from gwntf.plots.flow import plot_flow, plot_plan
from gwntf.plots.frames import require_matplotlib
from gwntf.plots.panels import overview, plot_images, plot_objective
from gwntf.plots.samples import plot_components, plot_reconstructions
from gwntf.plots.tables import plot_bars, plot_curves, plot_stability
from gwntf.plots.unmixing import plot_shares, plot_unmixing

__all__ = [
    "flatten_embedding",
    "overview",
    "plot_bars",
    "plot_components",
    "plot_curves",
    "plot_embedding",
    "plot_flow",
    "plot_images",
    "plot_objective",
    "plot_plan",
    "plot_reconstructions",
    "plot_shares",
    "plot_stability",
    "plot_unmixing",
    "principal_plane",
    "require_matplotlib",
]
