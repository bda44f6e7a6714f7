"""Several fits of one problem that share data, kernels and graph, and several starts of each; the best one wins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from gwntf.core import InputError, Status
from gwntf.engines import Engine
from gwntf.solvers.callbacks import Callback
from gwntf.solvers.initialization import INITS, start_factors
from gwntf.solvers.loop import Iterations, Stopping, placed_steps, run
from gwntf.solvers.problem import Problem
from gwntf.solvers.result import Result


def solve_each(
    problem: Problem,
    rank: int,
    stopping: Stopping,
    engine: Engine,
    inits: Iterable[tuple[object, np.random.RandomState]],
    *,
    n_init: int = 1,
    callbacks: Sequence[Callback] = (),
    place: Callable[[Problem, Engine], Iterations] = placed_steps,
) -> Iterator[Result]:
    """Minimise F for every way to start, from `n_init` starts each, and give the result with the lowest objective.

    The problem is placed once, by `place`, and what the engine has recorded serves all.
    """
    tensor = problem.tensor
    steps: Iterations | None = None
    for init, rng in inits:
        _check_init(init, n_init)
        starts = [start_factors(tensor, rank, init, rng) for _ in range(n_init)]
        steps = steps or place(problem, engine)
        results = []
        for restart, start in enumerate(starts):
            factors = [engine.asarray(factor, tensor.dtype) for factor in start]
            results.append(run(steps, factors, stopping, callbacks, restart))
            if results[-1].status is Status.STOPPED:
                break
        yield min(results, key=lambda result: result.objective)


def _check_init(init: object, n_init: int) -> None:
    if isinstance(init, str) and init not in INITS:
        raise InputError("init", repr(init), f"one of {', '.join(map(repr, INITS))} or a list of factors")
    if n_init > 1 and not (isinstance(init, str) and init == "random"):
        raise InputError("n_init", repr(n_init), "1 unless init='random': other starts are all the same")
