"""A factorization problem, complete and independent of any engine."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.sparse import csr_array

from gwntf.core import InputError, Relaxation
from gwntf.engines import Engine
from gwntf.geometry import Cost, SampleGraph, build_kernel, place_graph
from gwntf.problem import NonnegativeTensor
from gwntf.solvers.loss import TransportLoss
from gwntf.transport import TransportLimits


@dataclass(frozen=True)
class Problem:
    """What is to be minimised: F(A) of `docs/mathematics.md`, without the rank.

    Attributes
    ----------
    tensor : NonnegativeTensor
        X, samples first.
    costs : tuple of cost or None
        One per axis; None leaves that mode out of the transport. All None is the KL loss.
    relaxation : Relaxation
        lam, alpha, beta.
    graph : csr_array or None
        V on the samples.
    graph_reg : float
        mu.
    """

    tensor: NonnegativeTensor
    costs: tuple[Cost | None, ...]
    relaxation: Relaxation
    graph: csr_array | None = None
    graph_reg: float = 0.0

    def __post_init__(self) -> None:
        if self.relaxation.psi == 1.0 and any(cost is not None for cost in self.costs):
            allowed = "a finite positive number: an exact model marginal would freeze the factors"
            raise InputError("reg_m_model", repr(self.relaxation.reg_m_model), allowed)

    def place(self, engine: Engine, limits: TransportLimits) -> tuple[TransportLoss, SampleGraph | None]:
        """Build kernels and graph on the engine: once for all restarts."""
        dtype = self.tensor.values.dtype
        kernels = tuple(
            None if cost is None else build_kernel(cost, self.relaxation.reg, engine, dtype)
            for cost in self.costs
        )
        loss = TransportLoss(engine, self.tensor, kernels, self.relaxation, limits)
        if self.graph is None or self.graph_reg == 0:
            return loss, None
        return loss, place_graph(self.graph, self.graph_reg, engine, dtype)
