"""An iteration under a Wasserstein loss or KL: the transports of every block where it lies, then the factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gwntf.cluster.data import BlockData
from gwntf.cluster.samples import BlockGraphs
from gwntf.cluster.transport_work import (
    Job,
    measure_columns,
    measure_samples,
    numbered_terms,
    numerator,
    resting,
    tied_step,
)
from gwntf.cluster.work import Share, joined, taken
from gwntf.core import FloatArray
from gwntf.backends.dask.tasks import Future
from gwntf.backends.numpy_backend import NumpyBackend
from gwntf.data import other_mode_products
from gwntf.solver import ObjectiveTerms
from gwntf.updates import RULES, simplex_step

_LIGHT = 2**26
"""Bytes of scalings up to which they are brought here when the past of a fit is cut off."""


@dataclass(frozen=True)
class Transported:
    """A fit between two iterations.

    Attributes
    ----------
    rows : list of futures
        A(1), block by block.
    samples, columns : lists of futures
        `Measured` of every block of samples and of every block of columns, as far as there are such.
    others : array
        R_(1)' A(1).
    lent : list of lists of futures
        Rows of A(1) that every block has from others; empty without a graph.
    """

    rows: list[Future]
    samples: list[Future]
    columns: list[Future]
    others: FloatArray
    lent: list[list[Future]]


class TransportIteration:
    """What an iteration does on the cluster, by tasks that are pure functions.

    Shared factors are made here and kept by the scheduler, so that the way back from a lost block leads through that
    block and its neighbours in the graph, and not through the sums over all blocks.
    """

    def __init__(self, job: Job, data: BlockData, graphs: BlockGraphs | None, shape: tuple[int, ...]) -> None:
        self._spec, self._place, self._data, self._graphs = job.spec, job.place, data, graphs
        self._tasks = data.tasks
        self._job = self._tasks.put(job)
        bytes_kept = math.prod(shape) * job.dtype.itemsize * len(job.spec.transported) if job.warm else 0
        self._light = bytes_kept <= _LIGHT
        self._across = 0 in job.spec.transported
        self._parts, self._columns = data.columns(math.prod(shape[1:])) if self._across else ([], [])
        self._scalings = job.spec.scalings(None)

    def forget(self) -> None:
        """Begin with few scalings where they adapt."""
        self._scalings = self._spec.scalings(None)

    def refine(self) -> bool:
        """Double the scalings of a transport, up to the limit."""
        more = self._spec.scalings(self._scalings)
        grown, self._scalings = more > self._scalings, more
        return grown

    def finish(self, rest: Sequence[FloatArray]) -> tuple[list[FloatArray], FloatArray]:
        """Leave the scale as it is."""
        return list(rest), np.ones(rest[0].shape[1], rest[0].dtype)

    def measure(
        self, rows: list[Future], rest: Sequence[FloatArray], last: Transported | None
    ) -> tuple[Transported, ObjectiveTerms]:
        """Transport every block to the model of these factors, and bring F and R_(1)' A(1) here."""
        tasks, shared = self._tasks, self._tasks.put(list(rest))
        homes = self._data.homes.now()
        lent, smooth = ([], []) if self._graphs is None else self._graphs.at(self._place, rows)
        samples = self._measure_samples(rows, shared, last, homes)
        columns = self._measure_columns(rows, shared, last, homes)
        total, parts, penalty = tasks.gather(
            (
                [tasks.total(self._parts_of("share", samples))] if samples else [],
                self._parts_of("share", columns),
                smooth,
            )
        )
        others, numbers = _added(total, parts)
        modes = numbered_terms(numbers, self._spec.transported)
        terms = ObjectiveTerms(modes, float(numbers[-1]), float(sum(penalty)))
        return Transported(rows, samples, columns, others, lent), terms

    def _measure_samples(
        self, rows: list[Future], shared: Future, last: Transported | None, homes: Sequence[str | None]
    ) -> list[Future]:
        """Transport along all modes but the samples, if there is such a mode, or none at all."""
        if self._spec.transported == (0,):
            return []
        before = [None] * len(rows) if last is None else last.samples
        return [
            self._tasks.submit(measure_samples, self._job, block, a, shared, kept, self._scalings, near=home)
            for block, a, kept, home in zip(self._data.blocks, rows, before, homes, strict=True)
        ]

    def _measure_columns(
        self, rows: list[Future], shared: Future, last: Transported | None, homes: Sequence[str | None]
    ) -> list[Future]:
        """Transport along the samples."""
        if not self._across:
            return []
        whole = self._tasks.submit(joined, rows)
        before = [None] * len(self._parts) if last is None else last.columns
        return [
            self._tasks.submit(
                measure_columns, self._job, block, whole, shared, part, kept, self._scalings, near=home
            )
            for block, part, kept, home in zip(self._columns, self._parts, before, homes, strict=False)
        ]

    def advance(
        self, state: Transported, rest: Sequence[FloatArray]
    ) -> tuple[list[Future], list[FloatArray]]:
        """Move all factors: the shared ones here, the rows of the samples where they are."""
        products = self._sample_products(state)
        homes = self._data.homes.known
        w = [
            self._tasks.submit(numerator, a, parts, near=home)
            for a, parts, home in zip(state.rows, products, homes, strict=True)
        ]
        moved = self._moved(state.others, rest)
        if self._graphs is None:
            return w, moved
        rows, lent = state.rows, state.lent
        for inner in range(self._spec.inner_iter):
            lent = self._graphs.lent(rows) if inner else lent
            rows = [
                self._tasks.submit(tied_step, self._job, a, own, graph, loans, near=home)
                for a, own, graph, loans, home in zip(rows, w, self._graphs.graphs, lent, homes, strict=True)
            ]
        return rows, moved

    def _sample_products(self, state: Transported) -> list[list[Future]]:
        """R_(1) A(-1) of every block of samples, in parts that are still to be added."""
        parts: list[list[Future]] = [[] for _ in state.rows]
        for block, found in zip(parts, self._parts_of("samples", state.samples), strict=False):
            block.append(found)
        if state.columns:
            whole = self._tasks.total(self._parts_of("samples", state.columns))
            for block, rows in zip(parts, self._data.slices, strict=True):
                block.append(self._tasks.submit(taken, whole, rows))
        return parts

    def _parts_of(self, name: str, measured: Sequence[Future]) -> list[Future]:
        """Take something out of what every block of samples, or of columns, has found; there may be no such blocks."""
        homes = self._data.homes.known
        return [
            self._tasks.part(name, found, near=home) for found, home in zip(measured, homes, strict=False)
        ]

    def _moved(self, others: FloatArray, rest: Sequence[FloatArray]) -> list[FloatArray]:
        """Move the shared factors; of the samples, none are here."""
        none = np.empty((0, rest[0].shape[1]), rest[0].dtype)
        factors, products = [none, *rest], [none, *other_mode_products(others, [none, *rest])]
        rule = RULES[self._spec.update]
        return simplex_step(NumpyBackend(), factors, products, self._spec.weight, None, rule, 1)[1:]

    def cut(self, state: Transported) -> Transported:
        """Send the state anew, so that a lost worker costs only what came after."""
        if not self._light:
            return state
        tasks = self._tasks
        rows, samples, columns = tasks.gather(
            (
                state.rows,
                *(
                    [tasks.submit(resting, found, self._place) for found in some]
                    for some in (state.samples, state.columns)
                ),
            )
        )
        again = [[tasks.put(value) for value in some] for some in (rows, samples, columns)]
        lent = [] if self._graphs is None else self._graphs.lent(again[0])
        return replace(state, rows=again[0], samples=again[1], columns=again[2], lent=lent)


def _added(total: list[Share], parts: list[Share]) -> tuple[FloatArray, FloatArray]:
    """Return R_(1)' A(1), and the numbers of F, of all blocks of samples and columns."""
    shares = list(total)
    if parts:
        across = np.concatenate([part.others for part in parts])
        shares.append(Share(across, parts[0].gram, np.sum([part.numbers for part in parts], axis=0)))
    whole = shares[0] if len(shares) == 1 else shares[0] + shares[1]
    return whole.others, whole.numbers
