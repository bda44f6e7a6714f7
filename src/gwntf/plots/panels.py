"""Single panels: each draws on one axes and returns it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gwntf.core import FloatArray, InputError, MissingLibraryError


def plot_images(images: FloatArray, *, columns: int = 10, share_scale: bool = False, ax: Any = None) -> Any:
    """Lay images out in a grid, left to right and top to bottom.

    Parameters
    ----------
    images : (n, height, width) array
        Each is scaled to its own maximum unless `share_scale`.
    columns : int
        Images per row.
    share_scale : bool
        Whether one grey scale serves all images.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
    """
    if images.ndim != 3:
        raise InputError("images", f"shape {images.shape}", "shape (n, height, width)")
    ax = new_axes(ax)
    count, height, width = images.shape
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    canvas = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1), np.nan)
    tops = np.full(count, images.max()) if share_scale else images.max(axis=(1, 2))
    for place, (image, top) in enumerate(zip(images, tops, strict=True)):
        row, column = divmod(place, columns)
        corner = (row * (height + 1), column * (width + 1))
        canvas[corner[0] : corner[0] + height, corner[1] : corner[1] + width] = image / (top or 1)
    ax.imshow(np.ones_like(canvas), cmap="Blues", vmin=0, vmax=5)  # lines between the images
    ax.imshow(canvas, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set_axis_off()
    return ax


def plot_components(model: Any, *, columns: int = 10, ax: Any = None) -> Any:
    """Draw the components of a model of image data, brightest first (by their mass in the embedding)."""
    order = np.argsort(-model.embedding_.sum(axis=0), kind="stable")
    images = model.components_[order].reshape(-1, *model.sample_shape_)
    ax = plot_images(images, columns=columns, ax=ax)
    ax.set_title("components")
    return ax


def plot_objective(model: Any, *, ax: Any = None) -> Any:
    """Draw the objective against the outer iteration, on a log scale where it is positive."""
    ax = new_axes(ax)
    curve = model.objective_curve_
    ax.plot(np.arange(len(curve)), curve, color="C0")
    ax.set_yscale("log" if curve.min() > 0 else "linear")
    ax.set_xlabel("outer iteration")
    ax.set_ylabel("objective F")
    ax.set_title(f"objective over {model.n_iter_} iterations")
    ax.grid(alpha=0.3)
    return ax


def require_matplotlib() -> None:
    """Raise a clear error where matplotlib is not installed, before work starts that would end in a picture."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise MissingLibraryError("pictures need matplotlib: pip install 'gwntf[plots]'")


def new_axes(ax: Any = None) -> Any:
    """Return the axes that were given, or new ones."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots()[1]
