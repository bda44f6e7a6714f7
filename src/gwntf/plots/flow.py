"""Transport of one sample to its model: arrows on an image, and the plan of one mode."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gwntf.core import FloatArray, InputError
from gwntf.data import as_data, fold, unfold
from gwntf.distances import Distance
from gwntf.distances.columns import Plans
from gwntf.plots.frames import check_model, check_sample, new_axes

_TINY = np.finfo(np.float64).tiny
_MAX_ITER, _TOL = 10_000, 1e-7  # of the transports of a sample


def plot_flow(
    model: Any,
    sample: Any,
    *,
    modes: tuple[int, int] = (1, 2),
    threshold: float = 0.05,
    scale: float = 1.0,
    cmap: str = "Greys",
    ax: Any = None,
) -> Any:
    """Draw where the model moves the mass of one sample: an arrow from every pixel to the mean position of its mass.

    The sample is embedded as by `transform`. Along every transported mode each of its fibers x is transported to the
    same fiber x^ of its model by the plan T of the loss; the mass of entry i moves on average to sum_j T_ij j / sum_j
    T_ij. The two image modes give the two coordinates of an arrow; one that is not transported gives zero. A plan
    between all pixels (`SDNMF`) gives both. The circles are the model; their areas are proportional to the mass of
    their pixels.

    Parameters
    ----------
    model : fitted factorization
        With a transport loss.
    sample : array of the shape of one sample
        At least two axes; NaN where nothing was observed, if the model allows it.
    modes : (int, int)
        Vertical and horizontal axis of the image, as axes of X (0 is the samples); the mean over all others, weighted
        by mass, is drawn.
    threshold : float
        Pixels with less than this share of the mass of the largest pixel have no arrow.
    scale : float
        Length of an arrow relative to the distance that its mass moves.
    cmap : str
        Colour map of the image of the sample.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
        The title has the mean distance that the mass of the sample moves.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf import GWNTF, datasets, plots
    >>> X, y = datasets.load_digits_tensor()
    >>> model = GWNTF(4, costs=(None, "grid", "grid"), max_iter=5, tol=0, random_state=0).fit(X[:60])
    >>> plots.plot_flow(model, X[0], ax=Figure().subplots()).get_title().split()[0]
    'flow'
    """
    check_model(model, ax)
    batch = check_sample(model, sample)
    order = _check_modes(modes, len(model.sample_shape_))
    if not 0 <= threshold <= 1:
        raise InputError("threshold", repr(threshold), "a number from 0 to 1")
    if not scale > 0:
        raise InputError("scale", repr(scale), "a positive number")
    _check_transported(model, "modes", modes, order)
    transport = _SampleTransport(model, batch)
    image = _summed(transport.values, order)
    moves = [_weighted(*transport.moves(axis), order) for axis in order]
    moved = np.hypot(*moves)
    from matplotlib.collections import EllipseCollection

    ax = new_axes(ax, (4.6, 4.8))
    ax.imshow(image, cmap=cmap, vmin=0, interpolation="nearest", alpha=0.5)
    mass = _summed(transport.model, order)
    rows, columns = np.nonzero(mass > 0)
    sizes = 0.9 * np.sqrt(mass[rows, columns] / max(float(mass.max()), _TINY))  # the largest nearly fills its pixel
    centers = np.stack([columns, rows], axis=1)
    circles = EllipseCollection(sizes, sizes, np.zeros(len(sizes)), units="xy", offsets=centers)
    circles.set(offset_transform=ax.transData, facecolor="none", edgecolor="C0", linewidth=0.8)
    ax.add_collection(circles, autolim=False)
    rows, columns = np.nonzero(np.isfinite(moved) & (image >= threshold * image.max()))
    down, across = (scale * move[rows, columns] for move in moves)
    units = {"angles": "xy", "scale_units": "xy", "units": "xy", "scale": 1, "width": 0.08}
    ax.quiver(columns, rows, across, down, color="C3", **units)
    mean = np.nansum(image * moved) / max(float(image[np.isfinite(moved)].sum()), _TINY)
    ax.set(xticks=[], yticks=[], xlabel="grey: the sample; circles: its model")
    ax.set_title(f"flow of mass: {mean:.2f} pixels on average")
    return ax


def plot_plan(model: Any, sample: Any, *, mode: int = 1, cmap: str = "viridis", ax: Any = None) -> Any:
    """Draw the transport plan T of one sample along one mode as a heat map, summed over all fibers of that mode.

    Row i, column j: the mass that moves from index i of the sample to index j of its model. Mass on the dashed line
    does not move. The sample is embedded as by `transform` and normalised (`sample_norm`).

    Parameters
    ----------
    model : fitted factorization
        With a transport loss.
    sample : array of the shape of one sample
        NaN where nothing was observed, if the model allows it.
    mode : int
        Axis of X, samples being axis 0; for `SDNMF`, whose plan is between all entries of a sample, 1.
    cmap : str
        Colour map, logarithmic over four decades below the largest entry.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf import GWNTF, datasets, plots
    >>> X, y = datasets.load_digits_tensor()
    >>> model = GWNTF(4, costs=(None, "grid", "grid"), max_iter=5, tol=0, random_state=0).fit(X[:60])
    >>> plots.plot_plan(model, X[0], mode=2, ax=Figure().subplots()).get_xlabel()
    'index in the model'
    """
    check_model(model, ax)
    batch = check_sample(model, sample)
    given: Any = mode
    count = len(model.factors_) - 1
    if not isinstance(given, int | np.integer) or not 1 <= mode <= count:
        allowed = f"an axis of X from 1 to {count} (one sample has no fibers along the samples)"
        raise InputError("mode", repr(mode), allowed)
    _check_transported(model, "mode", mode, [int(mode) - 1])
    plan = _SampleTransport(model, batch).plans(int(mode) - 1).total()
    from matplotlib.colors import LogNorm

    ax = new_axes(ax, (5.2, 4.4))
    top = float(plan.max()) or 1.0
    image = ax.imshow(plan, cmap=cmap, norm=LogNorm(1e-4 * top, top, clip=True), interpolation="nearest")
    ax.plot([-0.5, len(plan) - 0.5], [-0.5, len(plan) - 0.5], color="white", linestyle="--", linewidth=0.8)
    ax.set(title=f"mass moved along axis {mode}", xlabel="index in the model", ylabel="index in the sample")
    ax.figure.colorbar(image, cax=ax.inset_axes([1.03, 0, 0.05, 1]), label="mass")
    return ax


def _check_modes(modes: Any, order: int) -> tuple[int, int]:
    """Return the two axes of a sample, from zero, that make the image."""
    if order < 2:
        raise InputError("sample", "one axis", "an image; use plot_plan for samples of one axis")
    pair = tuple(modes) if isinstance(modes, tuple | list) else ()
    valid = all(isinstance(mode, int | np.integer) and 1 <= mode <= order for mode in pair)
    if not valid or len(pair) != 2 or pair[0] == pair[1]:
        raise InputError("modes", repr(modes), f"two different axes of X from 1 to {order}")
    return int(pair[0]) - 1, int(pair[1]) - 1


def _summed(values: FloatArray, order: tuple[int, int]) -> FloatArray:
    """Return the sum over all axes but two, which are returned in this order."""
    first = np.moveaxis(values, order, (0, 1))
    return np.asarray(first.reshape(*first.shape[:2], -1).sum(axis=-1))


def _weighted(moves: FloatArray, mass: FloatArray, order: tuple[int, int]) -> FloatArray:
    """Return the mean over all axes but two, weighted by mass; NaN where there is none."""
    total = _summed(mass, order)
    moved = _summed(np.where(mass > 0, mass * moves, 0), order)
    return np.where(total > 0, moved / np.where(total > 0, total, 1), np.nan)


def _check_transported(model: Any, argument: str, given: Any, axes: Sequence[int]) -> None:
    """Raise unless the loss of a model transports mass along one of the axes of a sample, counted from zero."""
    if not hasattr(model, "costs_"):
        name = f"{type(model).__name__}, whose loss transports nothing"
        raise InputError("model", name, "a model with a transport loss")
    costs = model.costs_[1:]
    moved = {axis for axis, cost in enumerate(costs) if cost is not None}
    joint = len(costs) < len(model.sample_shape_)
    if not (moved if joint else moved & set(axes)):
        names = ", ".join(str(axis + 1) for axis in sorted(moved)) or "this model transports none of a sample"
        raise InputError(argument, repr(given), f"a transported axis of X ({names})")


class _SampleTransport:
    """The transport of an X of one sample to its model, both normalised, with zero for missing entries."""

    def __init__(self, model: Any, batch: FloatArray) -> None:
        shape = tuple(model.sample_shape_)
        scaled, scale = as_data(batch, name="sample", missing=model.missing).normalised(model.sample_norm)
        rebuilt = np.asarray(model.inverse_transform(model.transform(batch)), np.float64).reshape(shape) / scale[0]
        block: Any = scaled.dense_block
        self.values: FloatArray = block.values.reshape(shape)
        observed = True if block.observed is None else block.observed.reshape(shape)
        self.model: FloatArray = np.where(observed, rebuilt, 0)
        self._costs = model.costs_[1:]  # one per axis of a sample, None for none, or one between all its entries
        self._joint = len(self._costs) < len(shape)
        relaxation = model._relaxation()
        weights = (relaxation.reg_m_data, relaxation.reg_m_model)
        self._distance = Distance(relaxation.reg, *weights, _MAX_ITER, _TOL)

    def moves(self, axis: int) -> tuple[FloatArray, FloatArray]:
        """Return how far the mass of every entry moves along an axis (NaN where there is none), and that mass."""
        shape = self.values.shape
        indices = np.arange(shape[axis], dtype=np.float64)
        at = 0 if self._joint else axis
        if self._costs[at] is None:
            return np.zeros(shape), self.values
        plans = self.plans(at)
        if self._joint:
            grid = np.broadcast_to(indices.reshape(-1, *(1,) * (len(shape) - axis - 1)), shape)
            means = plans.mean_positions(grid.ravel())
            return means.reshape(shape) - grid, plans.scaled.data_marginal.reshape(shape)
        means = plans.mean_positions(indices) - indices[:, None]
        return fold(means, axis, shape), fold(plans.scaled.data_marginal, axis, shape)

    def plans(self, at: int) -> Plans:
        """Solve the transports along one axis, or between all entries."""
        pair = (values.reshape(-1) if self._joint else values for values in (self.values, self.model))
        data, model = (unfold(values, at) if values.ndim > 1 else values[:, None] for values in pair)
        return self._distance.plans(data, model, self._costs[at])
