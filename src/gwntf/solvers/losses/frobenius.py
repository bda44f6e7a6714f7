"""The least-squares loss 1/2 |X - X^|^2 of NMF, GNMF, NCP and GNCP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gwntf.core import Array
from gwntf.engines import Engine
from gwntf.geometry import SampleGraph
from gwntf.problem import NonnegativeTensor, mttkrp, reconstruct
from gwntf.solvers.losses.protocol import Evaluation
from gwntf.updates import least_squares_factor, unit_columns


@dataclass(frozen=True)
class Frobenius:
    """1/2 |X - X^|^2, over the observed entries."""

    def place(self, engine: Engine, tensor: NonnegativeTensor) -> FrobeniusLoss:
        """Bring the data to the engine."""
        return FrobeniusLoss(engine, tensor)

    def for_new_samples(self) -> Self:
        """Return itself: its samples are not tied to each other."""
        return self


class FrobeniusLoss:
    """`Frobenius` placed.

    Where entries are missing, the target of each step is the data with the model filled in there (the E
    step of an EM), and the value counts observed entries only.
    """

    def __init__(self, engine: Engine, tensor: NonnegativeTensor) -> None:
        self.engine = engine
        self.data = engine.asarray(tensor.values)
        self.observed = None if tensor.observed is None else engine.asarray(tensor.observed)
        rows = tensor.values.reshape(len(tensor.values), -1)
        self.sample_scales = 0.5 * np.square(rows, dtype=np.float64).sum(axis=1)
        self._order = len(self.data.shape)

    def forget(self) -> None:
        """Nothing is kept."""

    def evaluate(self, factors: Sequence[Array]) -> Evaluation:
        """Return 1/2 |X - X^|^2, and the target of the factor step."""
        target, by_sample = self._compare(factors)
        return Evaluation((None,) * self._order, float(self.engine.xp.sum(by_sample)), target)

    def advance(
        self, factors: Sequence[Array], evaluation: Evaluation, graph: SampleGraph | None
    ) -> list[Array]:
        """Update the factors in turn, samples last, by the classic ratio: an MM step for this loss."""
        moved = list(factors)
        for mode in [*range(1, len(factors)), 0]:
            product = mttkrp(evaluation.carried, moved, mode)
            moved[mode] = least_squares_factor(
                self.engine, moved, product, mode, graph if mode == 0 else None
            )
        return moved

    def finish(self, factors: Sequence[Array]) -> list[Array]:
        """Scale the columns of all but the sample factor to length one, once, as the authors of GNMF do."""
        return unit_columns(self.engine, factors)

    def sample_step(self, factors: Sequence[Array]) -> tuple[Array, Array]:
        """Update the samples by themselves."""
        target, by_sample = self._compare(factors)
        product = mttkrp(target, factors, 0)
        return least_squares_factor(self.engine, factors, product, 0, None), by_sample

    def _compare(self, factors: Sequence[Array]) -> tuple[Array, Array]:
        """Target of the next step, and 1/2 |x - x^|^2 of every sample over its observed entries."""
        xp = self.engine.xp
        model = reconstruct(factors)
        target = self.data if self.observed is None else xp.where(self.observed, self.data, model)
        residual = (target - model).reshape(model.shape[0], -1)
        return target, 0.5 * xp.sum(residual * residual, axis=1, dtype=xp.float64)
