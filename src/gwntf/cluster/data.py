"""The way of the data to the workers: blocks of samples, and for transport along the samples blocks of columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gwntf.cluster.work import Place, cut_columns, join_columns, place_block
from gwntf.engines.dask.tasks import Future, Tasks
from gwntf.problem import NonnegativeTensor, pieces

@dataclass(frozen=True)
class BlockData:
    """Blocks of samples on the cluster: which samples each has, and a `NonnegativeTensor` for each."""

    tasks: Tasks
    place: Place
    slices: Sequence[slice]
    blocks: Sequence[Future]

    def columns(self, size: int) -> tuple[list[slice], list[Future]]:
        """Cut X_(1), which has so many columns, into blocks of columns."""
        parts = even_slices(size, len(self.slices))
        joined = [
            self.tasks.submit(
                join_columns,
                self.place,
                [self.tasks.submit(cut_columns, block, part) for block in self.blocks],
            )
            for part in parts
        ]
        return parts, joined


def even_slices(size: int, count: int) -> list[slice]:
    """Cut 0, ..., size - 1 into at most so many slices of about one length."""
    return list(pieces(size, math.ceil(size / max(1, count))))


def send_blocks(tasks: Tasks, tensor: NonnegativeTensor, place: Place) -> BlockData:
    """Cut data that are here and bring a block to every thread; the scheduler keeps a copy, for when a worker is lost."""
    seats = tasks.seats()
    slices = even_slices(tensor.shape[0], len(seats))
    blocks = [
        tasks.submit(place_block, place, tasks.put(tensor.of(part), near=near))
        for part, near in zip(slices, seats, strict=False)
    ]
    return BlockData(tasks, place, slices, blocks)
