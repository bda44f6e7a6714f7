"""Components, and samples beside their reconstructions, as images, colour images or curves."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import to_host
from gwntf.core import FloatArray, InputError
from gwntf.plots.frames import (
    check_columns,
    check_model,
    check_samples,
    choose_components,
    component_masses,
    divide,
    grid_size,
    new_axes,
)


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
    ``embedding_ @ components_``, and has its own scale, which starts at zero. The horizontal axis of a curve is the
    index of the feature, from 0.

    Parameters
    ----------
    model : fitted factorization
        Of any class of the library.
    components : int or sequence of int, optional
        Number of components, those of the largest mass, or their indices; all by default.
    kind : {"image", "rgb", "curve", "modes"}, optional
        How to draw a component: as a grey image (samples of two axes), a colour image (three axes, the last of three
        channels), a curve (one axis), or with one curve for every axis of a sample: the component summed over all
        other axes, as shares of its mass, which for a tensor model is a column of a factor. By default it follows from
        the shape of the samples; "modes" where no other kind applies.
    columns : int, optional
        Components per row, up to ten by default; with "modes" every component has its own row.
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
    >>> from gwntf import GWNTF, datasets, plots
    >>> X, y = datasets.load_digits_tensor()
    >>> model = GWNTF(4, costs=(None, "grid", "grid"), max_iter=5, tol=0, random_state=0).fit(X[:60])
    >>> plots.plot_components(model, ax=Figure().subplots()).shape
    (4,)
    """
    check_model(model, ax)
    shape = tuple(model.sample_shape_)
    chosen = choose_components(model, components)
    kind = check_kind(kind, shape, along_axes=True)
    masses = component_masses(model)
    shares = masses / max(float(masses.sum()), np.finfo(np.float64).tiny)
    labels = [f"{index}: {100 * shares[index]:.{0 if shares[index] >= 0.095 else 1}f}%" for index in chosen]
    parts = to_host(model.components_)[chosen].reshape(len(chosen), *shape).astype(np.float64)
    title = "components by mass (index: share)"
    if kind == "modes":
        columns, title = len(shape), f"{title}, along every axis"
        labels = [f"{label}, axis {mode + 1}" for label in labels for mode in range(columns)]
        # each component summed over all axes but one, as shares of its mass
        others = [tuple(axis for axis in range(columns) if axis != mode) for mode in range(columns)]
        values = [part.sum(axis=rest) / (float(part.sum()) or 1.0) for part in parts for rest in others]
    else:
        columns, values = check_columns(columns, len(chosen)), list(parts)
    rows = math.ceil(len(values) / columns)
    frame = new_axes(ax, grid_size(rows, columns, kind, shape))
    frame.set_title(title)
    axes = {"curve": ("feature", "value"), "modes": ("index", "share")}.get(kind)
    panels = divide(frame, rows, columns, range(len(values)), axes)
    for panel, one, label in zip(panels, values, labels, strict=True):
        draw(panel, one, "curve" if kind == "modes" else kind, label, top=float(one.max()), cmap=cmap)
    return panels.reshape(rows, columns) if kind == "modes" else panels


