"""The components of a model."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import to_host
from gwntf.core import FloatArray
from gwntf.plots.checks import check_model, choose_components, component_masses
from gwntf.plots.frames import check_columns, divide, grid_size, new_axes
from gwntf.plots.samples import check_kind, draw


def plot_components(
    model: Any,
    components: Any = None,
    *,
    kind: str | None = None,
    columns: int | None = None,
    cmap: str = "gray",
    ax: Any = None,
) -> NDArray[Any]:
    """Draw the components of a model, by decreasing mass.

    Each is labelled with its index (row of `components_`) and its share of the model's mass, the sum of all entries of
    ``embedding_ @ components_``, and has its own scale, which begins at zero.

    Parameters
    ----------
    model : fitted estimator
        Any factorization of the library.
    components : int or sequence of int, optional
        Number of components, those of the largest mass, or their indices; all by default.
    kind : {"image", "rgb", "curve", "modes"}, optional
        How to draw one: as a grey image (samples of two axes), a colour image (three axes, the last of three
        channels), a curve (one axis), or along every axis of a sample as a curve of its own: the component summed
        over all other axes, as shares of its mass, which for a tensor model is a column of a factor. By default
        what the shape of the samples suggests: "modes" where no other fits.
    columns : int, optional
        Components in a row, up to ten by default; with "modes" every component has its own row.
    cmap : str
        Colour map of grey images.
    ax : matplotlib axes, optional
        The panels are drawn inside its frame; a new figure by default.

    Returns
    -------
    (n,) array of matplotlib axes, with "modes" (n, number of axes of a sample)

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf import GWNTF
    >>> from gwntf.datasets import load_digits_tensor
    >>> from gwntf.plots import plot_components
    >>> X, y = load_digits_tensor()
    >>> model = GWNTF(4, costs=(None, "grid", "grid"), max_iter=5, tol=0, random_state=0).fit(X[:60])
    >>> plot_components(model, ax=Figure().subplots()).shape
    (4,)
    """
    check_model(model, ax)
    shape = tuple(model.sample_shape_)
    chosen = choose_components(model, components)
    kind = check_kind(kind, shape, along_axes=True)
    masses = component_masses(model)
    shares = masses / max(float(masses.sum()), np.finfo(np.float64).tiny)
    labels = [f"{index}: {_percent(shares[index])}" for index in chosen]
    parts = to_host(model.components_)[chosen].reshape(len(chosen), *shape).astype(np.float64)
    title = "components by mass (index: share)"
    if kind == "modes":
        columns, title = len(shape), f"{title}, along every axis"
        labels = [f"{label}, axis {mode + 1}" for label in labels for mode in range(columns)]
        values = [_along(part, mode) for part in parts for mode in range(columns)]
    else:
        columns, values = check_columns(columns, len(chosen)), list(parts)
    rows = math.ceil(len(values) / columns)
    frame = new_axes(ax, grid_size(rows, columns, kind, shape))
    frame.set_title(title)
    panels = divide(frame, rows, columns, range(len(values)))
    for panel, one, label in zip(panels, values, labels, strict=True):
        draw(panel, one, "curve" if kind == "modes" else kind, label, top=float(one.max()), cmap=cmap)
    return panels.reshape(rows, columns) if kind == "modes" else panels


def _along(part: FloatArray, mode: int) -> FloatArray:
    """Return a component summed over all axes but one, as shares of its mass."""
    others = tuple(axis for axis in range(part.ndim) if axis != mode)
    curve: FloatArray = part.sum(axis=others) / (float(part.sum()) or 1.0)
    return curve


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.095 else f"{100 * share:.1f}%"
