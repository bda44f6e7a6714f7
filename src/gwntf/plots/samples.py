"""How one sample, or one component, is drawn: as an image, a colour image or a curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from gwntf.core import FloatArray, InputError

MISSING = "#e8a79c"
"""Colour of entries that were not observed."""


def check_kind(kind: Any, shape: tuple[int, ...], *, along_axes: bool = False) -> str:
    """Return how samples of that shape are drawn: as asked for, else as the first way that fits their shape.

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


def panel_shape(kind: str, shape: tuple[int, ...]) -> dict[str, float]:
    """Return the inches across a panel for samples of that shape, and how many times as high as wide it is."""
    if kind == "curve":
        return {"width": 1.8, "ratio": 0.55}
    return {"width": 1.1, "ratio": shape[0] / shape[1]}


def as_picture(values: FloatArray, kind: str) -> FloatArray:
    """Bring samples (n, ...) to what is drawn: images of more than two axes are means over the further ones.

    Missing entries count in no mean; where all are missing, so is the mean.
    """
    if kind != "image" or values.ndim == 3:
        return values
    flat = values.reshape(*values.shape[:3], -1)
    seen = ~np.isnan(flat)
    total = np.where(seen, flat, 0).sum(axis=-1)
    count = seen.sum(axis=-1)
    means: FloatArray = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means


def draw(panel: Any, values: FloatArray, kind: str, *, top: float, cmap: str) -> None:
    """Draw one sample on a panel; `top` is the value at the upper end of the scale, NaN a gap."""
    panel.set_xticks([])
    panel.set_yticks([])
    top = top or 1.0
    if kind == "curve":
        _curve(panel, values, top)
        return
    if kind == "rgb":
        panel.imshow(_colours(values / top), interpolation="nearest")
        return
    import matplotlib as mpl

    colours = mpl.colormaps[cmap].with_extremes(bad=MISSING)
    panel.imshow(np.ma.masked_invalid(values), cmap=colours, vmin=0, vmax=top, interpolation="nearest")


def _curve(panel: Any, values: FloatArray, top: float) -> None:
    """Draw a line, and mark the places of missing entries."""
    places = np.arange(len(values))
    for place in places[np.isnan(values)]:
        panel.axvspan(place - 0.5, place + 0.5, color=MISSING, linewidth=0)
    panel.fill_between(places, values, color="C0", alpha=0.25, linewidth=0)
    panel.plot(places, values, color="C0", linewidth=1.2)
    panel.set_xlim(-0.5, len(values) - 0.5)
    panel.set_ylim(0, 1.05 * top)


def _colours(values: FloatArray) -> FloatArray:
    """Clip to what a screen shows, and paint pixels of which a channel is missing."""
    from matplotlib.colors import to_rgb

    missing = np.isnan(values).any(axis=-1)
    painted = np.clip(values, 0, 1)
    painted[missing] = to_rgb(MISSING)
    return painted
