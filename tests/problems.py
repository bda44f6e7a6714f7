"""Small random factorization problems and a way to solve them with tight transports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from gwntf.core import Relaxation
from gwntf.data import DataTensor
from gwntf.geometry import AxisCost, resolve_costs
from gwntf.losses import Loss, Plain, transport_loss
from gwntf.solver import Problem, Stopping, solve_each
from gwntf.transport import TransportLimits

TIGHT = TransportLimits(max_iter=4000, tol=1e-13)


@dataclass(frozen=True)
class LossOptions:
    """The arguments of `transport_loss`: the KL loss, which stands for no cost at all, does not keep them."""

    costs: tuple[Any, ...]
    relaxation: Relaxation
    limits: TransportLimits = TIGHT
    plain: Plain | None = None
    warm_limit: float = np.inf
    adaptive: bool = False

    def build(self) -> Loss:
        return transport_loss(**vars(self))


@dataclass(frozen=True, kw_only=True)
class SmallProblem(Problem):
    """A problem in memory that knows from which options its loss was built."""

    options: LossOptions

    @property
    def X(self) -> np.ndarray:  # noqa: N802
        return self.data.dense_block.values

    @property
    def costs(self) -> tuple[Any, ...]:
        return self.options.costs


def random_graph(size: int, rng: np.random.Generator, density: float = 0.4) -> np.ndarray:
    upper = np.triu(rng.random((size, size)) * (rng.random((size, size)) < density), k=1)
    return upper + upper.T


def random_problem(
    shape, *, rank=3, modes=None, graph=True, seed=0, reg=0.1, alpha=1.0, beta=1.0, graph_reg=5.0, zeros=0.2
):
    """A problem whose modes outside `modes` are not transported, and factors to start from."""
    rng = np.random.default_rng(seed)
    X = rng.random(shape)
    X[rng.random(shape) < zeros] = 0
    data = DataTensor.of_array(X)
    modes = range(len(shape)) if modes is None else modes
    names = ["cosine", *["grid"] * (len(shape) - 1)]
    specs = [names[mode] if mode in modes else None for mode in range(len(shape))]
    costs = tuple(c.to_matrix() if isinstance(c, AxisCost) else c for c in resolve_costs(specs, data))
    options = LossOptions(costs, Relaxation(reg, alpha, beta))
    ready = csr_array(random_graph(shape[0], rng)) if graph else None
    problem = SmallProblem(data, options.build(), ready, graph_reg if graph else 0.0, options=options)
    return problem, [rng.random((size, rank)) + 0.1 for size in shape]


def with_loss(problem, **changes):
    """The same problem with some parts of its loss exchanged."""
    options = replace(problem.options, **changes)
    return replace(problem, loss=options.build(), options=options)


def solve(problem, rank, stopping, *, rng, init="random", **options):
    """One fit."""
    return next(solve_each(problem, rank, stopping, [(init, rng)], **options))


def fit(problem, factors, *, max_iter=100, tol=0.0, callbacks=(), **loss):
    """Run the solver from given factors, with some parts of the loss exchanged."""
    return solve(
        with_loss(problem, **loss),
        factors[0].shape[1],
        Stopping(max_iter, tol),
        init=factors,
        rng=np.random.RandomState(0),
        callbacks=callbacks,
    )
