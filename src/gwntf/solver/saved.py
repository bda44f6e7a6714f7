"""Fit states in checkpoints, concatenated over all blocks, so that a fit can resume with other blocks."""

from collections.abc import Mapping, Sequence
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
        "past": None if kept[0].past is None else _joined([part.past for part in kept], -2),
        "step": None if kept[0].step is None else _joined([part.step for part in kept]),
        "rest": list(at.rest),
        "rest_past": at.past,
        "rest_step": at.step,
        "sums": list(_flat(at.sums).items()),
        "columns": None if columns is None else list(joined_states(columns, not steps.data.sparse).items()),
        "carried": at.carried,
        "effort": at.effort,
        "acceleration": None if at.acceleration is None else list(map(np.asarray, at.acceleration)),
        "since": at.since,
        "plain": blocks.recordable and steps.plain(at),
    }


def from_file(steps: Steps, saved: Mapping[str, Any]) -> FitState:
    """Return the fit state written by `to_file`, split into the blocks of these data."""
    blocks, split = steps.blocks, steps.data.split
    host = get_backend("numpy")
    none = [None] * len(blocks.slices)
    modes = {max(mode, ~mode) for mode, _ in saved["state"]}
    counts = {mode: blocks.map(methodcaller("fiber_count", mode)) for mode in modes}
    states = split_states(saved["state"], counts, host, False) if counts else none
    own, step = (none if saved[name] is None else split(saved[name]) for name in ("own", "step"))
    past = none if saved["past"] is None else [saved["past"][..., part, :] for part in blocks.slices]
    kept = [BlockState(*parts) for parts in zip(split(saved["rows"]), own, states, past, step, strict=True)]
    columns = None
    if saved["columns"]:
        counts = {0: blocks.column_counts()}
        columns = blocks.put(split_states(saved["columns"], counts, host, not steps.data.sparse))
    backend, rest_past = blocks.backend, saved["rest_past"]
    if isinstance(rest_past, list):
        rest_past = [to_backend(backend, factor) for factor in rest_past]
    elif rest_past is not None:
        rest_past = to_backend(backend, rest_past)
    at = FitState(
        blocks.put(kept),
        [to_backend(backend, factor) for factor in saved["rest"]],
        rest_past,
        _nested({name: to_backend(backend, value) for name, value in saved["sums"]}),
        columns,
        tuple(to_backend(backend, array) for array in saved["carried"]),
        int(saved["effort"]),
        _acceleration(steps, saved["acceleration"]),
        None if saved["rest_step"] is None else to_backend(backend, saved["rest_step"]),
        int(saved["since"]),
    )
    if saved["plain"]:
        steps.make_plain(at)
    return steps.with_halo(at)


def _acceleration(steps: Steps, saved: Sequence[NDArray[Any]] | None) -> Any:
    """Return the state of the acceleration, of the kind of the loss."""
    if saved is None:
        return None
    kind: Any = steps.loss.acceleration
    return kind(*(part if part.ndim else part.item() for part in saved))


def to_backend(backend: Backend, values: NDArray[Any]) -> Array:
    """Copy an array to the backend, keeping the memory order of a matrix."""
    if values.ndim == 2 and values.flags.f_contiguous and not values.flags.c_contiguous:
        return backend.asarray(values.T).T
    return backend.asarray(values)


def _joined(parts: list[Any], axis: int = 0) -> Any:
    host = get_backend("numpy")
    return parts[0] if len(parts) == 1 else np.concatenate([host.asarray(part) for part in parts], axis=axis)


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
