"""An iteration under the least-squares loss: X_(1)' A(1) and A(1)' A(1) are sums over the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gwntf.cluster.data import BlockData
from gwntf.cluster.samples import BlockGraphs
from gwntf.cluster.squares_work import measure_squares, place_squares, size_of_squares, step_squares
from gwntf.cluster.work import Place
from gwntf.core import FloatArray
from gwntf.backends.dask.tasks import Future
from gwntf.backends.numpy_backend import NumpyBackend
from gwntf.data import other_mode_product
from gwntf.solver import ObjectiveTerms
from gwntf.updates import gram_of, least_squares_factor, other_grams, unit_columns


@dataclass(frozen=True)
class Squared:
    """A fit between two iterations: A(1) and the rows lent, block by block, X_(1)' A(1) and A(1)' A(1)."""

    rows: list[Future]
    lent: list[list[Future]]
    others: FloatArray
    gram: FloatArray


class SquaresIteration:
    """What an iteration does on the cluster, by tasks that are pure functions."""

    def __init__(self, place: Place, data: BlockData, graphs: BlockGraphs | None, order: int) -> None:
        self._tasks, self._place, self._graphs, self._order = data.tasks, place, graphs, order
        self._homes = data.homes
        self._shared: tuple[list[FloatArray], Future] | None = None
        self._losses = [self._tasks.submit(place_squares, block) for block in data.blocks]

    def sizes(self) -> list[float]:
        """1/2 |X|^2 of every block."""
        found: list[float] = self._tasks.gather(
            [self._tasks.submit(size_of_squares, loss) for loss in self._losses]
        )
        return found

    def forget(self) -> None:
        """Do nothing: a state is all there is."""

    def refine(self) -> bool:
        """Return False: it is exact."""
        return False

    def finish(self, rest: Sequence[FloatArray]) -> tuple[list[FloatArray], FloatArray]:
        """Scale columns to length one; what the samples are to be multiplied with."""
        ones = rest[0][:1] * 0 + 1
        scale, *scaled = unit_columns(NumpyBackend(), [ones, *rest])
        return scaled, scale[0]

    def measure(
        self,
        rows: list[Future],
        rest: Sequence[FloatArray],
        last: Squared | None,  # noqa: ARG002
    ) -> tuple[Squared, ObjectiveTerms]:
        """Bring F and what the shared factors need here."""
        tasks, shared, homes = self._tasks, self._share(rest), self._homes.now()
        lent, smooth = ([], []) if self._graphs is None else self._graphs.at(self._place, rows)
        shares = [
            tasks.submit(measure_squares, loss, a, shared, near=home)
            for loss, a, home in zip(self._losses, rows, homes, strict=True)
        ]
        total, graph = tasks.gather((tasks.total(shares), smooth))
        terms = ObjectiveTerms((None,) * self._order, float(total.numbers[-1]), float(sum(graph)))
        return Squared(rows, lent, total.others, total.gram), terms

    def advance(self, state: Squared, rest: Sequence[FloatArray]) -> tuple[list[Future], list[FloatArray]]:
        """Update the shared factors in turn here, then the samples where they are."""
        backend, moved = NumpyBackend(), list(rest)
        none = rest[0][:0]
        with backend.quiet():
            grams = [state.gram, *(gram_of(backend, factor) for factor in moved)]
            for mode in range(1, self._order):
                product = other_mode_product(state.others, [none, *moved], mode)
                others = other_grams(grams, mode)
                moved[mode - 1] = least_squares_factor(backend, moved[mode - 1], product, others, None)
                grams[mode] = gram_of(backend, moved[mode - 1])
        shared = self._share(moved)
        count = len(state.rows)
        graphs = [None] * count if self._graphs is None else self._graphs.graphs
        lent = state.lent or [[] for _ in range(count)]
        rows = [
            self._tasks.submit(step_squares, loss, a, shared, graph, loans, near=home)
            for loss, a, graph, loans, home in zip(
                self._losses, state.rows, graphs, lent, self._homes.now(), strict=True
            )
        ]
        return rows, moved

    def _share(self, rest: Sequence[FloatArray]) -> Future:
        """Send shared factors once: workers keep X_(1) A(-1) for as long as they are given the same ones."""
        if self._shared is None or not all(a is b for a, b in zip(self._shared[0], rest, strict=True)):
            self._shared = (list(rest), self._tasks.put(list(rest)))
        return self._shared[1]

    def cut(self, state: Squared) -> Squared:
        """Send the rows anew, so that a lost worker costs only what came after."""
        rows = [self._tasks.put(a) for a in self._tasks.gather(state.rows)]
        return replace(state, rows=rows, lent=[] if self._graphs is None else self._graphs.lent(rows))
