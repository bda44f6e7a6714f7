"""One iteration: from a fit state to the next and its objective, recorded and replayed if the backend supports it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from gwntf.core import Array
from gwntf.data import BlockState
from gwntf.losses import FitState, GraphTerm, ObjectiveTerms, block_rows_penalty
from gwntf.solver.problem import Problem

Recorded = Callable[..., tuple[Array, ...]]

DETACH_EVERY = 20
"""Iterations after which the states on a cluster are copied to the client, so that at most as many are recomputed when
a worker is lost."""

_DETACHED_BYTES = 2**26
"""Total size of the states in bytes above which they are not copied."""


class Steps:
    """Iterations of a problem, shared by all of its fits, which reuse the steps recorded by the first.

    `size` is the size of X in the units of the loss, the reference for `tol`.
    """

    def __init__(self, problem: Problem) -> None:
        data = problem.data
        self.data, self.blocks, self.loss = data, data.blocks, problem.loss.prepared(data)
        self.graph = GraphTerm(self.blocks, problem.graph, problem.graph_reg, data.dtype)
        self.penalties = self.loss.effective_penalties(problem.penalties)
        self.size = sum(float(found.sum()) for found in self.blocks.map(self.loss.sizes))
        self._recorded: dict[Any, Recorded | None] = {}
        self._state: Any = None  # Arrays of the first fit, which recorded steps write into
        self._columns: Any = None

    def first(self, factors: Sequence[Array]) -> tuple[FitState, ObjectiveTerms]:
        """Return the fit state at given factors, and F there."""
        rows, *rest = factors
        kept = self.blocks.put([BlockState(part) for part in self.data.split(rows)])
        if self.blocks.recordable:
            kept = [kept[0]._replace(state=self._state)]
        at = FitState(kept, list(rest), columns=self._columns, effort=self.loss.first_effort)
        at = self.loss.started(self.blocks, at, self.penalties)
        found, numbers = self._measured(self.loss.first(self.blocks, at))
        if self.blocks.recordable:
            state = found.kept[0].state
            self._state = state and state.cold()
            self._columns = found.columns and [state and state.cold() for state in found.columns]
        return self.prepared([found]), self._terms(numbers)

    def next(self, at: FitState) -> tuple[FitState, ObjectiveTerms]:
        """Return the next fit state, and F there."""
        replayed = self._replayed(at)
        if replayed is not None:
            return replayed
        found, numbers = self._advanced(at, self._inputs(at))
        return found, self._terms(numbers)

    def retreat(self, at: FitState, moved: FitState) -> tuple[FitState, ObjectiveTerms]:
        """Return the fit state after an update of `at` without acceleration, and F there; that of `moved` is higher."""
        found, numbers = self._measured(self.loss.retreat(self.blocks, at, moved, self.graph, self.penalties))
        return found, self._terms(numbers)

    def prepared(self, tried: Sequence[FitState], count: int = 0) -> FitState:
        """Return the last of some fit states, ready for the next step; see `Loss.prepared_step`.

        `count` is the number of iterations so far.
        """
        at = tried[-1]
        if not self.loss.plain:
            at = self.loss.prepared_step(self.blocks, tried, self.graph, self.penalties)
        return self._detached(at) if count % DETACH_EVERY == DETACH_EVERY - 1 else at

    def factors(self, at: FitState) -> Factors:
        """Return the factors in the scale in which a fit returns them."""
        return Factors(self, at)

    def refined(self, at: FitState) -> FitState | None:
        """Return the fit state with a higher effort, or None if the effort is at its maximum."""
        effort = self.loss.refined(at.effort)
        return None if effort is None else at._replace(effort=effort)

    def with_halo(self, at: FitState) -> FitState:
        """Return the fit state with its halo rows computed."""
        return at._replace(halo=self.graph.halo(at.kept))

    def _inputs(self, at: FitState) -> Array:
        """Return the numbers that the next step depends on, on the backend."""
        return self.blocks.backend.numbers(at.acceleration.inputs if at.acceleration else [0.0])

    def _advanced(self, at: FitState, inputs: Array) -> tuple[FitState, Array]:
        return self._measured(self.loss.advance(self.blocks, at, self.graph, self.penalties, inputs))

    def _measured(self, at: FitState) -> tuple[FitState, Array]:
        """Collect the results of a pass; also return the terms of F as one array."""
        backend, at = self.blocks.backend, self.with_halo(at)
        samples, others = self.penalties.samples, self.penalties.others
        waiting = [at.sums]
        if self.graph.present:
            waiting.append(self.graph.penalty(at.kept, at.halo))
        if samples.present:
            waiting.append(self.blocks.apply(block_rows_penalty, at.kept, penalty=samples)[1])
        sums, *added = self.blocks.collect(*waiting)
        at = at._replace(sums=sums)
        found = {"graph": 0.0, "penalty": 0.0}
        for part in added:
            found |= part
        if others.present:
            found["penalty"] = found["penalty"] + sum(others.of(backend.xp, factor) for factor in at.rest)
        numbers = self.loss.numbers(self.blocks, at, self.size)
        return at, backend.xp.concat([numbers, backend.numbers([found["graph"], found["penalty"]])])

    def _terms(self, numbers: Array) -> ObjectiveTerms:
        """Copy the terms of F to the host, in one transfer, and name them."""
        *parts, graph, penalty = self.blocks.backend.to_numpy(numbers).tolist()
        return replace(self.loss.terms(parts, graph, self.data.ndim), penalty=penalty)

    def _detached(self, at: FitState) -> FitState:
        rows = len(self.data) * at.rest[0].shape[1] * self.data.dtype.itemsize
        history = 0 if at.past is None or isinstance(at.past, list) else at.past.shape[0]
        if self.loss.state_bytes(self.data) + history * rows > _DETACHED_BYTES:
            return at
        columns = None if at.columns is None else self.blocks.detached(at.columns)
        return self.with_halo(at._replace(kept=self.blocks.detached(at.kept), columns=columns))

    # --- recorded steps, for data in one block on a device ---

    def _key(self, at: FitState) -> Any:
        """Return the key of a recorded step: the effort, and the identities of the arrays that it writes into."""
        return at.effort, *map(id, _state_arrays(at))

    def plain(self, at: FitState) -> bool:
        """Whether steps from this state are not replayed, because some fibers need the fallback on the host."""
        return self._recorded.get(self._key(at), self._advanced) is None

    def make_plain(self, at: FitState) -> None:
        """Disable replay for steps from this state."""
        self._recorded[self._key(at)] = None

    def _replayed(self, at: FitState) -> tuple[FitState, ObjectiveTerms] | None:
        """Return the next fit state by replaying a recorded step, or None if there is none or it failed."""
        if not self.blocks.recordable:
            return None
        key, backend = self._key(at), self.blocks.backend
        if key not in self._recorded:
            kernels = [(kernel.form, kernel.size) for kernel in self.loss.kernels_on(self.blocks, self.data.dtype)]
            entries = math.prod(self.data.shape)
            self._recorded[key] = backend.recorded(lambda *arrays: self._flat_step(at, arrays), kernels, entries)
        step = self._recorded[key]
        if step is None:
            return None
        before = [backend.xp.asarray(array, copy=True) for array in _state_arrays(at)]
        *arrays, numbers = step(self._inputs(at), *_arrays(at))
        terms = self._terms(numbers)
        if not terms.broken:
            return _with_arrays(at, iter(arrays)), terms
        self.make_plain(at)
        for array, copy in zip(_state_arrays(at), before, strict=True):
            array[...] = copy
        return None

    def _flat_step(self, at: FitState, arrays: Sequence[Array]) -> tuple[Array, ...]:
        inputs, *changing = arrays
        found, numbers = self._advanced(_with_arrays(at, iter(changing)), inputs)
        return (*_arrays(found), numbers)


class Factors(Sequence[Array]):
    """Copies of the factors of a fit state in the scale in which a fit returns them, each made on first access."""

    def __init__(self, steps: Steps, at: FitState) -> None:
        self._blocks, self._kept = steps.blocks, at.kept
        self._rest, self._scale = steps.loss.scaled(steps.blocks, at.rest)
        self._copies: dict[int, Array] = {}

    def __len__(self) -> int:
        return 1 + len(self._rest)

    def __getitem__(self, index: Any) -> Any:
        """Return one factor, or a list of factors for a slice."""
        if isinstance(index, slice):
            return [self[mode] for mode in range(*index.indices(len(self)))]
        mode = range(len(self))[index]
        if mode not in self._copies:
            factor = self._rest[mode - 1] if mode else self._blocks.rows(self._kept)
            scale = None if mode else self._scale
            copied = self._blocks.backend.xp.asarray(factor, copy=True)
            self._copies[mode] = copied if scale is None else copied * scale
        return self._copies[mode]


def _state_arrays(at: FitState) -> list[Array]:
    """Return the arrays that a pass writes into."""
    states = [part.state for part in at.kept] + list(at.columns or ())
    return [array for state in states if state is not None for array in state.arrays]


def _arrays(at: FitState) -> list[Array]:
    """Return all arrays of a fit state with one block that change in a step."""
    kept, sums = at.kept[0], list[Array]()
    at.sums.map(sums.append)
    past = at.past if isinstance(at.past, list) else [at.past]
    some = [part for part in (kept.own, kept.past, kept.step, at.step, *past) if part is not None]
    return [kept.rows, *some, *at.rest, *sums, *at.carried]


def _with_arrays(at: FitState, arrays: Iterator[Array]) -> FitState:
    """Return the fit state with its arrays replaced, in the order of `_arrays`."""
    kept, rows = at.kept[0], next(arrays)
    listed = isinstance(at.past, list)
    given = (kept.own, kept.past, kept.step, at.step, *(at.past if listed else [at.past]))
    own, rows_past, rows_step, step, *past = (None if part is None else next(arrays) for part in given)
    rest = [next(arrays) for _ in at.rest]
    sums = at.sums.map(lambda _: next(arrays))
    kept = BlockState(rows, own, kept.state, rows_past, rows_step)
    return at._replace(
        kept=[kept], rest=rest, past=past if listed else past[0], step=step, sums=sums, carried=tuple(arrays)
    )
