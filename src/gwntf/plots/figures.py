"""Whole pages made of panels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gwntf.backends import to_host
from gwntf.core import FloatArray
from gwntf.plots.checks import check_model, choose_components
from gwntf.plots.frames import require_matplotlib
from gwntf.plots.panels import plot_images, plot_objective


def overview(model: Any, X: FloatArray, *, title: str | None = None) -> Any:
    """One page on a fitted model of images: components, samples beside their reconstructions, objective.

    Parameters
    ----------
    model : fitted estimator
        Fitted to images, (n_samples, height, width).
    X : (n, height, width) array
        A few samples to reconstruct, at most ten are shown.
    title : str, optional
        Headline of the page.

    Returns
    -------
    matplotlib figure

    Examples
    --------
    >>> from gwntf import GWNTF
    >>> from gwntf.datasets import load_digits_tensor
    >>> from gwntf.plots import overview
    >>> X, y = load_digits_tensor()
    >>> model = GWNTF(4, costs=(None, "grid", "grid"), max_iter=5, tol=0, random_state=0).fit(X[:60])
    >>> len(overview(model, X[:10]).axes)
    3
    """
    check_model(model)
    require_matplotlib()
    from matplotlib.figure import Figure

    few = X[:10]
    figure = Figure(figsize=(11, 5), layout="constrained")
    rows = math.ceil(model.components_.shape[0] / 10)
    grid = figure.add_gridspec(2, 2, width_ratios=[1.4, 1], height_ratios=[rows + 0.5, 2.5])
    parts = to_host(model.components_)[choose_components(model, None)].reshape(-1, *model.sample_shape_)
    plot_images(parts, ax=figure.add_subplot(grid[0, 0])).set_title("components")
    pairs = np.concatenate([few, model.reconstruct(few)])
    samples = plot_images(pairs, columns=len(few), ax=figure.add_subplot(grid[1, 0]))
    samples.set_title("samples (top) and their reconstructions (bottom)")
    plot_objective(model, ax=figure.add_subplot(grid[:, 1]))
    if title:
        figure.suptitle(title)
    return figure
