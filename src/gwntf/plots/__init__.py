"""Pictures of fitted models and of comparisons, drawn with matplotlib (the `plots` extra).

May import `experiments` and everything below. Every function takes `ax` and returns the axes it drew on.
`panels` shows one model, `tables` compares several, `stability` shows
which rank to take, `overview` in `figures` puts panels on one page.
"""

from gwntf.plots.figures import overview
from gwntf.plots.panels import plot_components, plot_images, plot_objective, require_matplotlib
from gwntf.plots.stability import plot_stability
from gwntf.plots.tables import flatten_embedding, plot_bars, plot_curves, plot_embedding

__all__ = [
    "flatten_embedding",
    "overview",
    "plot_bars",
    "plot_components",
    "plot_curves",
    "plot_embedding",
    "plot_images",
    "plot_objective",
    "plot_stability",
    "require_matplotlib",
]