def plot_reconstructions(
    model: Any, X: Any, *, kind: str | None = None, columns: int | None = None, cmap: str = "gray", ax: Any = None
) -> NDArray[Any]:
    """Draw samples, and below each its reconstruction on the same scale.

    The title of a sample is its index in X, that of its reconstruction the relative error |x - x^| / |x| over the
    observed entries. Missing entries are marked in colour.

    Parameters
    ----------
    model : fitted factorization
        Of any class of the library.
    X : array-like, samples first
        The samples to draw, in the shape seen in `fit` or folded as `sample_shape`.
    kind : {"image", "rgb", "curve"}, optional
        How to draw a sample, as in `plot_components`; images of samples with more than two axes are means over the
        additional axes.
    columns : int, optional
        Samples per row, up to ten by default; further samples are drawn in additional pairs of rows.
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
    >>> from gwntf import GWNTF, datasets, plots
    >>> X, y = datasets.load_digits_tensor()
    >>> model = GWNTF(4, costs=(None, "grid", "grid"), max_iter=5, tol=0, random_state=0).fit(X[:60])
    >>> plots.plot_reconstructions(model, X[:6], ax=Figure().subplots()).shape
    (2, 6)
    """
    check_model(model, ax)
    shape = tuple(model.sample_shape_)
    kind = check_kind(kind, shape)
    samples = check_samples(model, X)
    columns = check_columns(columns, len(samples))
    models = np.asarray(model.reconstruct(samples))
    data, rebuilt = (values.reshape(len(values), -1) for values in (samples, models))
    error, size = (np.sqrt(np.nansum(values**2, axis=1)) for values in (data - rebuilt, data))
    relative = error / np.where(size > 0, size, 1)
    pictures = [as_picture(values.reshape(-1, *shape), kind) for values in (samples, models)]
    bands = math.ceil(len(samples) / columns)
    frame = new_axes(ax, grid_size(2 * bands, columns, kind, shape))
    frame.set_title("samples, and below each its reconstruction")
    count = len(samples)
    cells = [(2 * (k // columns) + below) * columns + k % columns for below in (0, 1) for k in range(count)]
    axes = ("feature", "value") if kind == "curve" else None
    panels = divide(frame, 2 * bands, columns, cells, axes).reshape(2, count)
    for index, pair in enumerate(zip(*pictures, strict=True)):
        top = max(float(np.nanmax(values)) for values in pair)
        labels = (f"sample {index}", f"error {relative[index]:.2f}")
        for panel, values, label in zip(panels[:, index], pair, labels, strict=True):
            draw(panel, values, kind, label, top=top, cmap=cmap)
    return panels


MISSING = "#e8a79c"  # colour of missing entries


def check_kind(kind: Any, shape: tuple[int, ...], *, along_axes: bool = False) -> str:
    """Return the kind of plot for samples of that shape: `kind`, by default the first one that is possible."""
    order = len(shape)
    allowed = ["curve"] if order == 1 else ["rgb"] if order == 3 and shape[-1] == 3 else []
    if order == 2 or (order > 2 and not along_axes):
        allowed.append("image")
    if along_axes:
        allowed.append("modes")
    if kind is None:
        return allowed[0]
    if kind not in allowed:
        raise InputError("kind", repr(kind), f"one of {', '.join(map(repr, allowed))} for samples of {shape}")
    return str(kind)


def as_picture(values: FloatArray, kind: str) -> FloatArray:
    """Return samples (n, ...) as drawn: images are means over the observed entries of all axes but the first two."""
    if kind != "image" or values.ndim == 3:
        return values
    flat = np.ma.masked_invalid(values.reshape(*values.shape[:3], -1))
    return np.asarray(flat.mean(axis=-1).filled(np.nan))


def draw(panel: Any, values: FloatArray, kind: str, title: str, *, top: float, cmap: str) -> None:
    """Draw one sample on a panel; `top` is the value at the upper end of the scale, NaN a missing entry."""
    panel.set(xticks=[], yticks=[])
    panel.set_title(title, fontsize="small", pad=2)
    top = top or 1.0
    if kind == "curve":
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        panel.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        panel.yaxis.set_major_locator(MaxNLocator(2, min_n_ticks=2))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
        panel.tick_params(labelsize="x-small", length=2, pad=1)
        indices = np.arange(len(values))
        for index in indices[np.isnan(values)]:
            panel.axvspan(index - 0.5, index + 0.5, color=MISSING, linewidth=0)
        panel.fill_between(indices, values, color="C0", alpha=0.25, linewidth=0)
        panel.plot(indices, values, color="C0", linewidth=1.2)
        panel.set(xlim=(-0.5, len(values) - 0.5), ylim=(0, 1.05 * top))
    elif kind == "rgb":
        from matplotlib.colors import to_rgb

        colours = np.clip(values / top, 0, 1)
        colours[np.isnan(values).any(axis=-1)] = to_rgb(MISSING)
        panel.imshow(colours, interpolation="nearest")
    else:
        import matplotlib as mpl

        colour_map = mpl.colormaps[cmap].with_extremes(bad=MISSING)
        panel.imshow(np.ma.masked_invalid(values), cmap=colour_map, vmin=0, vmax=top, interpolation="nearest")
