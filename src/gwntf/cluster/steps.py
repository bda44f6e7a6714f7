"""The iterations of a fit on a cluster, as the outer loop takes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from gwntf.cluster.data import BlockData, ClusterBlocks, place_blocks, send_blocks
from gwntf.cluster.least_squares import SquaresIteration
from gwntf.cluster.samples import BlockGraphs, BlockRows, Factors, cut_graph
from gwntf.cluster.transport import TransportIteration
from gwntf.cluster.transport_work import Job
from gwntf.cluster.work import Place
from gwntf.core import Array, FloatArray, InputError
from gwntf.backends import Backend
from gwntf.backends.dask.backend import DaskEngine
from gwntf.backends.dask.tasks import Future
from gwntf.data import ChunkedTensor, DataTensor, NonnegativeTensor
from gwntf.solver import Frobenius, ObjectiveTerms, Problem, Wasserstein

CUT_EVERY = 20
"""Iterations after which what is small is brought here and sent anew: a lost worker costs at most so many."""


class Iteration(Protocol):
    """One loss on a cluster; a state is what it carries from one iteration to the next."""

    def forget(self) -> None:
        """Begin anew."""
        ...

    def refine(self) -> bool:
        """Evaluate more exactly from now on, and say whether that was possible."""
        ...

    def finish(self, rest: Sequence[FloatArray]) -> tuple[list[FloatArray], FloatArray]:
        """Bring the shared factors into the scale of a result, and say what the samples are multiplied with."""
        ...

    def measure(
        self, rows: list[Future], rest: Sequence[FloatArray], last: Any
    ) -> tuple[Any, ObjectiveTerms]:
        """Return the state at these factors, and F."""
        ...

    def advance(self, state: Any, rest: Sequence[FloatArray]) -> tuple[list[Future], list[FloatArray]]:
        """Return the next factors."""
        ...

    def cut(self, state: Any) -> Any:
        """Return the same state without a past."""
        ...


class ClusterSteps:
    """Iterations of a problem whose data lie on a cluster.

    Attributes
    ----------
    backend : DaskEngine
        Who does what is done here.
    sample_scales : array
        Sizes of blocks of samples, in the unit of the loss.
    """

    def __init__(
        self, backend: DaskEngine, iteration: Iteration, slices: Sequence[slice], scales: FloatArray
    ) -> None:
        self.backend, self.sample_scales = backend, scales
        self._iteration, self._slices, self._done = iteration, slices, 0

    @property
    def loss(self) -> ClusterSteps:
        """Itself: data and loss are not apart here."""
        return self

    def forget(self) -> None:
        """Begin anew, as a restart must."""
        self._done = 0
        self._iteration.forget()

    def refine(self) -> bool:
        """Evaluate more exactly from now on, and say whether that was possible."""
        return self._iteration.refine()

    def finish(self, factors: Sequence[Any]) -> Sequence[Array]:
        """Bring factors into the scale in which they are returned, the samples when they are asked for."""
        rest, scale = self._iteration.finish(factors[1:])
        return Factors(factors[0], rest, scale)

    def first(self, factors: Sequence[Array]) -> tuple[tuple[Any, ...], ObjectiveTerms]:
        """Send the sample factor; return what the step from these factors needs, and F."""
        rows = [self.backend.tasks.put(factors[0][part]) for part in self._slices]
        state, terms = self._iteration.measure(rows, factors[1:], None)
        return (state,), terms

    def next(
        self, factors: Sequence[Any], carried: tuple[Any, ...]
    ) -> tuple[list[Any], tuple[Any, ...], ObjectiveTerms]:
        """Return the next factors with what the step from them needs, and F there."""
        (state,) = carried
        rows, rest = self._iteration.advance(state, factors[1:])
        state, terms = self._iteration.measure(rows, rest, state)
        self._done += 1
        if self._done % CUT_EVERY == 0:
            state = self._iteration.cut(state)
        return [BlockRows(self.backend.tasks, state.rows), *rest], (state,), terms


def on_cluster(backend: Backend) -> Callable[[Problem, Backend], ClusterSteps]:
    """Say how a problem is placed, having seen that the backend has a cluster with workers."""
    if not isinstance(backend, DaskEngine):
        raise TypeError(f"engine {backend.name!r} has no cluster")
    backend.tasks.check()
    return lambda problem, _: place_on_cluster(problem, backend)


def place_on_cluster(problem: Problem, backend: DaskEngine) -> ClusterSteps:
    """Bring the data of a problem to the cluster of the backend."""
    place = Place(backend.device, backend.precision)
    data = _data(problem, backend, place)
    graphs = _graphs(problem, data)
    iteration: Iteration
    if isinstance(problem.loss, Frobenius):
        iteration = SquaresIteration(place, data, graphs, len(problem.tensor.shape))
        return ClusterSteps(backend, iteration, data.slices, np.array(iteration.sizes()))
    if not isinstance(problem.loss, Wasserstein):
        given = f"'dask' with the loss {type(problem.loss).__name__}"
        raise InputError("engine", given, "'auto', or a class with a transport, KL or least-squares loss")
    job = _job(problem.loss, problem.tensor, place)
    iteration = TransportIteration(job, data, graphs, problem.tensor.shape)
    return ClusterSteps(backend, iteration, data.slices, problem.tensor.sample_sums)


def _data(problem: Problem, backend: DaskEngine, place: Place) -> BlockData:
    tensor = problem.tensor
    if isinstance(tensor, NonnegativeTensor):
        return place_blocks(send_blocks(backend.tasks, tensor), place)
    if not isinstance(tensor, ChunkedTensor) or not isinstance(tensor.blocks, ClusterBlocks):
        raise TypeError(f"{type(tensor).__name__} is not on a cluster")
    return place_blocks(tensor.blocks, place)


def _graphs(problem: Problem, data: BlockData) -> BlockGraphs | None:
    if problem.graph is None or problem.graph_reg == 0:
        return None
    return cut_graph(data, problem.graph, problem.graph_reg, problem.tensor.dtype)


def _job(spec: Wasserstein, tensor: DataTensor, place: Place) -> Job:
    """Return what all blocks have in common; scalings are kept under the limit that holds for all of them together."""
    kept = math.prod(tensor.shape) * tensor.dtype.itemsize * len(spec.transported)
    return Job(place, spec, tensor.dtype, kept <= spec.warm_limit)
