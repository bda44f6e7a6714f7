"""The transport of one sample to its model, mode by mode."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gwntf.core import FloatArray, InputError
from gwntf.data import as_data, fold, unfold
from gwntf.distances import Distance
from gwntf.distances.columns import Plans

_MAX_ITER, _TOL = 10_000, 1e-7


def check_transported(model: Any, argument: str, given: Any, axes: Sequence[int]) -> None:
    """Raise unless the loss of a model transports mass along one of the axes of a sample, counted from zero."""
    if not hasattr(model, "costs_"):
        name = f"{type(model).__name__}, whose loss transports nothing"
        raise InputError("model", name, "a model with a transport loss")
    costs = model.costs_[1:]
    moved = {axis for axis, cost in enumerate(costs) if cost is not None}
    reached = moved if _joint(costs, model.sample_shape_) else moved & set(axes)
    if not reached:
        names = ", ".join(str(axis + 1) for axis in sorted(moved)) or "this model transports none of a sample"
        raise InputError(argument, repr(given), f"a transported axis of X ({names})")


def check_mode(model: Any, mode: Any) -> int:
    """Return an axis of X, along which mass is transported, as an axis of a sample, counted from zero."""
    count = len(model.factors_) - 1
    if not isinstance(mode, int | np.integer) or not 1 <= mode <= count:
        allowed = f"an axis of X from 1 to {count} (one sample has no fibers along the samples)"
        raise InputError("mode", repr(mode), allowed)
    check_transported(model, "mode", mode, [int(mode) - 1])
    return int(mode) - 1


def _joint(costs: Sequence[Any], shape: Sequence[int]) -> bool:
    """Whether one cost is between all entries of a sample of several axes."""
    return len(costs) < len(shape)


@dataclass(frozen=True)
class SampleTransport:
    """One sample and its model in normalised scale, zero for missing entries, and the costs of the loss."""

    values: FloatArray
    model: FloatArray
    costs: tuple[Any, ...]  # one per axis of a sample, None for none, or one between all its entries
    distance: Distance  # reg, alpha, beta

    @classmethod
    def of(cls, model: Any, batch: FloatArray) -> "SampleTransport":
        """Embed an X of one sample with the model; return both with the costs of the loss."""
        shape = tuple(model.sample_shape_)
        made = model.inverse_transform(model.transform(batch)).reshape(shape).astype(np.float64)
        scaled, _ = as_data(batch, name="sample", missing=model.missing).normalised(model.sample_norm)
        tensor: Any = scaled.dense_block
        if tensor.observed is not None:
            made = np.where(tensor.observed.reshape(shape), made, 0)
        distance = Distance(model.reg, model.reg_m_data, model.reg_m_model, _MAX_ITER, _TOL)
        return cls(tensor.values.reshape(shape), made, tuple(model.costs_[1:]), distance)

    @property
    def joint(self) -> bool:
        """Whether one plan moves mass between all entries of a sample."""
        return _joint(self.costs, self.values.shape)

    def plan(self, axis: int) -> FloatArray:
        """Return the plan along an axis of the sample, summed over its fibers."""
        return self._plans(axis).total()

    def moves(self, axis: int) -> tuple[FloatArray, FloatArray]:
        """Return how far the mass of every entry goes along an axis of the sample, and how much mass goes.

        Both have the shape of a sample; NaN where no mass goes.
        """
        shape = self.values.shape
        places = np.arange(shape[axis], dtype=np.float64)
        at = 0 if self.joint else axis
        if self.costs[at] is None:
            return np.zeros(shape), self.values
        plans = self._plans(at)
        if self.joint:
            grid = np.broadcast_to(places.reshape(-1, *(1,) * (len(shape) - axis - 1)), shape)
            means = plans.mean_places(grid.ravel())
            return means.reshape(shape) - grid, plans.scaled.data_marginal.reshape(shape)
        means = plans.mean_places(places) - places[:, None]
        return fold(means, axis, shape), fold(plans.scaled.data_marginal, axis, shape)

    def _plans(self, at: int) -> Plans:
        """Solve the transports along one axis, or between all entries."""
        pair = (values.reshape(-1) if self.joint else values for values in (self.values, self.model))
        data, model = (unfold(values, at) if values.ndim > 1 else values[:, None] for values in pair)
        return self.distance.plans(data, model, self.costs[at])
