"""Several fits of one problem that share data, kernels and graph, and several starts of each; the best one wins."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from gwntf.core import Array, InputError, Status
from gwntf.solver.callbacks import Callback
from gwntf.solver.checkpoint import Keeper, Progress
from gwntf.solver.iteration import Steps
from gwntf.solver.loop import run
from gwntf.solver.problem import Problem
from gwntf.solver.result import Result
from gwntf.solver.start import INITS, start_factors
from gwntf.solver.stopping import Stopping


def solve_each(
    problem: Problem,
    rank: int,
    stopping: Stopping,
    inits: Iterable[tuple[object, np.random.RandomState]],
    *,
    n_init: int = 1,
    callbacks: Sequence[Callback] = (),
    keeper: Keeper | None = None,
) -> Iterator[Result]:
    """Minimise F for every way to start, from `n_init` starts each, and give the result with the lowest objective.

    Kernels and graph are built once, and what a backend has recorded serves all fits. A keeper writes checkpoints,
    and knows what had been done when the last one was written.
    """
    data, backend = problem.data, problem.data.backend
    keeper = keeper or Keeper()
    steps: Steps | None = None
    for fit, (init, rng) in enumerate(inits):
        _check_init(init, n_init)
        result = keeper.finished(fit, backend)
        if result is None:
            at = keeper.begin(rng, backend)
            drawn = [start_factors(data, rank, init, at.rng) for _ in range(n_init)]
            starts = [[backend.asarray(factor, data.dtype) for factor in start] for start in drawn]
            steps = steps or Steps(problem)
            result = _best(steps, starts, stopping, callbacks, keeper, at)
            keeper.end(result)
        yield result


def _best(
    steps: Steps,
    starts: Sequence[Sequence[Array]],
    stopping: Stopping,
    callbacks: Sequence[Callback],
    keeper: Keeper,
    at: Progress,
) -> Result:
    """Minimise F from each start, beginning at a position, and return the result with the lowest objective."""
    best, saved = at.best, at.loop
    for restart in range(at.restart, len(starts)):
        keeper.move(restart, best)
        result = run(steps, starts[restart], stopping, callbacks, restart, keeper, saved)
        saved = None
        if best is None or result.objective < best.objective:
            best = result
        if result.status is Status.STOPPED:
            break
    if best is None:
        raise RuntimeError("there was no start")
    return best


def _check_init(init: object, n_init: int) -> None:
    if isinstance(init, str) and init not in INITS:
        raise InputError("init", repr(init), f"one of {', '.join(map(repr, INITS))} or a list of factors")
    if n_init > 1 and not (isinstance(init, str) and init == "random"):
        raise InputError("n_init", repr(n_init), "1 unless init='random': other starts are all the same")
