"""What models put into files besides numbers, text and arrays."""

from typing import Any

import numpy as np

from gwntf.geometry import NearFarCost, SeparableCost, TrainingSamples
from gwntf.io import Record, Records
from gwntf.solver import RECORDS

SESSION = ("callbacks", "progress", "checkpoint")
"""Parameters that belong to a session and not to a model: they are not written, and a loaded model has the defaults."""


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
        raise ValueError("parts of a near-far cost that do not fit each other")
    return NearFarCost(order, bounds, half, near, error)


def _parts_of_near_far(cost: NearFarCost) -> dict[str, Any]:
    return {name: getattr(cost, name) for name in ("order", "bounds", "half", "near", "error")}


MODEL_RECORDS: Records = {
    **RECORDS,
    "NearFarCost": Record(NearFarCost, _parts_of_near_far, _near_far),
    "SeparableCost": Record(SeparableCost, lambda cost: {"axes": cost.axes}, SeparableCost),
    "TrainingSamples": Record(TrainingSamples, lambda samples: samples.parts, TrainingSamples.from_parts),
}
"""By their names in files."""
