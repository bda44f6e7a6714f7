"""Warnings of a fit. A message says what was found, with numbers, and what to change.

Thresholds are chosen so that default settings on ordinary data give no warning.
"""

import math
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
from gwntf.solver import Result

_LIGHT = 1e-4
"""Fraction of the total mass below which half of the samples have no influence: it is the default `tol`."""

_EMPTY = 1e-10
"""Fraction of the total mass up to which a component counts as empty."""

_MANY = 0.1
"""Fraction of the new samples that may be far from converged without a warning."""

_LONG, _ALIKE = 10, 1.25
"""Samples are probably on the last axis if it is this many times as long as every other axis and the sizes of the first
two axes differ by at most this factor, as those of images."""

_LIBRARIES = ("gwntf.", "sklearn.", "joblib.")
"""Modules that are skipped to find the line of the user's program."""

_NAMED = 8  # maximum number of indices in a message


def warn(message: str, kind: type[Warning]) -> None:
    """Warn at the line of the user's program.

    Python shows the same message once per line, so messages should contain few numbers.
    """
    warnings.warn(message, kind, stacklevel=outside())


def warn_status(status: Status, result: Result, tol: float) -> None:
    """Warn of a fit that stopped before it converged, unless `tol=0` requested all iterations.

    Fits inside a cross-validation do not warn of `max_iter`; the final fit of the best parameters does.
    """
    limited = status is Status.MAX_ITER and tol > 0 and result.n_iter > 0 and not in_cross_validation()
    if limited or status in (Status.ROSE, Status.DIVERGED):
        advice = ""
        if limited and math.isfinite(result.remaining):
            share = result.remaining / (abs(result.objective) or 1.0)
            advice = f" It is predicted to decrease by another {share:.1g} of its value."
        if limited:
            advice += " Raise `max_iter`, or `tol` if the factors are good enough."
        warn(f"{status.message}{advice} (`objective_curve_` has the values.)", ConvergenceWarning)


def warn_new_samples(far: float, max_iter: int) -> None:
    """Warn if many of the new samples are far from converged; never in a cross-validation."""
    if far > _MANY and not in_cross_validation():
        warn(
            f"More than {_MANY:.0%} of the new samples were far from converged after {max_iter} iterations: raise "
            "`max_iter` or `tol`.",
            ConvergenceWarning,
        )


def warn_graph_left_out() -> None:
    """Warn that new samples are embedded without the graph of the fit."""
    warn(
        "New samples are embedded without the graph, so the result is not comparable with the `embedding_` of the fit: "
        "a precomputed `graph` and the graph of data larger than memory cannot be extended to new samples. Compare "
        "results of `transform` only, also for the training samples, or set graph_reg=0.",
        GraphNotExtendedWarning,
    )


def warn_empty_components(factors: Sequence[FloatArray]) -> None:
    """Warn of components whose mass, the product of their column sums, is negligible in the total."""
    masses = np.prod([factor.sum(axis=0, dtype=np.float64) for factor in factors], axis=0)
    empty = np.flatnonzero(masses <= _EMPTY * masses.sum())
    if empty.size:
        warn(
            f"{empty.size} of {masses.size} components have almost no mass ({_some(empty)}): lower `n_components`, or "
            "use another `random_state` or `init`.",
            EmptyComponentWarning,
        )


def warn_isolated(graph: csr_array) -> None:
    """Warn of samples without an edge in the graph."""
    isolated = np.flatnonzero(np.diff(graph.indptr) == 0)
    if isolated.size and graph.shape[0] > 1:
        warn(
            f"{isolated.size} of {graph.shape[0]} samples have no edge in the graph ({_some(isolated)}), so it has no "
            "effect on them: use KNNGraph(weight='binary'), more `n_neighbors`, or a `graph` that connects them.",
            DisconnectedGraphWarning,
        )


def warn_graph_parts(graph: csr_array, clusters: int) -> None:
    """Warn if the graph has more connected components than clusters, not counting isolated samples."""
    tied = np.diff(graph.indptr) > 0
    parts = int(connected_components(graph[tied][:, tied], directed=False)[0])
    if parts > clusters:
        warn(
            f"The graph has {parts} connected components, more than the {clusters} clusters, so some clusters combine "
            "unconnected samples: raise `n_neighbors` or `n_clusters`.",
            DisconnectedGraphWarning,
        )


def warn_all_pairs(mode: int, size: int, tol: float) -> None:
    """Warn of a cost between all pairs of a long mode."""
    warn(
        f"No near-far kernel along axis {mode} reaches kernel_tol={tol:g}, so all {size} x {size} pairs "
        f"({8 * size**2 / 1e9:.2g} GB) are stored: raise `kernel_tol`, or leave the axis out with None in `costs`.",
        CoarseKernelWarning,
    )


def warn_samples_last(shape: Sequence[int]) -> None:
    """Warn of a shape such as (8, 8, 300), probably 300 images with the samples on the last axis."""
    *others, last = shape if len(shape) > 2 else (1, 1, 1)
    if last >= _LONG * max(others) and max(others[:2]) <= _ALIKE * min(others[:2]):
        warn(
            f"X has {others[0]} samples of shape {tuple(shape[1:])}. If the {last} entries of the last axis are the "
            "samples, fit np.moveaxis(X, -1, 0): samples come first.",
            SamplesLastWarning,
        )


def warn_uneven(masses: FloatArray) -> None:
    """Warn if half of the samples are so small that they have no influence."""
    filled = np.sort(masses[masses > 0])
    half = filled.size // 2
    part = float((filled[:half] / filled[-1]).sum() / (filled / filled[-1]).sum()) if half else 1.0
    if part < _LIGHT:
        warn(
            f"Half of the samples have {part:.2g} of the total mass (sums from {filled[0]:.3g} to {filled[-1]:.3g}), "
            "so the others dominate the fit: set sample_norm='l2' or 'l1', or rescale the samples.",
            UnevenSamplesWarning,
        )


def warn_checkpoint(error: OSError) -> None:
    """Warn of a checkpoint that could not be written or removed."""
    warn(
        f"The checkpoint could not be written or removed ({error}). The fit continues and tries again at the next "
        "interval: free disk space, or make the folder of the checkpoint writable.",
        CheckpointWarning,
    )


def _some(indices: Any) -> str:
    """Return the first few indices as text."""
    named = ", ".join(str(index) for index in indices[:_NAMED])
    return named if len(indices) <= _NAMED else f"{named}, ..."


def outside() -> int:
    """Return the `stacklevel` of the first caller outside of the libraries, for a warning in the calling function."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_LIBRARIES):
        frame, level = frame.f_back, level + 1
    return level
