"""The Wasserstein loss: transport on some modes, or KL where no mode is transported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gwntf.core import Array, InputError, Relaxation
from gwntf.engines import Engine
from gwntf.geometry import Cost, Kernel, SampleGraph, build_kernel
from gwntf.problem import NonnegativeTensor, mttkrp, reconstruct
from gwntf.solvers.losses.protocol import Evaluation
from gwntf.transport import PlanTerms, TransportLimits, kl_columns, transport_mode
from gwntf.updates import RULES, other_masses, printed_factor, ratio_to_model, simplex_step

UPDATES = (*RULES, "paper")


@dataclass(frozen=True)
class Wasserstein:
    """sum_n sum_fibers W(x, x^) over the transported modes, or KL(X | X^) if there is none.

    Attributes
    ----------
    costs : tuple of cost or None
        One per axis; None leaves that mode out.
    relaxation : Relaxation
        lam, alpha, beta.
    limits : TransportLimits
        Accuracy of the transports.
    update : {"mm", "multiplicative", "paper"}
        Factor rule; "mm" never raises F.
    inner_iter : int
        Steps of the sample factor per transport step.
    """

    costs: tuple[Cost | None, ...]
    relaxation: Relaxation
    limits: TransportLimits
    update: str = "mm"
    inner_iter: int = 1

    def __post_init__(self) -> None:
        if self.relaxation.psi == 1.0 and any(cost is not None for cost in self.costs):
            allowed = "a finite positive number: an exact model marginal would freeze the factors"
            raise InputError("reg_m_model", repr(self.relaxation.reg_m_model), allowed)

    def place(self, engine: Engine, tensor: NonnegativeTensor) -> TransportLoss:
        """Build the kernels on the engine."""
        dtype = tensor.values.dtype
        kernels = tuple(
            None if cost is None else build_kernel(cost, self.relaxation.reg, engine, dtype)
            for cost in self.costs
        )
        return TransportLoss(self, engine, tensor, kernels)

    def for_new_samples(self) -> Wasserstein:
        """Leave the sample mode out."""
        return replace(self, costs=(None, *self.costs[1:]))


class _Target(NamedTuple):
    """Carried to the factor step: X^, what to pull it towards, and W by sample (None if samples are tied)."""

    model: Array
    target: Array
    by_sample: Array | None


class TransportLoss:
    """`Wasserstein` placed; holds V of the last evaluation of each mode, from which the next one starts."""

    def __init__(
        self,
        spec: Wasserstein,
        engine: Engine,
        tensor: NonnegativeTensor,
        kernels: Sequence[Kernel | None],
    ) -> None:
        self.spec, self.engine, self.kernels = spec, engine, tuple(kernels)
        self.data = engine.asarray(tensor.values)
        self.observed = None if tensor.observed is None else engine.asarray(tensor.observed)
        self.sample_scales = tensor.values.reshape(len(tensor.values), -1).sum(axis=1, dtype=np.float64)
        self._log_v: dict[int, Array] = {}

    @property
    def transported(self) -> tuple[int, ...]:
        """Modes with a transport term."""
        return tuple(mode for mode, kernel in enumerate(self.kernels) if kernel is not None)

    @property
    def weight(self) -> float:
        """b: beta times the number of transported modes; 1 for the KL loss."""
        return self.spec.relaxation.reg_m_model * len(self.transported) if self.transported else 1.0

    def forget(self) -> None:
        """Drop the warm starts."""
        self._log_v.clear()

    def evaluate(self, factors: Sequence[Array]) -> Evaluation:
        """Solve the transports at these factors and return their value and Psi_bar."""
        xp = self.engine.xp
        model = reconstruct(factors)
        seen = self._seen(model)
        if not self.transported:
            columns = [tensor.reshape(tensor.shape[0], -1).T for tensor in (self.data, seen)]
            by_sample = kl_columns(self.engine, *columns)
            target = _Target(model, self.data, by_sample)
            return Evaluation((None,) * len(self.kernels), float(xp.sum(by_sample)), target)
        psi_bar = xp.zeros_like(self.data)
        by_sample = None
        modes: list[PlanTerms | None] = [None] * len(self.kernels)
        for mode in self.transported:
            modes[mode], leading = self._transport(mode, seen, psi_bar, 1 / len(self.transported))
            if 0 not in self.transported:
                part = xp.sum(leading.reshape(self.data.shape[0], -1), axis=1)
                by_sample = part if by_sample is None else by_sample + part
        return Evaluation(tuple(modes), 0.0, _Target(model, psi_bar, by_sample))

    def advance(
        self, factors: Sequence[Array], evaluation: Evaluation, graph: SampleGraph | None
    ) -> list[Array]:
        """One factor step by the rule of the specification."""
        if self.spec.update == "paper":
            return self._printed_step(factors, graph)
        ratio = self._ratio(evaluation.carried)
        rule = RULES[self.spec.update]
        return simplex_step(self.engine, factors, ratio, self.weight, graph, rule, self.spec.inner_iter)

    def finish(self, factors: Sequence[Array]) -> list[Array]:
        """Leave them: the rules keep the scale (the printed one has none to keep)."""
        return list(factors)

    def sample_step(self, factors: Sequence[Array]) -> tuple[Array, Array]:
        """Take the numerator w_N of the samples, divided by the mass of the components."""
        evaluation = self.evaluate(factors)
        w = factors[0] * mttkrp(self._ratio(evaluation.carried), factors, 0)
        return w / other_masses(self.engine, factors, 0), evaluation.carried.by_sample

    def _printed_step(self, factors: Sequence[Array], graph: SampleGraph | None) -> list[Array]:
        """Algorithm 1 as printed: factors in turn, each from the transport of its own mode, samples last."""
        moved = list(factors)
        beta = self.spec.relaxation.reg_m_model if self.transported else 1.0
        for mode in [*range(1, len(factors)), 0]:
            model = reconstruct(moved)
            marginal = self.data
            if self.kernels[mode] is not None:
                marginal = self.engine.xp.zeros_like(self.data)
                self._transport(mode, self._seen(model), marginal, 1.0)
            ratio = self._ratio(_Target(model, marginal, None))
            moved[mode] = printed_factor(self.engine, moved, ratio, mode, beta, graph)
        return moved

    def _ratio(self, carried: _Target) -> Array:
        return ratio_to_model(self.engine, carried.target, carried.model, self.observed)

    def _transport(self, mode: int, seen: Array, psi_bar: Array, share: float) -> tuple[PlanTerms, Array]:
        kernel = self.kernels[mode]
        if kernel is None:
            raise RuntimeError(f"mode {mode} is not transported")
        warm = mode in self._log_v
        if not warm:
            self._log_v[mode] = self.engine.xp.zeros_like(self.data)
        result = transport_mode(
            self.engine,
            kernel,
            self.data,
            seen,
            mode,
            self.spec.relaxation,
            self.spec.limits,
            marginal=psi_bar,
            share=share,
            log_v=self._log_v[mode],
            warm=warm,
        )
        return result.terms, result.by_leading

    def _seen(self, model: Array) -> Array:
        """Return the model where something was observed: an unobserved entry leaves both marginals."""
        return model if self.observed is None else model * self.observed
