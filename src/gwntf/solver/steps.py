"""One iteration: from factors to the next ones and what they cost, recorded and replayed where the backend can."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.core import Array
from gwntf.backends import Backend
from gwntf.geometry import SampleGraph
from gwntf.losses import Loss, ObjectiveTerms
from gwntf.transport import PlanTerms
from gwntf.updates import penalty

Step = Callable[..., tuple[Array, ...]]


class Steps:
    """Iterations of a placed problem; shared by all of its fits, so that what one has recorded serves the next.

    Attributes
    ----------
    loss, graph
        The problem.
    """

    def __init__(self, loss: Loss, graph: SampleGraph | None) -> None:
        self.loss, self.graph = loss, graph
        self._recorded: dict[tuple[int, ...], Step | None] = {}

    def first(self, factors: Sequence[Array]) -> tuple[tuple[Array, ...], ObjectiveTerms]:
        """Return what the step from these factors needs, and F."""
        *carried, numbers = self._measure(factors)
        return tuple(carried), self._terms(numbers)

    def next(
        self, factors: Sequence[Array], carried: tuple[Array, ...]
    ) -> tuple[list[Array], tuple[Array, ...], ObjectiveTerms]:
        """Return the next factors with what the step from them needs, and F there."""
        recorded = self._recording()
        if recorded is None:
            return self._split(self._plain(*factors, *carried), len(factors))
        before = [self.loss.backend.xp.asarray(array, copy=True) for array in self.loss.kept]
        found = self._split(recorded(*factors, *carried), len(factors))
        if found[2].broken:  # there are fibers that somebody has to look at
            self._recorded[self._key] = None
            for array, copy in zip(self.loss.kept, before, strict=True):
                array[...] = copy
            found = self._split(self._plain(*factors, *carried), len(factors))
        return found

    def state(
        self,
        factors: Sequence[Array],
        carried: tuple[Array, ...],
        terms: ObjectiveTerms,
        curve: Sequence[float],
    ) -> dict[str, Any]:
        """Return all that the next step depends on, for a file."""
        return {
            "factors": list(factors),
            "carried": tuple(carried),
            "terms": terms,
            "curve": np.array(curve),
            "loss": self.loss.state(),
            "plain": self._recorded.get(self._key, self._plain) is None,
        }

    def resume(
        self, state: Mapping[str, Any]
    ) -> tuple[list[Array], tuple[Array, ...], ObjectiveTerms, list[float]]:
        """Go on from what `state` has returned: factors, what was carried, the terms and the curve."""
        backend = self.loss.backend
        self.loss.restore(state["loss"])
        if state["plain"]:
            self._recorded[self._key] = None
        factors, carried = (
            [placed(backend, array) for array in state[name]] for name in ("factors", "carried")
        )
        return factors, tuple(carried), state["terms"], state["curve"].tolist()

    @property
    def _key(self) -> tuple[int, ...]:
        """What a record holds for: the exactness, and where the arrays are that evaluations leave for each other."""
        return self.loss.exactness, *map(id, self.loss.kept)

    def _recording(self) -> Step | None:
        """Return the recorded step, if the backend can record it."""
        key = self._key
        if not self.loss.resident:
            return None
        if key not in self._recorded:
            entries = math.prod(self.loss.shape)
            kernels = [(kernel.form, kernel.size) for kernel in self.loss.kernels if kernel is not None]
            self._recorded[key] = self.loss.backend.recorded(self._plain, kernels, entries)
        return self._recorded[key]

    def _plain(self, *arrays: Array) -> tuple[Array, ...]:
        """Factors and what was carried, to the next ones, what they carry, and the numbers of F."""
        order = len(self.loss.kernels)
        moved = self.loss.advance(arrays[:order], arrays[order:], self.graph)
        return (*moved, *self._measure(moved))

    def _measure(self, factors: Sequence[Array]) -> tuple[Array, ...]:
        """Return what the next step needs, and the numbers of which F is the sum."""
        backend = self.loss.backend
        evaluation = self.loss.evaluate(factors)
        smoothness = 0.0 if self.graph is None else penalty(backend, factors[0], self.graph)
        parts = [part for terms in evaluation.modes if terms is not None for part in terms.parts]
        return (*evaluation.carried, backend.numbers([*parts, evaluation.misfit, smoothness]))

    def _split(
        self, found: tuple[Array, ...], order: int
    ) -> tuple[list[Array], tuple[Array, ...], ObjectiveTerms]:
        return list(found[:order]), found[order:-1], self._terms(found[-1])

    def _terms(self, numbers: Array) -> ObjectiveTerms:
        """Bring the numbers to the host, all at once, and name them."""
        *parts, misfit, smoothness = self.loss.backend.to_numpy(numbers).tolist()
        triples = iter(zip(*[iter(parts)] * 3, strict=True))
        modes = tuple(None if kernel is None else PlanTerms(*next(triples)) for kernel in self.loss.kernels)
        return ObjectiveTerms(modes, misfit, smoothness)


def placed(backend: Backend, values: NDArray[Any]) -> Array:
    """Bring an array from a file to the backend; a matrix that was laid out in columns is so again."""
    if values.ndim == 2 and values.flags.f_contiguous and not values.flags.c_contiguous:
        return backend.asarray(values.T).T
    return backend.asarray(values)
