"""A factorization problem, complete and independent of any backend."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.sparse import csr_array

from gwntf.core import InputError
from gwntf.backends import Backend
from gwntf.geometry import SampleGraph, place_graph
from gwntf.data import DataTensor
from gwntf.losses import Loss, LossSpec


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

    def place(self, backend: Backend) -> tuple[Loss, SampleGraph | None]:
        """Build kernels and graph on the backend: once for all restarts."""
        loss = self.loss.place(backend, self.tensor)
        if self.graph is None or self.graph_reg == 0:
            return loss, None
        return loss, place_graph(self.graph, self.graph_reg, backend, self.tensor.dtype)
