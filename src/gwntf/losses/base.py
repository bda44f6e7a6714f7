"""The interface between the solver and a loss.

A loss is stateless configuration: everything that changes from one pass to the next is in a `FitState`. Methods that
take a `block` run where the block is stored, possibly on a worker; methods that take `blocks` run in the process of the
fit and send the former to the blocks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any, ClassVar, NamedTuple, Self

from gwntf.core import Array
from gwntf.data import Block, Blocks, DataTensor, PerBlock
from gwntf.geometry import Kernel
from gwntf.losses.graph import GraphGradient, GraphTerm
from gwntf.losses.penalty import Penalties, Penalty
from gwntf.losses.scheme import Momentum, Plain, Search
from gwntf.losses.sweeps import unit_columns


@dataclass(frozen=True)
class PlanTerms:
    """The three parts of the transport cost W of one mode.

    Attributes
    ----------
    transport : float
        <C, T> + (1/lam) sum T log T.
    data : float
        alpha KL(T1 | x).
    model : float
        beta KL(T'1 | y).
    """

    transport: float
    data: float
    model: float

    @property
    def total(self) -> float:
        """W, the sum of the three parts."""
        return self.transport + self.data + self.model


@dataclass(frozen=True)
class ObjectiveTerms:
    """The terms of the objective F.

    Attributes
    ----------
    modes : tuple of PlanTerms or None
        Per axis of X: transport, data and model part; None for a mode that is not transported.
    misfit : float
        KL(X | X^) or 1/2 |X - X^|^2 if no mode is transported, else zero.
    graph : float
        (mu/4) sum_ij V_ij |a_i - a_j|^2.
    penalty : float
        sum over the factors of l1 |A|_1 + (l2/2) |A|_F^2.
    """

    modes: tuple[PlanTerms | None, ...]
    misfit: float
    graph: float
    penalty: float = 0.0

    @property
    def broken(self) -> bool:
        """Whether F is not a finite number."""
        return not math.isfinite(self.total)

    @property
    def total(self) -> float:
        """F, the sum of all terms."""
        plans = sum(terms.total for terms in self.modes if terms is not None)
        return float(plans + self.misfit + self.graph + self.penalty)


class FitState(NamedTuple):
    """State of a fit between two iterations: everything that the next iteration depends on."""

    kept: PerBlock  # `BlockState` of every block: its rows of A(1), their numerators and the state of the block
    rest: list[Array]  # The other factors
    # What the acceleration keeps of them: a list of factors to extrapolate from, or the history of `quasi_newton`
    past: Any = ()
    # Results of the last pass, summed over the blocks; before `Blocks.collect`, its argument
    sums: Any = None
    columns: Any = None  # States of the column blocks, for transport along the samples
    carried: tuple[Array, ...] = ()  # Arrays computed from `rest` that the loss reuses
    effort: int = 0  # Accuracy of the data term: scalings per transport; zero if it is exact
    acceleration: Any = None  # `Momentum` or `Search` for the next step; None for the plain scheme
    step: Array | None = None  # r of the other factors in the next step of `quasi_newton`
    since: int = 0  # Iteration since which F has been measured with this effort
    halo: PerBlock = ()  # Halo rows of every block: rows of A(1) of its neighbours in other blocks; derived from `kept`


class Loss(ABC):
    """A data term."""

    plain: Plain | None = None  # The scheme of the papers, or None for that of the library
    held: int = 0  # Number of leading components whose columns are kept in all factors but that of the samples
    largest_momentum: ClassVar[float] = 2.0  # Limit of the bound of `Momentum`
    acceleration: ClassVar[type[Momentum] | type[Search]] = Momentum

    def fitted_by(self, plain: Plain | None, held: int) -> Self:
        """Return the loss with another scheme and another number of held components."""
        loss = copy(self)
        object.__setattr__(loss, "plain", plain)
        object.__setattr__(loss, "held", held)
        return loss

    def for_start(self) -> Loss | None:
        """Return an easier loss whose minimum is a better start than the given factors, or None."""
        return None

    def prepared(self, data: DataTensor) -> Loss:  # noqa: ARG002
        """Return the loss adapted to the data."""
        return self

    def for_new_samples(self) -> Loss:
        """Return the loss without terms that couple samples to each other."""
        return self

    def state_bytes(self, data: DataTensor) -> int:  # noqa: ARG002
        """Return the total size in bytes of the states that blocks keep between passes."""
        return 0

    def effective_penalties(self, penalties: Penalties) -> Penalties:
        """Return the penalties that are not constant under the loss; raise InputError if it supports none."""
        return penalties

    # --- methods of one block, run where it is stored ---

    @abstractmethod
    def sizes(self, block: Block) -> Array:
        """Return the size of every sample in the units of the loss, in float64, the reference for `tol`."""

    @abstractmethod
    def sample_step(
        self,
        block: Block,
        a: Array,
        rest: Sequence[Array],
        gradient: GraphGradient | None,
        penalty: Penalty,
        state: Any,
    ) -> tuple[Array, Array, Any]:
        """Update new samples independently; return their rows, the data term of each before the step, and the state."""

    # --- methods of all blocks, run in the process of the fit ---

    @property
    def first_effort(self) -> int:
        """Initial `FitState.effort`."""
        return 0

    def refined(self, effort: int) -> int | None:  # noqa: ARG002
        """Return the next higher effort, or None if there is none."""
        return None

    @abstractmethod
    def first(self, blocks: Blocks, at: FitState) -> FitState:
        """Evaluate the data term at a state that has only factors, states and effort."""

    def started(self, blocks: Blocks, at: FitState, penalties: Penalties) -> FitState:  # noqa: ARG002
        """Return the initial factors in the scale of the loss, as those to extrapolate from."""
        return at._replace(past=list(at.rest))

    @abstractmethod
    def advance(self, blocks: Blocks, at: FitState, graph: GraphTerm, penalties: Penalties, inputs: Array) -> FitState:
        """Take the next step, and evaluate the data term there; `inputs` are those of the acceleration.

        Plain schemes ignore the inputs.
        """

    def shorter(self, at: FitState, rise: float) -> FitState | None:  # noqa: ARG002
        """Return the state with a shorter step, after one that raised F by `rise`, or None to undo it."""
        return None

    @abstractmethod
    def retreat(
        self, blocks: Blocks, at: FitState, moved: FitState, graph: GraphTerm, penalties: Penalties
    ) -> FitState:
        """Return the state after an update of `at` without acceleration, evaluated; the step to `moved` raised F."""

    def prepared_step(
        self,
        blocks: Blocks,  # noqa: ARG002
        tried: Sequence[FitState],
        graph: GraphTerm,  # noqa: ARG002
        penalties: Penalties,  # noqa: ARG002
    ) -> FitState:
        """Return the last of some states, ready for the next step.

        The others are the state from which it was reached, first, and those that were rejected in between. A single
        state is the first of a fit, or comes from `retreat`.
        """
        first, at = tried[0], tried[-1]
        if len(tried) == 1:
            return at if at.acceleration else at._replace(acceleration=Momentum())
        return at._replace(acceleration=first.acceleration.accepted(self.largest_momentum))

    @abstractmethod
    def numbers(self, blocks: Blocks, at: FitState, size: float) -> Array:
        """Return the values of the data term as one array; `size` is the sum of all `sizes`."""

    def terms(self, numbers: Sequence[float], graph: float, order: int) -> ObjectiveTerms:
        """Return the values of the data term and of the graph as named terms."""
        return ObjectiveTerms((None,) * order, numbers[0], graph)

    def scaled(self, blocks: Blocks, rest: Sequence[Array]) -> tuple[list[Array], Array | None]:
        """Return the other factors as a fit returns them, and the scale of the columns of A(1), or None.

        By default columns are scaled to Euclidean length one, as by the authors of GNMF; columns of zeros are not
        scaled.
        """
        pairs = [unit_columns(blocks.backend.xp, factor) for factor in rest]
        return [factor for factor, _ in pairs], reduce(mul, (norms for _, norms in pairs))

    def kernels_on(self, blocks: Blocks, dtype: Any) -> Sequence[Kernel]:  # noqa: ARG002
        """Return the kernels of all transported modes, for a backend that records a pass."""
        return ()
