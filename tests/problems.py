"""Small random factorization problems and a way to solve them with tight transports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from gwntf.core import Relaxation
from gwntf.backends import get_backend
from gwntf.geometry import resolve_costs
from gwntf.data import NonnegativeTensor
from gwntf.solver import Problem, Stopping, Wasserstein, solve_each
from gwntf.transport import TransportLimits

TIGHT = TransportLimits(max_iter=4000, tol=1e-13)


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
    tensor = NonnegativeTensor(X)
    modes = range(len(shape)) if modes is None else modes
    names = ["cosine", *["grid"] * (len(shape) - 1)]
    specs = [names[mode] if mode in modes else None for mode in range(len(shape))]
    costs = resolve_costs(specs, tensor)
    ready = csr_array(random_graph(shape[0], rng)) if graph else None
    loss = Wasserstein(costs, Relaxation(reg, alpha, beta), TIGHT)
    problem = Problem(tensor, loss, ready, graph_reg if graph else 0.0)
    return problem, [rng.random((size, rank)) + 0.1 for size in shape]


def with_loss(problem, **changes):
    """The same problem with some parts of its loss exchanged."""
    return replace(problem, loss=replace(problem.loss, **changes))


def solve(problem, rank, stopping, engine, *, rng, init="random", **options):
    """One fit."""
    return next(solve_each(problem, rank, stopping, engine, [(init, rng)], **options))


def fit(problem, factors, *, max_iter=100, tol=0.0, callbacks=(), **loss):
    """Run the solver from given factors, with some parts of the loss exchanged."""
    return solve(
        with_loss(problem, **loss),
        factors[0].shape[1],
        Stopping(max_iter, tol),
        get_backend("numpy"),
        init=factors,
        rng=np.random.RandomState(0),
        callbacks=callbacks,
    )
