"""What the workers do under the least-squares loss: pure functions of a block, its rows, and small matrices."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gwntf.cluster.neighbors import with_neighbors
from gwntf.cluster.work import Share
from gwntf.core import FloatArray
from gwntf.geometry import SampleGraph
from gwntf.data import NonnegativeTensor
from gwntf.losses import FrobeniusLoss


@dataclass(frozen=True)
class Squares:
    """The least-squares loss of a block."""

    loss: FrobeniusLoss
    block: NonnegativeTensor

    def __reduce__(self) -> Any:
        return place_squares, (self.block,)

    def __sizeof__(self) -> int:
        return sys.getsizeof(self.block)


def place_squares(block: NonnegativeTensor) -> Squares:
    """Place the least-squares loss of a block."""
    with block.backend.session(None):
        return Squares(FrobeniusLoss(block.backend, block), block)


def size_of_squares(squares: Squares) -> float:
    """1/2 |X|^2 of a block."""
    return float(squares.loss.sample_scales.sum())


def measure_squares(squares: Squares, a: FloatArray, rest: Sequence[FloatArray]) -> Share:
    """1/2 |X - X^|^2 of a block, X_(1)' A(1) and A(1)' A(1)."""
    loss, backend = squares.loss, squares.loss.backend
    with backend.session(None), backend.quiet():
        factors = [backend.asarray(factor) for factor in (a, *rest)]
        found = loss.evaluate(factors)
        begun, gram = (backend.to_numpy(part) for part in found.carried[:2])
        return Share(begun, gram, np.array([float(found.misfit)]))


def step_squares(
    squares: Squares,
    a: FloatArray,
    rest: Sequence[FloatArray],
    graph: SampleGraph | None,
    lent: Sequence[FloatArray],
) -> FloatArray:
    """Update the rows of a block, the other factors having been updated."""
    loss, backend = squares.loss, squares.loss.backend
    with backend.session(None), backend.quiet():
        here = None if graph is None else with_neighbors(backend, graph, a, lent)
        factors = [backend.asarray(factor) for factor in (a, *rest)]
        return backend.to_numpy(loss.moved_samples(factors, here))
