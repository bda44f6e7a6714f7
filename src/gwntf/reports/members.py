"""Typical members of every cluster, in one image."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from gwntf.backends import to_host
from gwntf.core import FloatArray
from gwntf.plots.panels import mosaic
from gwntf.plots.samples import as_picture, check_kind

_ROWS = 30
_COLUMNS = 14
_GAP = 0.06
"""Gap between images, as a share of their side."""


def members_height(model: Any, labels: NDArray[np.int_]) -> float:
    """Return the height of the picture in inches, for a width of 9.5."""
    height, width = model.sample_shape_[:2]
    rows = min(len(np.unique(labels)), _ROWS)
    return float(min(40.0, max(1.2, 8.6 / _COLUMNS * min(height / width, 3.0) * rows + 0.3)))


def draw_members(ax: Any, model: Any, X: Any, labels: NDArray[np.int_]) -> None:
    """Draw one row of images for each cluster, those whose embedding is nearest to its mean direction first."""
    height, width = model.sample_shape_[:2]
    gap = (max(1, round(_GAP * height)), max(1, round(_GAP * width)))
    names, sizes = np.unique(labels, return_counts=True)
    order = np.argsort(-sizes, kind="stable")[:_ROWS]
    rows = [
        [_picture(X[index], tuple(model.sample_shape_)) for index in _typical(model, labels == names[k])] for k in order
    ]
    canvas = mosaic(rows, _COLUMNS, gap=gap, fill=1.0)
    aspect = "auto" if height > 3 * width else "equal"
    ax.imshow(canvas, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect=aspect)
    middles = np.arange(len(rows)) * (height + gap[0]) + height / 2
    ax.set_yticks(middles, [f"{names[k]}: {sizes[k]}" for k in order], fontsize="small")
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _typical(model: Any, members: NDArray[np.bool_]) -> NDArray[np.int_]:
    """Return the first members of a cluster by the angle between their embedding and its mean direction."""
    indices = np.flatnonzero(members)
    rows = normalize(np.asarray(to_host(model.embedding_), dtype=np.float64)[indices])
    return indices[np.argsort(-(rows @ rows.mean(axis=0)), kind="stable")[:_COLUMNS]]


def _picture(sample: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return one sample as an image between 0 and 1, in colour if its last axis has three entries."""
    dense = sample.toarray() if hasattr(sample, "toarray") else sample
    values = np.nan_to_num(np.asarray(dense, dtype=np.float64)).reshape(1, *shape)
    picture: FloatArray = as_picture(values, check_kind(None, shape))[0]
    picture /= picture.max() or 1.0
    return picture
