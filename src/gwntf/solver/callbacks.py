"""Callbacks, which follow the iterations of a fit and can stop it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from gwntf.core import Array
from gwntf.losses import ObjectiveTerms


@dataclass(frozen=True)
class Iteration:
    """Argument of a callback, after every outer iteration.

    Attributes
    ----------
    restart, iteration : int
        Index of the start among the `n_init` starts (from 0), and its number of outer iterations so far (from 1).
    objective : float
        Value of the objective.
    terms : ObjectiveTerms
        Terms of the objective.
    factors : sequence of arrays
        Samples first, arrays of the backend, in the scale in which a fit returns them. They are copies, made on first
        access (for a fit on a cluster the sample factor is gathered then), so changing them does not change the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from gwntf import NCP, Iteration
    >>> def stop_after_three(iteration: Iteration) -> bool:
    ...     return iteration.iteration == 3
    >>> X = np.random.default_rng(0).random((20, 4, 5))
    >>> model = NCP(2, callbacks=[stop_after_three], random_state=0).fit(X)
    >>> model.n_iter_, model.status_.value
    (3, 'stopped')
    """

    restart: int
    iteration: int
    objective: float
    terms: ObjectiveTerms
    factors: Sequence[Array]


class Callback(Protocol):
    """Any callable that takes an `Iteration`; a true return value stops the fit."""

    def __call__(self, iteration: Iteration, /) -> bool | None:
        """Process the iteration; return true to stop the fit."""


class ProgressBar:
    """Progress bar over the iterations of a fit; pass it in `callbacks`.

    Examples
    --------
    >>> from gwntf import NMF, ProgressBar
    >>> model = NMF(3, callbacks=[ProgressBar()])
    """

    def __init__(self) -> None:
        self._bar: Any = None

    def on_fit_begin(self, iterations: int) -> None:
        """Show the bar; called before the first iteration with the maximum number of iterations."""
        from tqdm.auto import tqdm

        self._bar = tqdm(total=iterations, unit="iteration")

    def __call__(self, iteration: Iteration, /) -> None:
        """Advance by one iteration."""
        self._bar.set_postfix(objective=f"{iteration.objective:.6g}", refresh=False)
        self._bar.update()

    def on_fit_end(self) -> None:
        """Close the bar; called after the fit, also if it raised an error."""
        self._bar.close()
        self._bar = None  # an open stream could not be copied with the estimator


@contextmanager
def following(callbacks: Sequence[Any], iterations: int) -> Iterator[list[Callback]]:
    """Call `on_fit_begin` and `on_fit_end` of the callbacks that define them, around a fit."""
    started = []
    try:
        for callback in callbacks:
            if hasattr(callback, "on_fit_begin"):
                callback.on_fit_begin(iterations)
            started.append(callback)
        yield list(callbacks)
    finally:
        for callback in started:
            if hasattr(callback, "on_fit_end"):
                callback.on_fit_end()
