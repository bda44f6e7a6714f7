"""Checkpoints of estimators: whose they are, told by a fingerprint of data and settings."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gwntf._version import __version__
from gwntf.core import Array
from gwntf.estimators.records import MODEL_RECORDS, SESSION
from gwntf.io import fingerprint
from gwntf.solver import LAYOUT, Checkpoint, Keeper, Problem


def as_checkpoint(given: Any) -> Checkpoint | None:
    """Return the checkpoint that a parameter asks for, in a folder that is there."""
    checkpoint = given if isinstance(given, Checkpoint | None) else Checkpoint(given)
    if checkpoint is not None:
        checkpoint.check_folder()
    return checkpoint


def keeper_of(
    models: Sequence[Any], checkpoint: Checkpoint | None, problem: Problem, scale: Array, device: str | None
) -> Keeper:
    """Return what writes the checkpoint of the fits of some models that differ in their random numbers alone."""
    if checkpoint is None:
        return Keeper()
    first = models[0]
    own = {
        name: value
        for name, value in first.get_params(deep=False).items()
        if name not in (*SESSION, "random_state") and not callable(value)  # what a metric finds is in the graph
    }
    facts = {
        "library": (__version__, LAYOUT),
        "class": type(first).__name__,
        "params": own,
        "seeds": [_seed(model.random_state) for model in models],
        "engine": (problem.data.backend.name, device),
        "data": (problem.data.shape, problem.data.marks()),
        "scale": scale,
        "graph": problem.graph,
        "costs": getattr(first, "costs_", None),
    }
    return Keeper(checkpoint, fingerprint(facts, MODEL_RECORDS))


def _seed(random_state: Any) -> Any:
    """Return what two fits of the same script have in common: a number, or that there is none."""
    return int(random_state) if isinstance(random_state, int | np.integer) else None
