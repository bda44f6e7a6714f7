"""Warm starts: log U of every transported tile of a block, from one pass to the next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gwntf.backends import Backend
from gwntf.core import Array, FloatArray

Key = tuple[int, int]
"""Mode of a tile, and the number of its first sample, fiber or column."""


class WarmStarts:
    """log U by mode and tile; arrays are written in place by the transports.

    Tiles are along the first axis of their arrays, but along the second for transport of dense columns (`across`).
    """

    def __init__(self, backend: Backend, across: bool = False) -> None:
        self._backend, self._axis = backend, int(across)
        self._kept: dict[Key, Array] = {}
        self._cold: set[Key] = set()

    def __sizeof__(self) -> int:
        return sum(int(array.nbytes) for array in self._kept.values())

    def __reduce__(self) -> Any:
        return _rebuilt, (self._backend, bool(self._axis), self._kept, self._cold)

    @property
    def arrays(self) -> list[Array]:
        """All arrays."""
        return list(self._kept.values())

    def cold(self) -> WarmStarts:
        """Return the same arrays without what is in them, for another fit: they stay where they are."""
        return _rebuilt(self._backend, bool(self._axis), self._kept, set(self._kept))

    def on(self, backend: Backend) -> WarmStarts:
        """Return a copy on a backend."""
        kept = {key: backend.xp.asarray(backend.asarray(array), copy=True) for key, array in self._kept.items()}
        return _rebuilt(backend, bool(self._axis), kept, set(self._cold))

    def of(self, mode: int, start: int, like: Array) -> tuple[Array, bool]:
        """Return the array of a tile, and whether it holds something."""
        kept = self._kept.get((mode, start))
        if kept is None or math.prod(kept.shape) < math.prod(like.shape):  # of a fit that was shorter of memory
            return self._backend.xp.zeros_like(like), False
        if kept.shape != like.shape:
            kept = self._split(mode, start, like.shape[self._axis])
        return kept, (mode, start) not in self._cold

    def keep(self, mode: int, start: int, log_u: Array) -> None:
        """Keep the array of a tile, when all work on the tile is done.

        If that fails for lack of memory and is tried again with a part of the tile, that part starts cold again if
        the tile did.
        """
        self._kept[mode, start] = log_u
        self._cold.discard((mode, start))

    def _split(self, mode: int, start: int, size: int) -> Array:
        """Return the first part of the array of a tile that was larger, and keep the rest."""
        whole, xp = self._kept.pop((mode, start)), self._backend.xp
        first, rest = (whole[:, :size], whole[:, size:]) if self._axis else (whole[:size], whole[size:])
        self._kept[mode, start + size] = xp.asarray(rest, copy=True)
        if (mode, start) in self._cold:
            self._cold.add((mode, start + size))
        self._kept[mode, start] = xp.asarray(first, copy=True)
        return self._kept[mode, start]

    def joined(self) -> dict[int, FloatArray]:
        """For a file: all tiles of every mode as one array on the host."""
        modes = sorted({mode for mode, _ in self._kept})
        return {
            mode: np.concatenate(
                [self._backend.to_numpy(self._kept[key]) for key in sorted(self._kept) if key[0] == mode],
                axis=self._axis,
            )
            for mode in modes
        }


def _rebuilt(backend: Backend, across: bool, kept: dict[Key, Array], cold: set[Key]) -> WarmStarts:
    made = WarmStarts(backend, across)
    made._kept, made._cold = dict(kept), set(cold)
    return made


def joined_states(states: Sequence[WarmStarts | None], across: bool) -> dict[int, FloatArray]:
    """Join the warm starts of all blocks, for a file."""
    found = [state.joined() for state in states if state is not None]
    if not found:
        return {}
    return {mode: np.concatenate([part[mode] for part in found], axis=int(across)) for mode in found[0]}


def split_states(
    saved: Sequence[tuple[int, FloatArray]], counts: Mapping[int, Sequence[int]], backend: Backend, across: bool
) -> list[WarmStarts]:
    """Undo `joined_states`, given its items, for blocks with so many samples, fibers or columns along every mode."""
    made = [WarmStarts(backend, across) for _ in next(iter(counts.values()))]
    for mode, whole in saved:
        bounds = np.cumsum(counts[mode])[:-1]
        for state, part in zip(made, np.split(whole, bounds, axis=int(across)), strict=True):
            state.keep(mode, 0, backend.asarray(part))
    return made
