"""Warnings of a fit: what was found, in numbers, and what to change.

Thresholds are set so that default settings on ordinary data give no warning.
"""

import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from gwntf.core import (
    CheckpointWarning,
    CoarseKernelWarning,
    DisconnectedGraphWarning,
    EmptyComponentWarning,
    FloatArray,
    GraphNotExtendedWarning,
    SamplesLastWarning,
    Status,
    UnevenSamplesWarning,
)
from gwntf.estimators.sklearn_compat import in_cross_validation

_LIGHT = 1e-4
"""Part of all mass below which half of the samples do not count: the default `tol` would not see them change."""

_MANY = 0.1
"""Part of the new samples that may be far from converged."""

_LONG, _ALIKE = 10, 1.25
"""Samples are probably last where that axis is so many times as long as every other, and the sizes of the first two
differ by at most this factor, as those of images do."""

_LIBRARIES = ("gwntf.", "sklearn.", "joblib.")
"""Modules that call each other between the user's program and a warning."""

_NAMED = 8  # components or samples that a message names


def warn(message: str, kind: type[Warning]) -> None:
    """Warn at the line of the user's program. Python shows a text once per line, so it should have few numbers."""
    warnings.warn(message, kind, stacklevel=outside())


def warn_status(status: Status, curve: FloatArray, tol: float) -> None:
    """Warn of a fit that ended before it converged, unless `tol=0` requested all iterations.

    Of the many fits of a cross-validation none warns of its limit; the one of the best settings does.
    """
    limited = status is Status.MAX_ITER and tol > 0 and len(curve) > 1 and not in_cross_validation()
    if limited or status in (Status.ROSE, Status.DIVERGED):
        advice = " Raise `max_iter`, or `tol` if the factors are good enough." if limited else ""
        warn(f"{status.message}{advice} (`objective_curve_` has the values.)", ConvergenceWarning)


def warn_new_samples(far: float, max_iter: int) -> None:
    """Warn if a considerable part of the new samples is far from converged; never in a cross-validation."""
    if far > _MANY and not in_cross_validation():
        warn(
            f"More than {_MANY:.0%} of the new samples were far from converged after {max_iter} iterations: raise "
            "`max_iter` or `tol`.",
            ConvergenceWarning,
        )


def warn_graph_left_out() -> None:
    """Warn that new samples are embedded without the graph of the fit."""
    warn(
        "The embedding of new samples has no graph, so it is not comparable with the `embedding_` of the fit: a ready "
        "`graph` and data larger than memory cannot be extended to new samples. Compare embeddings by `transform` "
        "alone, also of the training samples, or set graph_reg=0.",
        GraphNotExtendedWarning,
    )


def warn_empty_components(factors: Sequence[FloatArray]) -> None:
    """Warn of components whose mass, the product of their column sums, is lost beside that of all."""
    masses = np.prod([factor.sum(axis=0, dtype=np.float64) for factor in factors], axis=0)
    empty = np.flatnonzero(masses <= np.finfo(factors[0].dtype).eps ** 2 * masses.sum())
    if empty.size:
        warn(
            f"{empty.size} of {masses.size} components have no mass ({_some(empty)}): lower `n_components`, or start "
            "elsewhere with another `random_state` or `init`.",
            EmptyComponentWarning,
        )


def warn_isolated(graph: csr_array) -> None:
    """Warn of samples without a neighbour."""
    alone = np.flatnonzero(np.diff(graph.indptr) == 0)
    if alone.size and graph.shape[0] > 1:
        warn(
            f"{alone.size} of {graph.shape[0]} samples have no edge in the graph ({_some(alone)}), which says nothing "
            "of them: use KNNGraph(weight='binary'), more `n_neighbors`, or a `graph` that connects them.",
            DisconnectedGraphWarning,
        )


def warn_graph_parts(graph: csr_array, clusters: int) -> None:
    """Warn of more connected parts, samples without a neighbour left out, than clusters."""
    tied = np.diff(graph.indptr) > 0
    parts = int(connected_components(graph[tied][:, tied], directed=False)[0])
    if parts > clusters:
        warn(
            f"The graph falls into {parts} parts, more than the {clusters} clusters, so some clusters join samples "
            "that it keeps apart: raise `n_neighbors` or `n_clusters`.",
            DisconnectedGraphWarning,
        )


def warn_all_pairs(mode: int, size: int, tol: float) -> None:
    """Warn of a cost between all pairs of a long mode."""
    warn(
        f"No near-far kernel along axis {mode} is exact to kernel_tol={tol:g}, so all {size} x {size} pairs "
        f"({8 * size**2 / 1e9:.2g} GB) are stored: raise `kernel_tol`, or leave the axis out with None in `costs`.",
        CoarseKernelWarning,
    )


def warn_samples_last(shape: Sequence[int]) -> None:
    """Warn of a shape such as (8, 8, 300), which 300 images have whose samples are last."""
    *others, last = shape if len(shape) > 2 else (1, 1, 1)
    if last >= _LONG * max(others) and max(others[:2]) <= _ALIKE * min(others[:2]):
        warn(
            f"X has {others[0]} samples of shape {tuple(shape[1:])}. If it is {last} samples along the last axis, fit "
            "np.moveaxis(X, -1, 0): samples are first.",
            SamplesLastWarning,
        )


def warn_uneven(masses: FloatArray) -> None:
    """Warn of samples so light beside others that half of them do not count."""
    filled = np.sort(masses[masses > 0])
    half = filled.size // 2
    part = float((filled[:half] / filled[-1]).sum() / (filled / filled[-1]).sum()) if half else 1.0
    if part < _LIGHT:
        warn(
            f"Half of the samples have {part:.2g} of all mass (sums from {filled[0]:.3g} to {filled[-1]:.3g}), so the "
            "others decide the fit: set sample_norm='l2' or 'l1', or bring the samples to one scale.",
            UnevenSamplesWarning,
        )


def warn_checkpoint(error: OSError) -> None:
    """Warn of a checkpoint that could not be written or removed."""
    warn(
        f"The checkpoint could not be written or removed ({error}). The fit goes on and tries again at the next "
        "time: free space on the disk, or make the folder of `checkpoint` writable.",
        CheckpointWarning,
    )


def _some(places: Any) -> str:
    """Name the first few."""
    named = ", ".join(str(place) for place in places[:_NAMED])
    return named if len(places) <= _NAMED else f"{named}, ..."


def outside() -> int:
    """Return the level of the first caller that is not of a library, for a warning in the calling function."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_LIBRARIES):
        frame, level = frame.f_back, level + 1
    return level
