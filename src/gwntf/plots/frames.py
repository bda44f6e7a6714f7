"""The axes that plots draw on, grids of panels inside them, and checks of what is drawn."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import to_host
from gwntf.core import FloatArray, InputError, MissingLibraryError
from gwntf.data import as_real_array, masked_to_nan
from gwntf.estimators import TensorClustering

_PANEL, _CURVE_PANEL = (0.07, 0.0, 0.86, 0.82), (0.19, 0.2, 0.77, 0.62)
"""Left, bottom, width and height of a panel as shares of its cell; the rest is for its title and axes of a curve."""

_CELLS = {"curve": (1.8, 0.55), "modes": (2.4, 0.42)}
"""Width of a cell in inches and height of its panel relative to its width, by kind of plot; images have their own."""

_PER_ROW = 10


def require_matplotlib() -> None:
    """Raise an error that says what to install, unless matplotlib is installed.

    Examples
    --------
    >>> from gwntf.plots import require_matplotlib
    >>> require_matplotlib()                                 # returns None where it is installed
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
    cell, ratio = _CELLS[kind] if kind in _CELLS else (1.1, min(max(shape[0] / shape[1], 0.3), 3.0))
    *_, width, height = _CURVE_PANEL if kind in _CELLS else _PANEL
    return cell * columns, rows * cell * ratio * width / height + 0.3


def divide(
    frame: Any, rows: int, columns: int, cells: Iterable[int], labels: tuple[str, str] | None = None
) -> NDArray[Any]:
    """Draw panels inside the frame of an axes, in the given cells, which are counted row by row from the top.

    With `labels`, for curves, panels at the bottom have the first of them at their horizontal axis, those at the left
    the second at their vertical one.
    """
    frame.set_axis_off()
    left, bottom, width, height = _PANEL if labels is None else _CURVE_PANEL
    panels = []
    filled = list(cells)
    for cell in filled:
        row, column = divmod(cell, columns)
        bounds = [(column + left) / columns, 1 - (row + 1 - bottom) / rows, width / columns, height / rows]
        panels.append(frame.inset_axes(bounds))
        if labels is not None and cell + columns not in filled:
            panels[-1].set_xlabel(labels[0], fontsize="x-small", labelpad=1)
        if labels is not None and column == 0:
            panels[-1].set_ylabel(labels[1], fontsize="x-small", labelpad=1)
    return np.array(panels, dtype=object)


def check_columns(columns: Any, count: int) -> int:
    """Return the number of panels in a row, by default up to ten."""
    if columns is None:
        return min(count, _PER_ROW)
    if not isinstance(columns, int | np.integer) or columns < 1:
        raise InputError("columns", repr(columns), "a whole number of at least 1")
    return min(count, int(columns))


def check_model(model: Any, ax: Any = None) -> None:
    """Raise unless the model is a fitted factorization and `ax` can be drawn on."""
    check_axes(ax)
    if isinstance(model, TensorClustering):
        raise InputError("model", "a TensorClustering", "a fitted factorization, such as its `model_`")
    if not hasattr(model, "components_"):
        raise InputError("model", f"{type(model).__name__}, which is not fitted", "a fitted factorization")


def _as_array(model: Any, values: Any, name: str) -> NDArray[Any]:
    return as_real_array(masked_to_nan(to_host(values), missing=model.missing, name=name), name)


def check_samples(model: Any, X: Any, name: str = "X") -> FloatArray:
    """Return samples in the layout of the X of `fit`, as float64; missing entries are NaN."""
    values = _as_array(model, X, name)
    layouts = {tuple(model.sample_shape_), (model.components_.shape[1],)}
    if values.ndim < 2 or values.shape[1:] not in layouts or len(values) == 0:
        allowed = " or ".join(f"(n, {', '.join(map(str, layout))})" for layout in sorted(layouts, key=len)[::-1])
        raise InputError(name, f"shape {values.shape}", f"samples of shape {allowed}")
    floats: FloatArray = values.astype(np.float64)
    return floats.reshape(len(floats), *to_host(model.inverse_transform(model.embedding_[:1])).shape[1:])


def check_sample(model: Any, sample: Any) -> FloatArray:
    """Return one sample as an X of one sample, in the layout of the X of `fit`."""
    values = _as_array(model, sample, "sample")
    shape = tuple(model.sample_shape_)
    if values.shape not in {shape, (model.components_.shape[1],)}:
        raise InputError("sample", f"shape {values.shape}", f"one sample, of shape {shape}")
    return check_samples(model, values[None], "sample")


def component_masses(model: Any) -> FloatArray:
    """Return the mass of every component: the sum of all entries of its tensor."""
    embedding, components = to_host(model.embedding_), to_host(model.components_)
    return np.asarray(embedding.sum(axis=0, dtype=np.float64) * components.sum(axis=1))


def choose_components(model: Any, components: Any) -> NDArray[np.int_]:
    """Return indices of components by decreasing mass: all, a number of them, or a sequence of given ones."""
    rank = model.components_.shape[0]
    order = np.argsort(-component_masses(model), kind="stable")
    if components is None:
        return order
    if isinstance(components, int | np.integer) and not isinstance(components, bool):
        if not 1 <= components <= rank:
            raise InputError("components", str(components), f"a number from 1 to {rank}")
        return order[: int(components)]
    allowed = "a number of components or a sequence of their indices"
    chosen = as_real_array(components, "components", allowed)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or chosen.size == 0:
        raise InputError("components", repr(components), allowed)
    outside = chosen[(chosen < 0) | (chosen >= rank)]
    if outside.size:
        raise InputError("components", f"the index {outside[0]}", f"indices from 0 to {rank - 1}")
    return order[np.isin(order, chosen)]
