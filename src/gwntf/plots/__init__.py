"""Pictures of a fitted model, drawn with matplotlib (the `plots` extra).

May import `estimators` and everything below. Every function takes `ax` and returns the axes it drew on;
`overview` puts several on one page.
"""

from gwntf.plots.figures import overview
from gwntf.plots.panels import plot_components, plot_images, plot_objective

__all__ = ["overview", "plot_components", "plot_images", "plot_objective"]
