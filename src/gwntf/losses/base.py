"""The interface between the solver and a loss.

A loss is configuration without state: whatever changes from one pass to the next is in a `Position`. Methods that take
a `block` run where the block is, perhaps on a worker; methods that take `blocks` run in the process of the fit and send
the former there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gwntf.core import Array
from gwntf.data import Block, Blocks, DataTensor, Parts
from gwntf.geometry import Kernel
from gwntf.losses.graph import GraphTerm, Pull
from gwntf.losses.penalty import Penalties, Penalty


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
        """W."""
        return self.transport + self.data + self.model


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
        """F."""
        plans = sum(terms.total for terms in self.modes if terms is not None)
        return float(plans + self.misfit + self.graph + self.penalty)


class Position(NamedTuple):
    """A fit between two iterations: all that the next one depends on."""

    kept: Parts  # `Kept` of every block: rows of A(1), what their next step needs, and the state of the block
    rest: list[Array]  # The other factors
    # What the last pass found, summed over the blocks; before `Blocks.collect` what it takes
    sums: Any = None
    columns: Any = None  # States of the blocks of columns, for transport along the samples
    carried: tuple[Array, ...] = ()  # What a loss has computed from `rest` and will need again
    # How exactly the data term is evaluated: the scalings of a transport; zero where it is exact
    effort: int = 0
    # Rows of A(1) of the neighbours of every block in other blocks; these follow from `kept`
    halo: Parts = ()


class Loss(ABC):
    """A data term."""

    def prepared(self, data: DataTensor) -> Loss:  # noqa: ARG002
        """Return the loss for these data."""
        return self

    def for_new_samples(self) -> Loss:
        """Return the same loss without any term that joins samples to each other."""
        return self

    def state_bytes(self, data: DataTensor) -> int:  # noqa: ARG002
        """Bytes that all blocks keep from one pass to the next."""
        return 0

    def effective_penalties(self, penalties: Penalties) -> Penalties:
        """Return the penalties that are not constant under the loss; raise InputError where it supports none."""
        return penalties

    # --- where a block is ---

    @abstractmethod
    def sizes(self, block: Block) -> Array:
        """Size of every sample in the unit of the loss, in float64, against which small changes are measured."""

    @abstractmethod
    def sample_step(
        self, block: Block, a: Array, rest: Sequence[Array], pull: Pull | None, penalty: Penalty, state: Any
    ) -> tuple[Array, Array, Any]:
        """One step of new samples, each by itself; also the data term of each before it, and the next state."""

    # --- in the process of the fit ---

    @property
    def first_effort(self) -> int:
        """How exactly the data term is evaluated at first."""
        return 0

    def refined(self, effort: int) -> int | None:  # noqa: ARG002
        """Return the next higher effort, or None if there is none."""
        return None

    @abstractmethod
    def first(self, blocks: Blocks, at: Position) -> Position:
        """Evaluate the data term at a position of which only the factors, states and effort are known."""

    @abstractmethod
    def advance(self, blocks: Blocks, at: Position, graph: GraphTerm, penalties: Penalties) -> Position:
        """Move all factors, and evaluate the data term there."""

    @abstractmethod
    def numbers(self, blocks: Blocks, at: Position, size: float) -> Array:
        """Return the numbers of the data term as one array; `size` is the sum of all `sizes`."""

    def terms(self, numbers: Sequence[float], graph: float, order: int) -> ObjectiveTerms:
        """Name the numbers of the data term, and that of the graph."""
        return ObjectiveTerms((None,) * order, numbers[0], graph)

    def scaled(self, blocks: Blocks, rest: Sequence[Array]) -> tuple[list[Array], Array | None]:
        """Return the other factors in the scale of a result, and what the columns of A(1) are multiplied by, if so.

        By default columns get Euclidean length one, once, as the authors of GNMF do; empty ones stay.
        """
        xp = blocks.backend.xp
        scaled, scale = [], xp.ones_like(rest[0][0, :])
        for factor in rest:
            norms = xp.sqrt(xp.sum(factor * factor, axis=0))
            norms = xp.where(norms > 0, norms, xp.ones_like(norms))
            scaled.append(factor / norms)
            scale = scale * norms
        return scaled, scale

    def kernels_on(self, blocks: Blocks, dtype: Any) -> Sequence[Kernel]:  # noqa: ARG002
        """Kernels of all modes that are transported, for a backend that records a pass."""
        return ()
