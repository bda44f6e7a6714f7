"""How a tensor is cut up: pieces small enough for a core's cache, always the same for the same shape."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

_BLOCK_ENTRIES = 2**18
_FIBERS = 128


def sample_blocks(shape: Sequence[int]) -> Iterator[slice]:
    """Cut the samples of a tensor of that shape into blocks, each with a good number of fibers along every axis."""
    size = max(1, math.prod(shape[1:]))
    fewest = size // max(1, *shape[1:])
    return pieces(shape[0], max(1, _BLOCK_ENTRIES // size, _FIBERS // max(1, fewest)))


def pieces(size: int, step: int) -> Iterator[slice]:
    """Cut 0, ..., size - 1 into slices of that many."""
    return (slice(start, min(start + step, size)) for start in range(0, size, step))
