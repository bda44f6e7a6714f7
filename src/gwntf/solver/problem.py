"""A factorization problem, complete and independent of where it is solved."""

import math
from dataclasses import dataclass

from scipy.sparse import csr_array

from gwntf.core import InputError
from gwntf.data import DataTensor
from gwntf.losses import Loss


@dataclass(frozen=True)
class Problem:
    """What is to be minimised: F(A) of `docs/mathematics.md`, without the rank."""

    data: DataTensor  # X, samples first
    loss: Loss  # The data term
    graph: csr_array | None = None  # V on the samples
    graph_reg: float = 0.0  # mu

    def __post_init__(self) -> None:
        if not 0 <= self.graph_reg < math.inf:
            raise InputError("graph_reg", repr(self.graph_reg), "a finite nonnegative number")
