"""What transports leave for the next pass over a block: log U of every tile, a warm start, and Psi_bar."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gwntf.backends import Backend
from gwntf.core import Array, FloatArray

Key = tuple[int, int]
"""Mode of a tile, and the index of its first sample, fiber or column. Psi_bar has the key ~mode, with the first of the
transported modes of the tile."""


@dataclass(eq=False)
class WarmStarts:
    """log U and Psi_bar by mode and tile; the transports update the arrays in place."""

    backend: Backend  # Backend of the arrays
    across: bool = False  # Whether tiles split the second axis of their arrays, as for transport of dense columns
    kept: dict[Key, Array] = field(default_factory=dict)
    unused: set[Key] = field(default_factory=set)  # Tiles whose arrays do not contain a warm start

    def __sizeof__(self) -> int:
        return sum(int(array.nbytes) for array in self.kept.values())

    @property
    def arrays(self) -> list[Array]:
        """All arrays, in order of insertion."""
        return list(self.kept.values())

    def cold(self) -> WarmStarts:
        """Return an object with the same arrays, marked as unused, for another fit."""
        return WarmStarts(self.backend, self.across, dict(self.kept), set(self.kept))

    def on(self, backend: Backend) -> WarmStarts:
        """Return a copy on a backend."""
        kept = {key: backend.xp.asarray(backend.asarray(array), copy=True) for key, array in self.kept.items()}
        return WarmStarts(backend, self.across, kept, set(self.unused))

    def taken(self, rows: Callable[[int], Array]) -> WarmStarts:
        """Return the part of some samples, given the indices of their rows along the first axis by mode."""
        found: dict[int, list[Array]] = {}
        for mode, start in sorted(self.kept):
            found.setdefault(mode, []).append(self.kept[mode, start])
        kept = {(mode, 0): self.backend.xp.concat(parts)[rows(max(mode, ~mode))] for mode, parts in found.items()}
        return WarmStarts(self.backend, self.across, kept)

    def of(self, mode: int, start: int, like: Array) -> tuple[Array, bool]:
        """Return the array of a tile, and whether it contains a warm start."""
        kept = self.kept.get((mode, start))
        if kept is None or math.prod(kept.shape) < math.prod(like.shape):  # from a fit with smaller tiles
            return self.backend.xp.zeros_like(like), False
        if kept.shape != like.shape:
            kept = self._split(mode, start, like.shape[int(self.across)])
        return kept, (mode, start) not in self.unused

    def keep(self, mode: int, start: int, log_u: Array) -> None:
        """Keep the array of a tile; called after all work on the tile is done.

        So a tile that fails for lack of memory and is retried in parts starts cold again if it was cold before.
        """
        self.kept[mode, start] = log_u
        self.unused.discard((mode, start))

    def target(self, modes: Iterable[int], start: int, like: Array) -> Array:
        """Return the Psi_bar of a tile that is transported along some modes, or zeros."""
        return self.of(~min(modes), start, like)[0]

    def keep_target(self, modes: Iterable[int], start: int, target: Array) -> None:
        """Keep the Psi_bar of a tile."""
        self.keep(~min(modes), start, target)

    def _split(self, mode: int, start: int, size: int) -> Array:
        """Split the array of a tile that was larger; return the first part."""
        whole, xp = self.kept.pop((mode, start)), self.backend.xp
        first, rest = (whole[:, :size], whole[:, size:]) if self.across else (whole[:size], whole[size:])
        self.kept[mode, start + size] = xp.asarray(rest, copy=True)
        if (mode, start) in self.unused:
            self.unused.add((mode, start + size))
        self.kept[mode, start] = xp.asarray(first, copy=True)
        return self.kept[mode, start]


def joined_states(states: Sequence[WarmStarts | None], across: bool) -> dict[int, FloatArray]:
    """Concatenate the warm starts of all blocks, by mode, into arrays on the host, for a checkpoint."""
    found: dict[int, list[FloatArray]] = {}
    for state in filter(None, states):
        for mode, start in sorted(state.kept):
            found.setdefault(mode, []).append(state.backend.to_numpy(state.kept[mode, start]))
    return {mode: np.concatenate(parts, axis=int(across)) for mode, parts in found.items()}


def split_states(
    saved: Sequence[tuple[int, FloatArray]], counts: Mapping[int, Sequence[int]], backend: Backend, across: bool
) -> list[WarmStarts]:
    """Undo `joined_states`, given its items; `counts` are the samples, fibers or columns of every block by mode."""
    made = [WarmStarts(backend, across) for _ in next(iter(counts.values()))]
    for mode, whole in saved:
        bounds = np.cumsum(counts[max(mode, ~mode)])[:-1]
        for state, part in zip(made, np.split(whole, bounds, axis=int(across)), strict=True):
            state.keep(mode, 0, backend.asarray(part))
    return made
