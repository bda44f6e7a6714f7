"""A factorization problem, complete and independent of any engine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.sparse import csr_array

from gwntf.core import InputError
from gwntf.engines import Engine
from gwntf.geometry import SampleGraph, place_graph
from gwntf.problem import DataTensor
from gwntf.solvers.losses import Loss, LossSpec


@dataclass(frozen=True)
class Problem:
    """What is to be minimised: F(A) of `docs/mathematics.md`, without the rank.

    Attributes
    ----------
    tensor : NonnegativeTensor, SparseTensor or ChunkedTensor
        X, samples first.
    loss : LossSpec
        The data term.
    graph : csr_array or None
        V on the samples.
    graph_reg : float
        mu.
    """

    tensor: DataTensor
    loss: LossSpec
    graph: csr_array | None = None
    graph_reg: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.graph_reg < math.inf:
            raise InputError("graph_reg", repr(self.graph_reg), "a finite nonnegative number")

    def place(self, engine: Engine) -> tuple[Loss, SampleGraph | None]:
        """Build kernels and graph on the engine: once for all restarts."""
        loss = self.loss.place(engine, self.tensor)
        if self.graph is None or self.graph_reg == 0:
            return loss, None
        return loss, place_graph(self.graph, self.graph_reg, engine, self.tensor.dtype)
