"""Single panels: each draws on one axes and returns it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gwntf.core import FloatArray, InputError
from gwntf.plots.checks import check_model
from gwntf.plots.frames import check_columns, new_axes


def plot_images(
    images: FloatArray, *, columns: int | None = None, share_scale: bool = False, ax: Any = None
) -> Any:
    """Lay images out on one canvas, left to right and top to bottom.

    Parameters
    ----------
    images : (n, height, width) array
        Each is scaled to its own maximum unless `share_scale`.
    columns : int, optional
        Images per row, up to ten by default.
    share_scale : bool
        Whether one grey scale serves all images.
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
    count, height, width = images.shape
    columns = check_columns(columns, count)
    ax = new_axes(ax)
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


def plot_objective(model: Any, *, ax: Any = None) -> Any:
    """Draw the objective against the outer iteration, on a log scale where it is positive.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf import GWNTF
    >>> from gwntf.datasets import load_digits_tensor
    >>> from gwntf.plots import plot_objective
    >>> X, y = load_digits_tensor()
    >>> model = GWNTF(4, costs=(None, "grid", "grid"), max_iter=5, tol=0, random_state=0).fit(X[:60])
    >>> plot_objective(model, ax=Figure().subplots()).get_title()
    'objective over 5 iterations'
    """
    check_model(model)
    ax = new_axes(ax)
    curve = model.objective_curve_
    ax.plot(np.arange(len(curve)), curve, color="C0")
    ax.set_yscale("log" if curve.min() > 0 else "linear")
    ax.set_xlabel("outer iteration")
    ax.set_ylabel("objective F")
    ax.set_title(f"objective over {model.n_iter_} iterations")
    ax.grid(alpha=0.3)
    return ax
