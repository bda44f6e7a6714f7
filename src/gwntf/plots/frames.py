"""Where pictures go: one axes, or a grid of small ones inside the frame of one.

Every function of this room takes one axes as `ax`. What needs several panels divides the place of that axes among
them and returns them as an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.core import InputError, MissingLibraryError

_PANEL = (0.86, 0.82)
"""Part of a cell's width and height that its panel takes; the rest is for its title."""

_PER_ROW = 10


def require_matplotlib() -> None:
    """Raise a clear error where matplotlib is not installed, before work starts that would end in a picture.

    Examples
    --------
    >>> from gwntf.plots import require_matplotlib
    >>> require_matplotlib()                                 # silent where it is installed
    """
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise MissingLibraryError("pictures need matplotlib: pip install 'gwntf[plots]'")


def check_axes(ax: Any) -> None:
    """Raise unless matplotlib is there and `ax` is None or one axes, before any work."""
    require_matplotlib()
    if ax is not None and not hasattr(ax, "inset_axes"):
        raise InputError("ax", type(ax).__name__, "one matplotlib axes (a grid is drawn inside its frame)")


def new_axes(ax: Any = None, size: tuple[float, float] | None = None) -> Any:
    """Return the axes that were given, or those of a new figure of that size in inches."""
    check_axes(ax)
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def grid_size(rows: int, columns: int, *, width: float, ratio: float) -> tuple[float, float]:
    """Return the inches of a grid whose cells have that width and whose panels are `ratio` times as high as wide."""
    ratio = min(max(ratio, 0.3), 3.0)
    return width * columns, rows * width * ratio * _PANEL[0] / _PANEL[1] + 0.3


def divide(frame: Any, rows: int, columns: int, count: int | None = None) -> NDArray[Any]:
    """Put panels into the frame of an axes, row by row from the top, and return the first `count` of them."""
    frame.set_axis_off()
    panels = np.empty(rows * columns if count is None else count, dtype=object)
    width, height = 1 / columns, 1 / rows
    for place in range(len(panels)):
        row, column = divmod(place, columns)
        left, bottom = (column + (1 - _PANEL[0]) / 2) * width, 1 - (row + 1) * height
        panels[place] = frame.inset_axes([left, bottom, _PANEL[0] * width, _PANEL[1] * height])
    return panels


def check_columns(columns: Any, count: int) -> int:
    """Check the number of panels in a row: by default up to ten."""
    if columns is None:
        return min(count, _PER_ROW)
    if not isinstance(columns, int | np.integer) or columns < 1:
        raise InputError("columns", repr(columns), "a whole number of at least 1")
    return min(count, int(columns))
