"""Samples beside their reconstructions."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.core import FloatArray
from gwntf.plots.checks import check_model, check_samples
from gwntf.plots.frames import check_columns, divide, grid_size, new_axes
from gwntf.plots.samples import as_picture, check_kind, draw


def plot_reconstructions(
    model: Any, X: Any, *, kind: str | None = None, columns: int | None = None, cmap: str = "gray", ax: Any = None
) -> NDArray[Any]:
    """Draw samples, and below each its reconstruction on the same scale.

    The title of a sample is its index in X, that of its reconstruction the relative error |x - x^| / |x| over the
    observed entries. Missing entries are marked in colour.

    Parameters
    ----------
    model : fitted estimator
        Any factorization of the library.
    X : array-like, samples first
        The samples to draw, in the shape seen in `fit` or folded as `sample_shape`.
    kind : {"image", "rgb", "curve"}, optional
        How to draw a sample, as in `plot_components`; images of samples with more than two axes are means over the
        further ones.
    columns : int, optional
        Samples in a row, up to ten by default; more of them begin a new pair of rows.
    cmap : str
        Colour map of grey images.
    ax : matplotlib axes, optional
        The panels are drawn inside its frame; a new figure by default.

    Returns
    -------
    (2, n) array of matplotlib axes
        The samples and their reconstructions.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf import GWNTF
    >>> from gwntf.datasets import load_digits_tensor
    >>> from gwntf.plots import plot_reconstructions
    >>> X, y = load_digits_tensor()
    >>> model = GWNTF(4, costs=(None, "grid", "grid"), max_iter=5, tol=0, random_state=0).fit(X[:60])
    >>> plot_reconstructions(model, X[:6], ax=Figure().subplots()).shape
    (2, 6)
    """
    check_model(model, ax)
    shape = tuple(model.sample_shape_)
    kind = check_kind(kind, shape)
    samples = check_samples(model, X)
    columns = check_columns(columns, len(samples))
    models = model.reconstruct(samples)
    errors = _relative_errors(samples, models)
    pictures = [as_picture(values.reshape(-1, *shape), kind) for values in (samples, models)]
    bands = math.ceil(len(samples) / columns)
    frame = new_axes(ax, grid_size(2 * bands, columns, kind, shape))
    frame.set_title("samples, and below each its reconstruction")
    count = len(samples)
    cells = [(2 * (k // columns) + below) * columns + k % columns for below in (0, 1) for k in range(count)]
    panels = divide(frame, 2 * bands, columns, cells).reshape(2, count)
    for place, pair in enumerate(zip(*pictures, strict=True)):
        top = max(float(np.nanmax(values)) for values in pair)
        labels = (f"sample {place}", f"error {errors[place]:.2f}")
        for panel, values, label in zip(panels[:, place], pair, labels, strict=True):
            draw(panel, values, kind, label, top=top, cmap=cmap)
    return panels


def _relative_errors(samples: FloatArray, models: FloatArray) -> FloatArray:
    """|x - x^| / |x| of every sample over its observed entries; the error itself where x is zero."""
    data, made = (values.reshape(len(values), -1) for values in (samples, models))
    error, size = (np.sqrt(np.nansum(values**2, axis=1)) for values in (data - made, data))
    relative: FloatArray = error / np.where(size > 0, size, 1)
    return relative
