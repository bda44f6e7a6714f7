"""Estimators with the scheme of the papers, and the steps of new samples one by one."""

from __future__ import annotations

import numpy as np

from gwntf.losses import NO_PENALTY, Plain
from gwntf.solver.problem import FIRST_TEST, FLAT
from gwntf.solver.project import _Going, _start


def plain(model, update="mm", row_steps=1):
    """The same estimator, with one update of every factor per pass over the data."""
    model._plain = Plain(update, row_steps)
    return model


def steps_of_new_samples(data, loss, components, count, ties=None, penalty=NO_PENALTY):
    """The state of all samples after each of `count` steps of `project`, none of which has left."""
    block, own = data.dense_block, loss.for_new_samples().prepared(data)
    tied = None if ties is None else ties.of(slice(0, block.shape[0])).on(block.backend, block.dtype)
    samples, found = np.arange(block.shape[0]), []
    going = _Going(block, samples, _start(block, components), own.sizes(block), tied)
    for _ in range(count):
        going = going.stepped(own, components, penalty)
        found.append(going)
    return found


def remaining_of(going):
    """Literal prediction of the remaining decrease of every sample."""
    curve, last = np.array(going.curve), len(going.curve) - 1
    if last < FIRST_TEST:
        return np.full(curve.shape[1], np.inf)
    first, second = curve[last // 4] - curve[last // 2], curve[last // 2] - curve[last]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(first > second, second**2 / (first - second), np.inf)


def arrived_at(going, tol):
    """Literal stopping rule: the predicted remaining decrease of every sample is within the tolerance."""
    curve, last = np.array(going.curve), len(going.curve) - 1
    wanted = tol * np.maximum(np.abs(curve[-1]), going.size)
    flat = (last >= FIRST_TEST) & (curve[last // 4] - curve[last] <= FLAT * wanted)
    return np.where(flat, curve[last // 2] - curve[last], remaining_of(going)) <= wanted


def literal_new_samples(step, z, count):
    """Literal extrapolated steps of one sample from a function that returns the next row and the value before it."""
    past, before = step(z)
    z, weight, bound = past, 0.5, 1.0
    for _ in range(count - 1):
        moved, value = step(z)
        if value <= before:
            old, past, before = past, moved, value
            z = past * np.clip(past / old, 1 / 8, 8) ** weight
            weight, bound = min(bound, 1.05 * weight), min(2.0, 1.01 * bound)
        else:
            z, bound, weight = past, weight, weight / 1.5
    return past
