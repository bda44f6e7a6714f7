"""Classes that models write to files and checkpoints, besides numbers, text and arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gwntf._version import __version__
from gwntf.core import Array
from gwntf.estimators.notices import warn_checkpoint
from gwntf.estimators.options import TransportOptions
from gwntf.geometry import AxisCost, KNNGraph, NearFarCost, SeparableCost, TrainingSamples
from gwntf.io import Record, Records, fingerprint
from gwntf.solver import LAYOUT, RECORDS, Checkpoint, Keeper, Problem

SESSION = ("callbacks",)
"""Parameters that are not written to files; a loaded model has their defaults."""

_AXIS = ("positions", "scale", "power", "period")

_NEAR_FAR = ("order", "bounds", "half", "near", "error")


def _near_far(order: Any, bounds: Any, half: Any, near: Any, error: float) -> NearFarCost:
    size = len(order)
    fits = [
        np.array_equal(np.sort(order), np.arange(size)),
        bounds[0] == 0 and bounds[-1] == size and bool((np.diff(bounds) > 0).all()),
        half.shape == (size, len(bounds) - 1) and half.dtype.kind == "f",
        near.format == "csr" and near.shape == (size, size),
        order.dtype == bounds.dtype == np.int64,
    ]
    if not all(fits):
        raise ValueError("inconsistent parts of a near-far cost")
    return NearFarCost(order, bounds, half, near, error)


def _rule(**params: Any) -> KNNGraph:
    rule = KNNGraph(**params)
    rule.check()
    return rule


MODEL_RECORDS: Records = {
    **RECORDS,
    "NearFarCost": Record(NearFarCost, lambda cost: {name: getattr(cost, name) for name in _NEAR_FAR}, _near_far),
    "AxisCost": Record(AxisCost, lambda cost: {name: getattr(cost, name) for name in _AXIS}, AxisCost),
    "SeparableCost": Record(SeparableCost, lambda cost: {"axes": cost.axes}, SeparableCost),
    "KNNGraph": Record(KNNGraph, lambda rule: rule.get_params(deep=False), _rule),
    "TransportOptions": Record(TransportOptions, lambda options: options.get_params(deep=False), TransportOptions),
    "TrainingSamples": Record(TrainingSamples, lambda samples: samples.parts, TrainingSamples.from_parts),
}
"""Records by their names in files."""


def keeper_of(
    models: Sequence[Any], checkpoint: Checkpoint | None, problem: Problem, scale: Array, device: str | None
) -> Keeper:
    """Return the `Keeper` for the checkpoint of the fits of models that differ only in `random_state`."""
    if checkpoint is None:
        return Keeper()
    first, seeds = models[0], [model.random_state for model in models]
    own = {
        name: value
        for name, value in first.get_params(deep=False).items()
        if name not in (*SESSION, "random_state", "graph")  # the built graph is compared instead
    }
    facts = {
        "library": (__version__, LAYOUT),
        "class": type(first).__name__,
        "params": own,
        "seeds": [int(seed) if isinstance(seed, int | np.integer) else None for seed in seeds],
        "engine": (problem.data.backend.name, device),
        "data": (problem.data.shape, problem.data.checksums()),
        "scale": scale,
        "graph": problem.graph,
        "costs": getattr(first, "costs_", None),
    }
    return Keeper(checkpoint, fingerprint(facts, MODEL_RECORDS), warn_checkpoint)
