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
from gwntf.updates import least_squares_factor, other_grams, unit_columns


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

    Without missing entries the model is never formed: |x - x^|^2 = |x|^2 - 2 <a, X_(N) A(-N)> + a G a', and the
    product is the one that the sample update has just used. Where entries are missing, the target of each step is the
    data with the model filled in there (the E step of an EM), and the value counts observed entries only.
    """

    def __init__(self, engine: Engine, tensor: NonnegativeTensor) -> None:
        self.engine = engine
        self.data = engine.asarray(tensor.values)
        self.observed = None if tensor.observed is None else engine.asarray(tensor.observed)
        rows = tensor.values.reshape(len(tensor.values), -1)
        self.sample_scales = 0.5 * np.square(rows, dtype=np.float64).sum(axis=1)
        self._sizes = engine.asarray(self.sample_scales)
        self._order = len(self.data.shape)
        self._held: tuple[list[Array], Array] | None = None

    def forget(self) -> None:
        """Drop the product of the last step."""
        self._held = None

    def evaluate(self, factors: Sequence[Array]) -> Evaluation:
        """Return 1/2 |X - X^|^2, and the target of the factor step."""
        target, by_sample = self._compare(factors)
        return Evaluation((None,) * self._order, float(self.engine.xp.sum(by_sample)), target)

    def advance(
        self, factors: Sequence[Array], evaluation: Evaluation, graph: SampleGraph | None
    ) -> list[Array]:
        """Update the factors in turn, samples last, by the classic ratio: an MM step for this loss."""
        moved = list(factors)
        for mode in range(1, len(factors)):
            product = mttkrp(evaluation.carried, moved, mode)
            moved[mode] = least_squares_factor(self.engine, moved, product, mode, None)
        product = self._sample_product(moved, evaluation.carried)
        moved[0] = least_squares_factor(self.engine, moved, product, 0, graph)
        return moved

    def finish(self, factors: Sequence[Array]) -> list[Array]:
        """Scale the columns of all but the sample factor to length one, once, as the authors of GNMF do."""
        return unit_columns(self.engine, factors)

    def sample_step(self, factors: Sequence[Array]) -> tuple[Array, Array]:
        """Update the samples by themselves."""
        target, by_sample = self._compare(factors)
        product = self._sample_product(factors, target)
        return least_squares_factor(self.engine, factors, product, 0, None), by_sample

    def _compare(self, factors: Sequence[Array]) -> tuple[Array, Array]:
        """Target of the next step, and 1/2 |x - x^|^2 of every sample over its observed entries, in float64."""
        xp = self.engine.xp
        if self.observed is not None:
            model = reconstruct(factors)
            target = xp.where(self.observed, self.data, model)
            residual = (target - model).reshape(model.shape[0], -1)
            return target, 0.5 * xp.sum(residual * residual, axis=1, dtype=xp.float64)
        product = self._sample_product(factors, self.data)
        a, *rest = (xp.astype(factor, xp.float64, copy=False) for factor in factors)
        cross = xp.astype(product, xp.float64, copy=False)
        values = self._sizes + xp.sum(a * (0.5 * (a @ other_grams([a, *rest], 0)) - cross), axis=1)
        return self.data, xp.maximum(values, xp.zeros_like(values))

    def _sample_product(self, factors: Sequence[Array], target: Array) -> Array:
        """X_(N) A(-N) for the samples; taken from the last step while the other factors are the same."""
        rest = list(factors[1:])
        if self.observed is not None:
            return mttkrp(target, factors, 0)
        if self._held is None or not all(a is b for a, b in zip(self._held[0], rest, strict=True)):
            self._held = (rest, mttkrp(target, factors, 0))
        return self._held[1]
