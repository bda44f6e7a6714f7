"""A mixture with the parts that explain it, and their shares with intervals."""

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.core import FloatArray, InputError
from gwntf.plots.frames import check_axes, new_axes
from gwntf.unmixing import Unmixing

_EMPTY = 0.002  # places at both ends with less than this fraction of the highest one are not drawn
_BOTTOM, _GAP, _RESIDUAL = (
    0.11,
    0.03,
    0.27,
)  # relative to the frame: below and between the panels; part of the lower one
_ROW, _SHORT = 0.17, 14  # height of a row of the legend in inches, and length of names of which three fit in it
_MISSING_COLOR = "0.3"


def plot_unmixing(
    result: Unmixing, sample: int = 0, *, axis: str = "position", descending: bool = False, ax: Any = None
) -> NDArray[Any]:
    """Draw a mixture, the parts that explain it, and below them what no part explains.

    The parts are stacked areas where the mass of each is in the mixture. A dashed line is the sum of the parts where
    they are in the references, before they were moved. Both panels are in percent of the highest point of the mixture.

    Parameters
    ----------
    result : Unmixing
        What `Unmixer.unmix` returned.
    sample : int, default=0
        Index of the mixture.
    axis : str, default="position"
        Name of the axis.
    descending : bool, default=False
        Whether the axis runs from high to low positions, as is usual for ppm.
    ax : matplotlib axes, optional
        The panels are drawn inside its frame; a new figure by default.

    Returns
    -------
    (2,) array of matplotlib axes
        The parts, and the residual.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf import Unmixer, datasets, plots
    >>> data = datasets.load_example_spectra()
    >>> result = Unmixer(data.references, positions=data.ppm).fit().unmix(data.mixtures)
    >>> plots.plot_unmixing(result, 2, axis="ppm", ax=Figure().subplots()).shape
    (2,)
    """
    check_axes(ax)
    sample = _check_sample(result, sample)
    frame = new_axes(ax, (6.4, 5.2))
    frame.set_axis_off()
    colors, positions = part_colors(len(result.names)), result.positions
    percent = 100 / result.mixtures[sample].max()
    mixture, model, missing = (percent * one[sample] for one in (result.mixtures, result.model, result.missing))
    names = ["mixture", "before moving", *result.names, "not explained"]
    per_row = 3 if max(map(len, names)) <= _SHORT else 2
    inches = frame.figure.get_figheight() * frame.get_position().height
    above = min(0.5, _ROW * (math.ceil(len(names) / per_row) + 0.6) / inches)
    room = 1 - above - _BOTTOM - _GAP
    top = frame.inset_axes((0.11, _BOTTOM + _GAP + _RESIDUAL * room, 0.88, (1 - _RESIDUAL) * room))
    bottom = frame.inset_axes((0.11, _BOTTOM, 0.88, _RESIDUAL * room), sharex=top)
    areas = top.stackplot(positions, percent * result.moved_parts[sample], colors=colors, alpha=0.75, linewidth=0)
    (outline,) = top.plot(positions, mixture, color="black", linewidth=1)
    (dashed,) = top.plot(positions, model, color="0.35", linewidth=1, linestyle=(0, (3, 2)))
    rest = bottom.fill_between(positions, missing, color=_MISSING_COLOR, linewidth=0.6)
    used = np.flatnonzero(np.maximum(mixture, model) > 100 * _EMPTY)
    low, high = positions[used[[0, -1]]]
    margin = 0.03 * (high - low) or 1.0
    limits = (max(low - margin, positions[0]), min(high + margin, positions[-1]))
    height = 1.05 * float(max(100.0, model.max()))
    top.set(xlim=limits[::-1] if descending else limits, ylim=(0, height))
    bottom.set(ylim=(0, max(height * _RESIDUAL / (1 - _RESIDUAL), 1.05 * float(missing.max()))))
    top.tick_params(labelbottom=False, labelsize="small")
    bottom.tick_params(labelsize="small")
    bottom.set_xlabel(plain_text(axis), fontsize="small")
    top.set_ylabel("% of highest point", fontsize="small")
    bottom.set_ylabel("residual", fontsize="small")
    for one in (top, bottom):
        one.spines[["top", "right"]].set_visible(False)
    place = {"loc": "upper left", "bbox_to_anchor": (0.08, 1.0), "borderaxespad": 0}
    legend = {"ncols": per_row, "fontsize": "small", "frameon": False, "handlelength": 1.3, "columnspacing": 1.2}
    handles = [outline, dashed, *areas, rest]
    frame.legend(handles, [plain_text(name, 20) for name in names], **place, **legend).set_in_layout(False)
    return np.array([top, bottom])


def plot_shares(result: Unmixing, sample: int = 0, *, ax: Any = None) -> Any:
    """Draw the shares of the parts in a mixture as bars, with their intervals as error bars.

    Parameters
    ----------
    result : Unmixing
        What `Unmixer.unmix` returned.
    sample : int, default=0
        Index of the mixture.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf import Unmixer, datasets, plots
    >>> data = datasets.load_example_spectra()
    >>> result = Unmixer(data.references, positions=data.ppm).fit().unmix(data.mixtures)
    >>> plots.plot_shares(result, 2, ax=Figure().subplots()).get_xlabel()
    'share in percent, 90 % interval'
    """
    check_axes(ax)
    sample = _check_sample(result, sample)
    count = len(result.names)
    ax = new_axes(ax, (5.0, 0.9 + 0.4 * count))
    shares, lower, upper = (100 * one[sample] for one in (result.shares, result.lower, result.upper))
    errors = np.stack([shares - lower, upper - shares])
    ax.barh(np.arange(count), shares, xerr=errors, color=part_colors(count), alpha=0.75, height=0.65, capsize=3)
    right = max(float(upper.max()), 1.0)
    for row, share in enumerate(shares):
        ax.text(upper[row] + 0.02 * right, row, f"{share:.1f}", va="center", fontsize="small")
    ax.set_yticks(np.arange(count), [plain_text(name) for name in result.names], fontsize="small")
    ax.set(xlim=(0, 1.16 * right), ylim=(count - 0.4, -0.6))
    ax.set_xlabel(f"share in percent, {100 * result.level:g} % interval", fontsize="small")
    ax.tick_params(axis="x", labelsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def part_colors(count: int) -> FloatArray:
    """Return a colour for every part, repeated after twenty."""
    import matplotlib as mpl

    return np.asarray(mpl.colormaps["tab10" if count <= 10 else "tab20"](np.arange(count) % 20))


def plain_text(name: str, length: int = 24) -> str:
    """Return a name as matplotlib draws it without formulas, shortened, with unprintable characters replaced."""
    text = "".join(c if c.isprintable() else "?" for c in name)
    text = text if len(text) <= length else f"{text[: length - 1]}…"
    return text.replace("$", "\\$")


def _check_sample(result: Any, sample: Any) -> int:
    if not isinstance(result, Unmixing):
        raise InputError("result", type(result).__name__, "what Unmixer.unmix returns")
    try:
        index = operator.index(sample)
    except TypeError as error:
        raise InputError("sample", repr(sample), "the index of a mixture") from error
    if not 0 <= index < len(result.shares):
        raise InputError("sample", str(index), f"an index from 0 to {len(result.shares) - 1}")
    return index
