"""Typical members of every cluster, as one mosaic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import to_host
from gwntf.core import FloatArray

_ROWS = 30
_COLUMNS = 14
_GAP = 0.06
"""Between images, as a share of their side."""


def members_height(model: Any, labels: NDArray[np.int_]) -> float:
    """Inches of the mosaic for a width of 9.5."""
    height, width = model.sample_shape_[:2]
    rows = min(len(np.unique(labels)), _ROWS)
    return float(min(40.0, max(1.2, 8.6 / _COLUMNS * min(height / width, 3.0) * rows + 0.3)))


def draw_members(figure: Any, model: Any, X: Any, labels: NDArray[np.int_]) -> None:
    """Draw one row of images for each cluster, those whose embedding lies nearest to its mean direction first."""
    shape = tuple(model.sample_shape_)
    names, sizes = np.unique(labels, return_counts=True)
    order = np.argsort(-sizes, kind="stable")[:_ROWS]
    rows = [_typical(model, np.flatnonzero(labels == names[k])) for k in order]
    height, width = shape[:2]
    step = (height + max(1, round(_GAP * height)), width + max(1, round(_GAP * width)))
    canvas = np.ones((len(rows) * step[0], _COLUMNS * step[1], 3))
    for r, places in enumerate(rows):
        for c, place in enumerate(places):
            corner = (r * step[0], c * step[1])
            canvas[corner[0] : corner[0] + height, corner[1] : corner[1] + width] = _colours(X[place], shape)
    ax = figure.subplots()
    ax.imshow(canvas, interpolation="nearest", aspect="auto" if height > 3 * width else "equal")
    ax.set_yticks(
        np.arange(len(rows)) * step[0] + height / 2,
        [f"{names[k]}: {sizes[k]}" for k in order],
        fontsize="small",
    )
    ax.set_xticks([])
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)


def _typical(model: Any, places: NDArray[np.int_]) -> NDArray[np.int_]:
    """Members by the angle between their embedding and the mean of the cluster."""
    rows = np.asarray(to_host(model.embedding_), dtype=np.float64)[places]
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    nearest = np.argsort(-(rows @ rows.mean(axis=0)), kind="stable")[:_COLUMNS]
    chosen: NDArray[np.int_] = places[nearest]
    return chosen


def _colours(sample: Any, shape: tuple[int, ...]) -> FloatArray:
    """Bring one sample to red, green and blue between 0 and 1; grey unless its last axis is colours."""
    dense = sample.toarray() if hasattr(sample, "toarray") else sample
    values = np.nan_to_num(np.asarray(dense, dtype=np.float64)).reshape(shape)
    if len(shape) == 3 and shape[-1] != 3:
        values = values.mean(axis=-1)
    scaled: FloatArray = values / (values.max() or 1.0)
    return scaled if scaled.ndim == 3 else np.repeat(scaled[:, :, None], 3, axis=2)
