"""Data terms of the objective, one file per loss.

`protocol` says what the outer loop asks of a loss; `transport` is the Wasserstein loss (KL where no mode is
transported), `frobenius` the least-squares loss, `entrywise` the base of losses that are sums over entries. A loss is
first a specification, free of data and backend, and is then placed.
"""

from gwntf.losses.entrywise import Entrywise
from gwntf.losses.frobenius import Frobenius, FrobeniusLoss
from gwntf.losses.protocol import Evaluation, Loss, LossSpec, ObjectiveTerms
from gwntf.losses.transport import TransportLoss, Wasserstein

__all__ = [
    "Entrywise",
    "Evaluation",
    "Frobenius",
    "FrobeniusLoss",
    "Loss",
    "LossSpec",
    "ObjectiveTerms",
    "TransportLoss",
    "Wasserstein",
]
