"""The axes that plots draw on: the one that is given, or a new one, and grids of panels inside its frame."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.core import InputError, MissingLibraryError

_PANEL = (0.86, 0.82)
"""Part of a cell's width and height that its panel takes; the rest is for its title."""

_CELLS = {"curve": (1.8, 0.55), "modes": (2.4, 0.42)}
"""Width of a cell in inches and height of its panel relative to its width, by the kind of plot; images: their own."""

_PER_ROW = 10


def require_matplotlib() -> None:
    """Raise an error that says what to install, unless matplotlib is installed.

    Examples
    --------
    >>> from gwntf.plots import require_matplotlib
    >>> require_matplotlib()                                 # silent where it is installed
    """
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise MissingLibraryError("plots need matplotlib: pip install 'gwntf[plots]'")


def check_axes(ax: Any) -> None:
    """Raise unless matplotlib is installed and `ax` is None or one axes."""
    require_matplotlib()
    if ax is not None and not hasattr(ax, "inset_axes"):
        raise InputError("ax", type(ax).__name__, "one matplotlib axes (a grid is drawn inside its frame)")


def new_axes(ax: Any = None, size: tuple[float, float] | None = None) -> Any:
    """Return `ax`, or if it is None the axes of a new figure of that size in inches."""
    check_axes(ax)
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def grid_size(rows: int, columns: int, kind: str, shape: tuple[int, ...]) -> tuple[float, float]:
    """Return the inches of a grid of plots of that kind, for samples of that shape."""
    width, ratio = _CELLS[kind] if kind in _CELLS else (1.1, min(max(shape[0] / shape[1], 0.3), 3.0))
    return width * columns, rows * width * ratio * _PANEL[0] / _PANEL[1] + 0.3


def divide(frame: Any, rows: int, columns: int, cells: Iterable[int]) -> NDArray[Any]:
    """Draw panels inside the frame of an axes, in the given cells, which are counted row by row from the top."""
    frame.set_axis_off()
    width, height = 1 / columns, 1 / rows
    panels = []
    for row, column in (divmod(cell, columns) for cell in cells):
        left, bottom = (column + (1 - _PANEL[0]) / 2) * width, 1 - (row + 1) * height
        panels.append(frame.inset_axes([left, bottom, _PANEL[0] * width, _PANEL[1] * height]))
    return np.array(panels, dtype=object)


def check_columns(columns: Any, count: int) -> int:
    """Return the number of panels in a row, by default up to ten."""
    if columns is None:
        return min(count, _PER_ROW)
    if not isinstance(columns, int | np.integer) or columns < 1:
        raise InputError("columns", repr(columns), "a whole number of at least 1")
    return min(count, int(columns))
