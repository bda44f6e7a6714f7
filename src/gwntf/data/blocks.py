"""How a tensor is cut up: pieces as large as an backend likes them, always the same for the same shape."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

_FIBERS = 128


def sample_blocks(shape: Sequence[int], entries: int) -> Iterator[slice]:
    """Cut the samples of a tensor of that shape into blocks of about so many entries.

    Each has a good number of fibers along every axis.
    """
    size = max(1, math.prod(shape[1:]))
    fewest = size // max(1, *shape[1:])
    return pieces(shape[0], max(1, entries // size, _FIBERS // max(1, fewest)))


def even_blocks(shape: Sequence[int], entries: int) -> Iterator[slice]:
    """Cut the samples into blocks of one length for products with a matrix, which are done fastest in few large ones.

    There are four, so that threads can share them, unless these would be smaller than so many entries or larger than
    four times that.
    """
    size = math.prod(shape)
    count = max(1, -(-size // (4 * entries)), min(4, -(-size // entries)))
    return even_pieces(shape[0], count)


def even_pieces(size: int, count: int) -> Iterator[slice]:
    """Cut 0, ..., size - 1 into at most so many slices of about one length."""
    return pieces(size, -(-size // count))


def pieces(size: int, step: int) -> Iterator[slice]:
    """Cut 0, ..., size - 1 into slices of that many."""
    return (slice(start, min(start + step, size)) for start in range(0, size, step))
