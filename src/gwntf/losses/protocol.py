"""What the outer loop and the projection ask of a loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gwntf.core import Array
from gwntf.backends import Backend
from gwntf.geometry import Kernel, SampleGraph, SampleTies
from gwntf.data import DataTensor
from gwntf.transport import PlanTerms


@dataclass(frozen=True)
class Evaluation:
    """The data term at given factors.

    Attributes
    ----------
    modes, misfit
        See `ObjectiveTerms`; numbers that are still on the backend.
    carried : tuple of arrays
        What the loss needs for the factor step that follows.
    """

    modes: tuple[PlanTerms | None, ...]
    misfit: Any
    carried: tuple[Array, ...]


@dataclass(frozen=True)
class ObjectiveTerms:
    """F, term by term.

    Attributes
    ----------
    modes : tuple of PlanTerms or None
        Per axis of X: transport, data and model part; None for a mode that is not transported.
    misfit : float
        KL(X | X^) or 1/2 |X - X^|^2 where no mode is transported, else zero.
    graph : float
        (mu/4) sum_ij V_ij |a_i - a_j|^2.
    """

    modes: tuple[PlanTerms | None, ...]
    misfit: float
    graph: float

    @property
    def broken(self) -> bool:
        """Whether F is not a finite number."""
        return not math.isfinite(self.total)

    @property
    def total(self) -> float:
        """F."""
        plans = sum(terms.total for terms in self.modes if terms is not None)
        return float(plans + self.misfit + self.graph)


class Loss(Protocol):
    """A data term placed on an backend with its data; may keep state from one evaluation to the next."""

    @property
    def backend(self) -> Backend:
        """Owner of the arrays."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of X."""
        ...

    @property
    def resident(self) -> bool:
        """Whether all data are in memory, where the backend can find them without asking the host."""
        ...

    @property
    def sample_scales(self) -> Array:
        """Size of every sample in the unit of the loss, in float64, against which small changes are measured."""
        ...

    def forget(self) -> None:
        """Drop all state, as a restart must."""
        ...

    def evaluate(self, factors: Sequence[Array]) -> Evaluation:
        """Return the value at these factors and what the factor step needs."""
        ...

    def advance(
        self, factors: Sequence[Array], carried: tuple[Array, ...], graph: SampleGraph | None
    ) -> list[Array]:
        """One factor step, given what the evaluation at these factors carried."""
        ...

    def finish(self, factors: Sequence[Array]) -> list[Array]:
        """Bring the last factors into the scale in which they are returned."""
        ...

    def refine(self) -> bool:
        """Evaluate more exactly from now on, and say whether that was possible."""
        ...

    @property
    def exactness(self) -> int:
        """A number that changes when `refine` does something."""
        ...

    @property
    def kept(self) -> Sequence[Array]:
        """Arrays that an evaluation leaves for the next one, and writes in place."""
        ...

    def state(self) -> dict[str, Any]:
        """Return what evaluations leave for each other, for a file."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` has returned."""
        ...

    @property
    def kernels(self) -> Sequence[Kernel | None]:
        """Kernel of every mode that is transported."""
        ...

    def sample_step(self, factors: Sequence[Array], ties: SampleTies | None) -> tuple[Array, Array]:
        """One step of every new sample by itself; also the data term of each sample before it."""
        ...


class LossSpec(Protocol):
    """A loss before it meets data: configuration only."""

    def place(self, backend: Backend, tensor: DataTensor) -> Loss:
        """Build what can be shared by all restarts, kernels above all."""
        ...

    def for_new_samples(self) -> LossSpec:
        """Return the same loss without any term that ties samples to each other."""
        ...
