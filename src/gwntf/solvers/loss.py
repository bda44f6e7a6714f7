"""The data term of F: transport on some modes, or KL where no mode is transported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gwntf.core import Array, Relaxation
from gwntf.engines import Engine
from gwntf.geometry import Kernel
from gwntf.problem import NonnegativeTensor, reconstruct
from gwntf.transport import PlanTerms, TransportLimits, kl_columns, transport_mode


@dataclass(frozen=True)
class ObjectiveTerms:
    """F, term by term.

    Attributes
    ----------
    modes : tuple of PlanTerms or None
        Per axis of X: transport, data and model part; None for a mode that is not transported.
    kl : float
        KL(X | X^) where no mode is transported, else zero.
    graph : float
        (mu/4) sum_ij V_ij |a_i - a_j|^2.
    """

    modes: tuple[PlanTerms | None, ...]
    kl: float
    graph: float

    @property
    def total(self) -> float:
        """F."""
        return float(sum(terms.total for terms in self.modes if terms is not None) + self.kl + self.graph)


@dataclass(frozen=True)
class Evaluation:
    """The data term at given factors.

    Attributes
    ----------
    model : tensor
        X^.
    target : tensor
        Psi_bar, or X for the KL loss: what the factor step pulls X^ towards.
    modes, kl
        See `ObjectiveTerms`.
    by_sample : (N,) array or None
        The value of each sample; None where the sample mode is transported.
    """

    model: Array
    target: Array
    modes: tuple[PlanTerms | None, ...]
    kl: float
    by_sample: Array | None


class TransportLoss:
    """sum_n sum_fibers W(x, x^) over the transported modes, or KL(X | X^) if there is none.

    Holds V of the last evaluation of each mode, from which the next one starts.
    """

    def __init__(
        self,
        engine: Engine,
        tensor: NonnegativeTensor,
        kernels: Sequence[Kernel | None],
        relaxation: Relaxation,
        limits: TransportLimits,
    ) -> None:
        self.engine, self.relaxation, self.limits = engine, relaxation, limits
        self.kernels = tuple(kernels)
        self.data = engine.asarray(tensor.values)
        self.observed = None if tensor.observed is None else engine.asarray(tensor.observed)
        self.mass = float(engine.xp.sum(self.data, dtype=engine.xp.float64))
        self._log_v: dict[int, Array] = {}

    @property
    def transported(self) -> tuple[int, ...]:
        """Modes with a transport term."""
        return tuple(mode for mode, kernel in enumerate(self.kernels) if kernel is not None)

    @property
    def weight(self) -> float:
        """b: beta times the number of transported modes; 1 for the KL loss."""
        return self.relaxation.reg_m_model * len(self.transported) if self.transported else 1.0

    def forget(self) -> None:
        """Drop the warm starts, as a restart must."""
        self._log_v.clear()

    def evaluate(self, factors: Sequence[Array]) -> Evaluation:
        """Solve the transports at these factors and return their value and Psi_bar."""
        model = reconstruct(factors)
        seen = self._seen(model)
        if not self.transported:
            columns = [tensor.reshape(tensor.shape[0], -1).T for tensor in (self.data, seen)]
            by_sample = kl_columns(self.engine, *columns)
            kl = float(self.engine.xp.sum(by_sample))
            return Evaluation(model, self.data, (None,) * len(self.kernels), kl, by_sample)
        target = self.engine.xp.zeros_like(self.data)
        share = 1 / len(self.transported)
        modes: list[PlanTerms | None] = [None] * len(self.kernels)
        by_sample = None
        for mode in self.transported:
            terms, leading = self._transport(mode, seen, target, share)
            modes[mode] = terms
            if 0 not in self.transported:
                part = self.engine.xp.sum(leading.reshape(self.data.shape[0], -1), axis=1)
                by_sample = part if by_sample is None else by_sample + part
        return Evaluation(model, target, tuple(modes), 0.0, by_sample)

    def marginal(self, factors: Sequence[Array], mode: int) -> tuple[Array, Array]:
        """X^ and Psi_n of one mode alone (X where it is not transported), for the printed algorithm."""
        model = reconstruct(factors)
        if self.kernels[mode] is None:
            return model, self.data
        target = self.engine.xp.zeros_like(self.data)
        self._transport(mode, self._seen(model), target, 1.0)
        return model, target

    def _transport(self, mode: int, seen: Array, target: Array, share: float) -> tuple[PlanTerms, Array]:
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
            self.relaxation,
            self.limits,
            marginal=target,
            share=share,
            log_v=self._log_v[mode],
            warm=warm,
        )
        return result.terms, result.by_leading

    def _seen(self, model: Array) -> Array:
        """Return the model where something was observed: an unobserved entry leaves both marginals."""
        return model if self.observed is None else model * self.observed
