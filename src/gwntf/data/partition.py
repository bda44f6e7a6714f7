"""Splits of an axis into slices that depend only on sizes, so that results do not depend on the machine."""

import math
from collections.abc import Iterator, Sequence

_FIBERS = 128


def sample_tiles(shape: Sequence[int], entries: int) -> Iterator[slice]:
    """Split the samples of an array of that shape into equal tiles of at most about that many entries.

    Each tile has at least about 128 fibers along every axis. Data of one tile are split into two if these have at least
    an eighth of `entries`, so that two threads can share the work.
    """
    size = max(1, math.prod(shape[1:]))
    fewest = size // max(1, *shape[1:])
    count = -(-shape[0] // max(1, entries // size, _FIBERS // max(1, fewest)))
    if count == 1 and 4 * shape[0] * size >= entries and shape[0] * max(1, fewest) >= _FIBERS:
        count = 2
    return even_pieces(shape[0], count)


def even_tiles(shape: Sequence[int], entries: int) -> Iterator[slice]:
    """Split the samples into few tiles of equal length, which are fastest for matrix products.

    There are four, so that threads can share the work, unless they would have fewer than `entries` entries or more
    than four times as many.
    """
    size = math.prod(shape)
    count = max(1, -(-size // (4 * entries)), min(4, -(-size // entries)))
    return even_pieces(shape[0], count)


def even_pieces(size: int, count: int) -> Iterator[slice]:
    """Split 0, ..., size - 1 into at most `count` slices of about equal length."""
    return pieces(size, max(1, -(-size // max(1, count))))


def pieces(size: int, step: int) -> Iterator[slice]:
    """Split 0, ..., size - 1 into slices of length `step`."""
    return (slice(start, min(start + step, size)) for start in range(0, size, step))
