"""Fit states in checkpoints, concatenated over all blocks, so that a fit can resume with other blocks."""

from collections.abc import Mapping
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import Backend, get_backend
from gwntf.core import Array
from gwntf.data import BlockState, Sums
from gwntf.losses import FitState
from gwntf.losses.warm import joined_states, split_states
from gwntf.solver.steps import Steps


def to_file(steps: Steps, at: FitState) -> dict[str, Any]:
    """Return everything that the next step depends on, as arrays on the host."""
    blocks = steps.blocks
    kept = [BlockState(*part) for part in blocks.take(at.kept)]
    columns = None if at.columns is None else blocks.take(at.columns)
    return {
        "rows": _joined([part.rows for part in kept]),
        "own": None if kept[0].own is None else _joined([part.own for part in kept]),
        "state": list(joined_states([part.state for part in kept], False).items()),
        "rest": list(at.rest),
        "sums": list(_flat(at.sums).items()),
        "columns": None if columns is None else list(joined_states(columns, not steps.data.sparse).items()),
        "carried": at.carried,
        "effort": at.effort,
        "plain": blocks.recordable and steps.plain(at),
    }


def from_file(steps: Steps, saved: Mapping[str, Any]) -> FitState:
    """Return the fit state written by `to_file`, split into the blocks of these data."""
    blocks, split = steps.blocks, steps.data.split
    host = get_backend("numpy")
    none = [None] * len(blocks.slices)
    counts = {mode: blocks.map(methodcaller("fiber_count", mode)) for mode, _ in saved["state"]}
    states = split_states(saved["state"], counts, host, False) if counts else none
    own = none if saved["own"] is None else split(saved["own"])
    kept = [BlockState(*parts) for parts in zip(split(saved["rows"]), own, states, strict=True)]
    columns = None
    if saved["columns"]:
        counts = {0: blocks.column_counts()}
        columns = blocks.put(split_states(saved["columns"], counts, host, not steps.data.sparse))
    backend = blocks.backend
    at = FitState(
        blocks.put(kept),
        [to_backend(backend, factor) for factor in saved["rest"]],
        _nested({name: to_backend(backend, value) for name, value in saved["sums"]}),
        columns,
        tuple(to_backend(backend, array) for array in saved["carried"]),
        int(saved["effort"]),
    )
    if saved["plain"]:
        steps.make_plain(at)
    return steps.with_halo(at)


def to_backend(backend: Backend, values: NDArray[Any]) -> Array:
    """Copy an array to the backend, keeping the memory order of a matrix."""
    if values.ndim == 2 and values.flags.f_contiguous and not values.flags.c_contiguous:
        return backend.asarray(values.T).T
    return backend.asarray(values)


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate([get_backend("numpy").asarray(part) for part in parts])


def _flat(sums: Sums) -> dict[str, Any]:
    """Flatten nested sums into a dict with keys such as "product/1"."""
    flat: dict[str, Any] = {}
    for name, value in sums.items():
        inner = {f"{name}/{key}": part for key, part in value.items()} if isinstance(value, Sums) else {name: value}
        flat |= {key: np.asarray(part) if isinstance(part, float) else part for key, part in inner.items()}
    return flat


def _nested(flat: Mapping[str, Array]) -> Sums:
    """Undo `_flat`; the second part of a name is a mode."""
    sums = Sums()
    for name, value in flat.items():
        first, _, mode = name.partition("/")
        if mode:
            sums.setdefault(first, Sums())[int(mode)] = value
        else:
            sums[name] = value
    return sums
