"""Feature vectors of samples for every graph metric; distances between them define the nearest neighbours.

`docs/clustering.md` describes the metrics. For "wasserstein" the L1 distance between two feature vectors is the
transport distance between the samples' fibers for the cost |i - j|, summed over the axes, if fibers have equal masses.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
from scipy.ndimage import gaussian_filter, gaussian_filter1d

from gwntf.core import FloatArray, InputError
from gwntf.data import Block, DataTensor, as_real_array
from gwntf.geometry import neighbors
from gwntf.geometry.neighbors import directions

GRAPH_METRICS = (
    "cosine",
    "euclidean",
    "gradient",
    "orientation",
    "orientation-coarse",
    "orientation-fine",
    "wasserstein",
)

COMPARED = {"wasserstein": "manhattan"}
"""Distance between feature vectors, by metric, if it is not the Euclidean distance."""

GraphMetric: TypeAlias = str | Callable[[FloatArray], Any]

_BLUR = 0.7

_DIRECTIONS = 8

_POOLING = {"orientation": 1 / 16, "orientation-coarse": 1 / 8, "orientation-fine": 0.0}
"""Pooling width as a fraction of the image size; 0 pools over a single pixel."""

_MIN_WIDTH, _PIXEL_WIDTH = 0.5, 0.35
"""Smallest pooling width in pixels, and the width for a single pixel."""


def sample_features(tensor: DataTensor, metric: GraphMetric, dtype: Any = None) -> tuple[Any, str]:
    """Return one feature vector per sample (dense, sparse or in a temporary file), and the distance between them.

    The distance is "euclidean" or "manhattan". Without `dtype`, features have the number type of the metric; for
    several blocks they are float32 if pynndescent will search them, because it converts to float32.
    """
    if callable(metric):
        block = tensor.dense_block
        if block is None:
            raise RuntimeError("check_metric was not called")
        return _callable_features(metric, block.host.values.astype(np.float64)), "euclidean"
    several = len(tensor.blocks.slices) > 1
    if dtype is None and several and len(tensor) > neighbors.EXACT_LIMIT and find_spec("pynndescent"):
        dtype = np.float32
    rows = tensor.stacked(partial(block_features, metric=metric, several=several, dtype=dtype))
    return rows, COMPARED.get(metric, "euclidean")


def block_features(block: Block, metric: str, several: bool = False, dtype: Any = None) -> Any:
    """Return the features of the samples of a block under a named metric, computed in batches.

    With `several` blocks, the extra coordinate of `directions` for samples of zeros is always present, so that all
    blocks have equally many columns.
    """
    parts = []
    for part, rows in block.float64_rows():
        found = rows if block.sparse else _dense_features(rows.reshape(-1, *block.shape[1:]), metric)
        found = found if metric in ("euclidean", "wasserstein") else directions(found, several)
        parts.append((part, found.astype(dtype or found.dtype, copy=False)))
    if len(parts) == 1:
        return parts[0][1]
    whole = np.zeros((block.shape[0], max(found.shape[1] for _, found in parts)), parts[0][1].dtype)
    for part, found in parts:
        whole[part, : found.shape[1]] = found
    return whole


def _dense_features(samples: FloatArray, metric: str) -> FloatArray:
    if metric == "gradient":
        return _edges(samples).reshape(len(samples), -1)
    if metric in _POOLING:
        return _orientations(samples, _POOLING[metric])
    return _cumulative(samples) if metric == "wasserstein" else samples.reshape(len(samples), -1)


def check_metric(tensor: DataTensor, metric: GraphMetric) -> None:
    """Raise `InputError` if the metric does not support missing entries, sparse data or data out of core."""
    given = "a callable" if callable(metric) else repr(metric)
    if not tensor.in_memory and not tensor.complete:
        given = "a neighbour graph for chunked data with missing entries"
        raise InputError("graph", given, "a precomputed graph, or graph_reg=0")
    if (tensor.sparse or not tensor.complete) and (callable(metric) or metric not in ("cosine", "euclidean")):
        why = "a sparse tensor" if tensor.sparse else "missing entries"
        raise InputError("metric", f"{given} with {why}", "'cosine' or 'euclidean'")
    if callable(metric) and not tensor.in_memory:
        raise InputError("metric", "a callable with chunked data", "a named metric")


def _edges(samples: FloatArray) -> FloatArray:
    """Return the magnitude of the gradient along all axes longer than one, after a Gaussian blur."""
    axes = tuple(axis for axis in range(1, samples.ndim) if samples.shape[axis] > 1)
    if not axes:
        return samples
    smooth = gaussian_filter(samples, _BLUR, axes=axes)
    slopes = [np.gradient(smooth, axis=axis) for axis in axes]
    magnitude: FloatArray = np.sqrt(sum(slope**2 for slope in slopes))
    return magnitude


def _orientations(samples: FloatArray, part: float) -> FloatArray:
    """Return the square roots of pooled edge strengths, one image per direction.

    The first two axes longer than one are those of the image; further axes are channels. The gradient at a pixel is
    split between the two nearest of eight directions by linear interpolation in its angle. Each direction is pooled
    by a Gaussian and sampled once per pooling width.
    """
    axes = tuple(axis for axis in range(1, samples.ndim) if samples.shape[axis] > 1)[:2]
    if not axes:
        return np.sqrt(samples.reshape(len(samples), -1))
    widths = [max(_MIN_WIDTH, part * samples.shape[axis]) if part else _PIXEL_WIDTH for axis in axes]
    strength, angle = _polar(gaussian_filter(samples, _BLUR if part else _PIXEL_WIDTH, axes=axes), axes)
    kept = [slice(None)] * samples.ndim
    for axis, width in zip(axes, widths, strict=True):
        step = max(1, round(width))
        kept[axis] = slice(step // 2, None, step)
    rows = []
    for direction in range(_DIRECTIONS):
        turn = np.abs((angle - direction + _DIRECTIONS / 2) % _DIRECTIONS - _DIRECTIONS / 2)
        pooled = strength * np.maximum(1 - turn, 0)
        for axis, width in zip(axes, widths, strict=True):
            pooled = gaussian_filter1d(pooled, width, axis=axis)
        rows.append(np.sqrt(pooled[tuple(kept)]).reshape(len(samples), -1).astype(np.float32))
    return np.concatenate(rows, axis=1)


def _polar(samples: FloatArray, axes: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Return the length of the gradient along one or two axes, and its angle in units of one direction."""
    slopes = [np.gradient(samples, axis=axis) for axis in axes]
    across = slopes[1] if len(axes) > 1 else np.zeros_like(slopes[0])
    return np.hypot(slopes[0], across), np.arctan2(slopes[0], across) * (_DIRECTIONS / (2 * np.pi))


def _cumulative(samples: FloatArray) -> FloatArray:
    """Return cumulative sums along every axis, divided by its number of steps, of samples scaled to mass one."""
    mass = samples.reshape(len(samples), -1).sum(axis=1)
    scaled = samples / np.where(mass > 0, mass, 1).reshape(-1, *(1,) * (samples.ndim - 1))
    sums = [
        np.cumsum(scaled, axis=axis).reshape(len(samples), -1) / max(samples.shape[axis] - 1, 1)
        for axis in range(1, samples.ndim)
    ]
    return np.concatenate(sums, axis=1)


def _callable_features(metric: Callable[[FloatArray], Any], samples: FloatArray) -> FloatArray:
    rows = as_real_array(metric(samples), "metric(X)").astype(np.float64)
    if rows.ndim < 2 or len(rows) != len(samples) or not np.isfinite(rows).all():
        allowed = f"{len(samples)} rows of finite numbers, one per sample"
        raise InputError("metric", f"a function that returned shape {rows.shape}", allowed)
    return rows.reshape(len(rows), -1)
