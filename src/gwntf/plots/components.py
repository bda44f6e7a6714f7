"""The parts of a model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import to_host
from gwntf.core import FloatArray
from gwntf.plots.checks import check_model, choose_components, masses
from gwntf.plots.frames import check_axes, check_columns, divide, grid_size, new_axes
from gwntf.plots.samples import check_kind, draw, panel_shape

_FONT = "small"


def plot_components(
    model: Any,
    components: Any = None,
    *,
    kind: str | None = None,
    columns: int | None = None,
    cmap: str = "gray",
    ax: Any = None,
) -> NDArray[Any]:
    """Draw the components of a model, those of greatest mass first.

    Each is labelled with its index (row of `components_`) and its share of the model's mass, the sum of all entries of
    ``embedding_ @ components_``, and has a scale of its own that begins at zero.

    Parameters
    ----------
    model : fitted estimator
        Any factorization of the library.
    components : int or sequence of int, optional
        How many, of greatest mass, or which; all by default.
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
    check_axes(ax)
    check_model(model)
    shape = tuple(model.sample_shape_)
    chosen = choose_components(model, components)
    kind = check_kind(kind, shape, along_axes=True)
    shares = masses(model) / max(float(masses(model).sum()), np.finfo(np.float64).tiny)
    labels = [f"{index}: {_percent(shares[index])}" for index in chosen]
    parts = to_host(model.components_)[chosen].reshape(len(chosen), *shape).astype(np.float64)
    if kind == "modes":
        panels = _by_modes(parts, labels, ax)
    else:
        panels = _by_parts(parts, labels, kind, check_columns(columns, len(chosen)), cmap, ax)
    return panels


def _by_parts(
    parts: FloatArray, labels: list[str], kind: str, columns: int, cmap: str, ax: Any
) -> NDArray[Any]:
    """Draw every component on a panel of its own."""
    rows = math.ceil(len(parts) / columns)
    frame = new_axes(ax, grid_size(rows, columns, **panel_shape(kind, parts.shape[1:])))
    frame.set_title("components by mass (index: share)")
    panels = divide(frame, rows, columns, len(parts))
    for panel, part, label in zip(panels, parts, labels, strict=True):
        draw(panel, part, kind, top=float(part.max()), cmap=cmap)
        panel.set_title(label, fontsize=_FONT, pad=2)
    return panels


def _by_modes(parts: FloatArray, labels: list[str], ax: Any) -> NDArray[Any]:
    """Draw every component as a row of curves, one per axis."""
    n_modes = parts.ndim - 1
    frame = new_axes(ax, grid_size(len(parts), n_modes, width=2.4, ratio=0.42))
    frame.set_title("components by mass (index: share), along every axis")
    panels = divide(frame, len(parts), n_modes).reshape(len(parts), n_modes)
    for row, part, label in zip(panels, parts, labels, strict=True):
        total = float(part.sum()) or 1.0
        for mode, panel in enumerate(row):
            curve = part.sum(axis=tuple(axis for axis in range(n_modes) if axis != mode)) / total
            draw(panel, curve, "curve", top=float(curve.max()), cmap="gray")
            panel.set_title(f"{label}, axis {mode + 1}", fontsize=_FONT, pad=2)
    return panels


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.095 else f"{100 * share:.1f}%"
