"""Grids of images, the objective of a fit, and an overview with both."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gwntf.backends import to_host
from gwntf.core import FloatArray, InputError
from gwntf.plots.frames import check_columns, check_model, choose_components, new_axes


def plot_images(images: FloatArray, *, columns: int | None = None, share_scale: bool = False, ax: Any = None) -> Any:
    """Draw images in rows, left to right and top to bottom.

    Parameters
    ----------
    images : (n, height, width) array
        Each is scaled to its own maximum unless `share_scale`.
    columns : int, optional
        Images per row, up to ten by default.
    share_scale : bool
        Whether all images have the same grey scale.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf.datasets import load_digits_tensor
    >>> from gwntf.plots import plot_images
    >>> X, _ = load_digits_tensor()
    >>> plot_images(X[:20], ax=Figure().subplots()).axison
    False
    """
    if images.ndim != 3:
        raise InputError("images", f"shape {images.shape}", "shape (n, height, width)")
    count = len(images)
    columns = check_columns(columns, count)
    ax = new_axes(ax)
    tops = images.max() if share_scale else images.max(axis=(1, 2), keepdims=True)
    scaled = images / np.where(tops == 0, 1, tops)
    rows = [scaled[start : start + columns] for start in range(0, count, columns)]
    canvas = mosaic(rows, columns, gap=(1, 1), fill=np.nan)
    ax.imshow(np.ones_like(canvas), cmap="Blues", vmin=0, vmax=5)  # lines between the images
    ax.imshow(canvas, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set_axis_off()
    return ax


def mosaic(
    rows: Sequence[Sequence[FloatArray] | FloatArray], columns: int, *, gap: tuple[int, int], fill: float
) -> FloatArray:
    """Return one array with rows of at most `columns` images of one shape, separated by `gap` pixels."""
    height, width, *channels = rows[0][0].shape
    down, across = height + gap[0], width + gap[1]
    canvas = np.full((len(rows) * down - gap[0], columns * across - gap[1], *channels), fill)
    for r, row in enumerate(rows):
        for c, image in enumerate(row):
            canvas[r * down : r * down + height, c * across : c * across + width] = image
    return canvas


def plot_objective(model: Any, *, ax: Any = None) -> Any:
    """Draw the objective against the outer iteration, on a log scale where it is positive.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf import GWNTF, datasets, plots
    >>> X, y = datasets.load_digits_tensor()
    >>> model = GWNTF(4, costs=(None, "grid", "grid"), max_iter=5, tol=0, random_state=0).fit(X[:60])
    >>> plots.plot_objective(model, ax=Figure().subplots()).get_title()
    'objective over 5 iterations'
    """
    check_model(model, ax)
    ax = new_axes(ax)
    curve = model.objective_curve_
    ax.plot(np.arange(len(curve)), curve, color="C0")
    ax.set_yscale("log" if curve.min() > 0 else "linear")
    ax.set(xlabel="outer iteration", ylabel="objective F", title=f"objective over {model.n_iter_} iterations")
    ax.grid(alpha=0.3)
    return ax


def overview(model: Any, X: FloatArray, *, title: str | None = None) -> Any:
    """Draw a figure of a model of images: components, samples with their reconstructions, objective.

    Parameters
    ----------
    model : fitted factorization
        Fitted to images, (n_samples, height, width).
    X : (n, height, width) array
        Samples to reconstruct; the first ten are shown.
    title : str, optional
        Title of the figure.

    Returns
    -------
    matplotlib figure

    Examples
    --------
    >>> from gwntf import GWNTF, datasets, plots
    >>> X, y = datasets.load_digits_tensor()
    >>> model = GWNTF(4, costs=(None, "grid", "grid"), max_iter=5, tol=0, random_state=0).fit(X[:60])
    >>> len(plots.overview(model, X[:10]).axes)
    3
    """
    check_model(model)
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
