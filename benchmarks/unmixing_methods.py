"""The methods that the cases of unmixing compare, with one setting each for all data of a kind."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from gwntf import Unmixer
from gwntf.core import FloatArray
from gwntf.unmixing import Calibration

Method = Callable[[FloatArray], FloatArray]
"""From samples in rows to nonnegative weights of the references in rows, in any unit."""

OURS = "Unmixer"
OURS_OTHER = "Unmixer, the other calibration"
LEAST_SQUARES = "nonnegative least squares"
KL = "KL"
BLURRED = ", blurred"
GRID = "least squares over shifts, smallest residual"
GRID_TRIANGULAR = "least squares over shifts, smallest (x-y)²/(x+y)"
POT = "POT, ot.bregman.unmix"

_TINY = 1e-300
_FLOOR = 1e-9
_MOST_STEPS, _STEADY = 5_000, 1e-6
"""Steps of EM, and the largest change of a share, in relation to their sum, in ten of them at which it ends."""

_POT = {"reg": 0.008, "reg0": 1.0, "alpha": 0.7}
"""Parameters of `ot.bregman.unmix`: the regularization of our cost, and a weight of the prior that suits these data."""


class Problem(NamedTuple):
    """References of sum one in rows, and the positions of their places."""

    positions: FloatArray
    references: FloatArray


def problem(positions: FloatArray, references: FloatArray) -> Problem:
    """Return references scaled to sum one, with a small mass at every place."""
    raised = np.asarray(references, np.float64) + _FLOOR
    return Problem(np.asarray(positions, np.float64), raised / raised.sum(axis=1, keepdims=True))


def least_squares(rows: FloatArray, parts: FloatArray) -> FloatArray:
    """Return the nonnegative weights of the rows of `parts` with the smallest residual."""
    columns = np.ascontiguousarray(parts.T)
    return np.stack([nnls(columns, row)[0] for row in rows])


def kullback_leibler(rows: FloatArray, parts: FloatArray) -> FloatArray:
    """Return the weights with the largest Poisson likelihood, by EM until they change no more."""
    weights = np.full((len(rows), len(parts)), 1 / len(parts))
    mass, active, before = parts.sum(axis=1), np.arange(len(rows)), weights.copy()
    for step in range(1, _MOST_STEPS + 1):
        own = weights[active]
        weights[active] = own * ((rows[active] / np.maximum(own @ parts, _TINY)) @ parts.T) / mass
        if step % 10 == 0:
            change = np.abs(weights[active] - before[active]).max(axis=1)
            active = active[change > _STEADY * weights[active].sum(axis=1)]
            if not active.size:
                break
            before = weights.copy()
    return weights


def blurred(rows: FloatArray, positions: FloatArray, width: float) -> FloatArray:
    """Return rows whose mass is spread by exp(-distance / width), each sum unchanged."""
    decay = np.exp(-np.diff(positions) / width)

    def spread(values: FloatArray) -> FloatArray:
        forward, backward = values.copy(), values.copy()
        for place in range(1, len(positions)):
            forward[place] += decay[place - 1] * forward[place - 1]
        for place in range(len(positions) - 2, -1, -1):
            backward[place] += decay[place] * backward[place + 1]
        total: FloatArray = forward + backward - values
        return total

    kept = spread(np.ones((len(positions), 1)))
    return np.ascontiguousarray(spread(rows.T / kept).T)


def over_shifts(rows: FloatArray, moved: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least-squares weights at the best shift: by the residual, and by the sum of (x - y)^2 / (x + y).

    `moved` are the parts at every shift, in columns, of shape (n_shifts, n_places, n_parts).
    """
    found = []
    for row in rows:
        weights = [nnls(parts, row) for parts in moved]
        models = [parts @ own for parts, (own, _) in zip(moved, weights, strict=True)]
        triangular = [np.sum((row - model) ** 2 / (row + model + _TINY)) for model in models]
        best = int(np.argmin([residual for _, residual in weights])), int(np.argmin(triangular))
        found.append([weights[k][0] for k in best])
    chosen = np.array(found)
    return chosen[:, 0], chosen[:, 1]


def shifted_parts(case: Problem, unmixer: Unmixer) -> FloatArray:
    """Return the references at the shifts that the calibration of our own method tries, so that both have the same."""
    calibration = Calibration("shift", case.positions, case.references.T, unmixer.scale_)
    return np.ascontiguousarray(calibration.moved + _FLOOR / len(case.positions))


def pot_unmix(rows: FloatArray, case: Problem, scale: float) -> FloatArray:
    """Return the weights of POT, with the cost of our own method."""
    import ot

    count = len(case.references)
    cost = np.abs(case.positions[:, None] - case.positions) / scale
    prior = np.full(count, 1 / count)
    raised = rows + _FLOOR
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            ot.bregman.unmix(row / row.sum(), case.references.T, cost, 1 - np.eye(count), prior, **_POT)
            for row in raised
        ]
    return np.stack(found)


def our_method(case: Problem, calibration: str | None) -> Unmixer:
    """Return the unmixer with its automatic settings."""
    return Unmixer(case.references, positions=case.positions, calibration=calibration).fit()


def methods(case: Problem, calibration: str | None) -> dict[str, Callable[[FloatArray], Mapping[str, FloatArray]]]:
    """Return functions from samples to the weights of one or two methods by name.

    Samples are divided by their sums. The width of the blur is `drift_` of our own method.
    """
    unmixer = our_method(case, calibration)
    other = our_method(case, "shift" if calibration is None else None)
    moved = shifted_parts(case, unmixer)
    width = unmixer.drift_
    soft = blurred(case.references, case.positions, width)

    def both_grids(rows: FloatArray) -> Mapping[str, FloatArray]:
        return dict(zip((GRID, GRID_TRIANGULAR), over_shifts(rows, moved), strict=True))

    def by_name(name: str, run: Callable[[FloatArray], Any]) -> Callable[[FloatArray], Mapping[str, FloatArray]]:
        return lambda rows: {name: np.asarray(run(rows))}

    def soften(rows: FloatArray) -> FloatArray:
        return blurred(rows, case.positions, width)

    return {
        OURS: by_name(OURS, unmixer.transform),
        OURS_OTHER: by_name(OURS_OTHER, other.transform),
        LEAST_SQUARES: by_name(LEAST_SQUARES, lambda rows: least_squares(rows, case.references)),
        KL: by_name(KL, lambda rows: kullback_leibler(rows, case.references)),
        LEAST_SQUARES + BLURRED: by_name(LEAST_SQUARES + BLURRED, lambda rows: least_squares(soften(rows), soft)),
        KL + BLURRED: by_name(KL + BLURRED, lambda rows: kullback_leibler(soften(rows), soft)),
        "grids": both_grids,
    }


def unmix_all(case: Problem, rows: FloatArray, calibration: str | None) -> dict[str, FloatArray]:
    """Return the shares of the references, of sum one, by every method."""
    scaled = rows / rows.sum(axis=1, keepdims=True)
    found: dict[str, FloatArray] = {}
    for run in methods(case, calibration).values():
        found |= run(scaled)
    return {name: proportions(weights) for name, weights in found.items()}


def proportions(weights: FloatArray) -> FloatArray:
    """Return weights divided by their sums; equal shares where all are zero."""
    raised = weights + 1e-15
    shares: FloatArray = raised / raised.sum(axis=1, keepdims=True)
    return shares
