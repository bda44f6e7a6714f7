"""Drawing one sample, or one component, as an image, a colour image or a curve."""

from typing import Any

import numpy as np

from gwntf.core import FloatArray, InputError

MISSING = "#e8a79c"
"""Colour of missing entries."""


def check_kind(kind: Any, shape: tuple[int, ...], *, along_axes: bool = False) -> str:
    """Return the kind of plot for samples of that shape: `kind`, by default the first one that is possible.

    One axis is a curve, and three of which the last has three entries are a colour image; two or more are an image, of
    which the further axes are averaged over, or are drawn along each of them (`along_axes`).
    """
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
    """Return samples (n, ...) as drawn: images of more than two axes are means over the further ones.

    Missing entries are ignored in means; where all are missing, so is the mean.
    """
    if kind != "image" or values.ndim == 3:
        return values
    flat = np.ma.masked_invalid(values.reshape(*values.shape[:3], -1))
    means: FloatArray = flat.mean(axis=-1).filled(np.nan)
    return means


def draw(panel: Any, values: FloatArray, kind: str, title: str, *, top: float, cmap: str) -> None:
    """Draw one sample on a panel; `top` is the value at the upper end of the scale, NaN a missing entry."""
    panel.set(xticks=[], yticks=[])
    panel.set_title(title, fontsize="small", pad=2)
    top = top or 1.0
    if kind == "curve":
        _draw_curve(panel, values, top)
    elif kind == "rgb":
        panel.imshow(_colours(values / top), interpolation="nearest")
    else:
        import matplotlib as mpl

        colours = mpl.colormaps[cmap].with_extremes(bad=MISSING)
        panel.imshow(np.ma.masked_invalid(values), cmap=colours, vmin=0, vmax=top, interpolation="nearest")


def _draw_curve(panel: Any, values: FloatArray, top: float) -> None:
    """Draw a line, and mark the positions of missing entries."""
    places = np.arange(len(values))
    for place in places[np.isnan(values)]:
        panel.axvspan(place - 0.5, place + 0.5, color=MISSING, linewidth=0)
    panel.fill_between(places, values, color="C0", alpha=0.25, linewidth=0)
    panel.plot(places, values, color="C0", linewidth=1.2)
    panel.set(xlim=(-0.5, len(values) - 0.5), ylim=(0, 1.05 * top))


def _colours(values: FloatArray) -> FloatArray:
    """Clip colours to the range 0 to 1, and colour pixels of which a channel is missing."""
    from matplotlib.colors import to_rgb

    missing = np.isnan(values).any(axis=-1)
    painted = np.clip(values, 0, 1)
    painted[missing] = to_rgb(MISSING)
    return painted
