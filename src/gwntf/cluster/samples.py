"""The sample factor in blocks, one per block of samples, and the graph that lets blocks lend each other rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from gwntf.cluster.data import BlockData
from gwntf.cluster.homes import Homes
from gwntf.cluster.neighbors import smoothness
from gwntf.cluster.work import Place, taken
from gwntf.core import FloatArray
from gwntf.backends.dask.tasks import Future, Tasks
from gwntf.geometry import SampleGraph


class BlockRows:
    """A(1) on the cluster, brought here when it is asked for."""

    def __init__(self, tasks: Tasks, blocks: Sequence[Future]) -> None:
        self._tasks, self.blocks = tasks, list(blocks)

    def gathered(self) -> FloatArray:
        """Return the rows of all samples."""
        return np.concatenate(self._tasks.gather(self.blocks))


class Factors(Sequence[FloatArray]):
    """Factors whose first one is brought here when somebody looks at it."""

    def __init__(
        self, samples: BlockRows | FloatArray, rest: Sequence[FloatArray], scale: FloatArray
    ) -> None:
        self._samples, self._rest, self._scale = samples, list(rest), scale

    def __len__(self) -> int:
        return 1 + len(self._rest)

    @overload
    def __getitem__(self, place: int) -> FloatArray: ...
    @overload
    def __getitem__(self, place: slice) -> list[FloatArray]: ...
    def __getitem__(self, place: int | slice) -> FloatArray | list[FloatArray]:
        """Return one factor, or some of them."""
        if isinstance(place, slice):
            return [self[mode] for mode in range(*place.indices(len(self)))]
        mode = range(len(self))[place]
        return self._rest[mode - 1] if mode else self._first()

    def _first(self) -> FloatArray:
        if isinstance(self._samples, BlockRows):
            self._samples = self._samples.gathered()
        rows: FloatArray = self._samples * self._scale
        return rows


@dataclass(frozen=True)
class Loan:
    """Rows of one block that another needs: from which block, and which of its rows."""

    source: int
    rows: NDArray[np.intp]


@dataclass(frozen=True)
class BlockGraphs:
    """The graph, cut into blocks of its rows.

    Attributes
    ----------
    graphs : list of futures
        A `SampleGraph` for each block, in NumPy: columns of the matrix are its own rows, then those that it is lent.
    loans : list of lists of Loan
        What each block is lent, in the order of the columns.
    """

    tasks: Tasks
    homes: Homes
    graphs: list[Future]
    loans: list[list[Loan]]

    def lent(self, rows: Sequence[Future]) -> list[list[Future]]:
        """For each block the rows of other blocks that it needs, taken out where they are."""
        return [
            [
                self.tasks.submit(taken, rows[loan.source], loan.rows, near=self.homes.known[loan.source])
                for loan in loans
            ]
            for loans in self.loans
        ]

    def at(self, place: Place, rows: Sequence[Future]) -> tuple[list[list[Future]], list[Future]]:
        """Return what `lent` does, and the penalty on the rows of every block, whose sum is that of the graph.

        To be sent before what takes long, behind which it would have to wait.
        """
        lent = self.lent(rows)
        blocks = zip(rows, self.graphs, lent, self.homes.known, strict=True)
        return lent, [self.tasks.submit(smoothness, place, *block, near=home) for *block, home in blocks]


def cut_graph(data: BlockData, graph: csr_array, weight: float, dtype: Any) -> BlockGraphs:
    """Cut a graph into blocks of rows and bring them to the blocks of the data."""
    starts = np.array([part.start for part in data.slices])
    graphs, loans = [], []
    for rows, home in zip(data.slices, data.homes.known, strict=True):
        block, mine = _cut(graph, weight, rows, starts, dtype)
        graphs.append(data.tasks.put(block, near=home))
        loans.append(mine)
    return BlockGraphs(data.tasks, data.homes, graphs, loans)


def _cut(
    graph: csr_array, weight: float, rows: slice, starts: NDArray[np.intp], dtype: Any
) -> tuple[SampleGraph, list[Loan]]:
    """Return the rows of a block, their columns numbered anew, and what lies behind those of other blocks."""
    part = graph[rows].tocoo()
    size = rows.stop - rows.start
    outside = (part.col < rows.start) | (part.col >= rows.stop)
    wanted = np.unique(part.col[outside]).astype(np.intp)
    column = np.where(outside, size + np.searchsorted(wanted, part.col), part.col - rows.start)
    matrix = coo_array((part.data, (part.row, column)), shape=(size, size + len(wanted))).tocsr()
    upper = part.col > part.row + rows.start
    edges = (part.row[upper].astype(np.int64), column[upper].astype(np.int64), part.data[upper])
    degree = np.asarray(graph[rows].sum(axis=1)).reshape(-1, 1)
    source = np.searchsorted(starts, wanted, side="right") - 1
    loans = [Loan(int(k), wanted[source == k] - starts[k]) for k in np.unique(source)]
    return SampleGraph(float(weight), matrix.astype(dtype), degree.astype(dtype), edges), loans
