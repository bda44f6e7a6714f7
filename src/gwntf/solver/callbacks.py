"""Watching a fit from outside, and ending it early."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from gwntf.core import Array
from gwntf.losses import ObjectiveTerms


@dataclass(frozen=True)
class Iteration:
    """What a callback sees after every outer iteration.

    Attributes
    ----------
    restart, iteration : int
        Which of the `n_init` starts (from 0), and which outer iteration of it (from 1).
    objective : float
        F.
    terms : ObjectiveTerms
        F term by term.
    factors : sequence of arrays
        Samples first, arrays of the backend, in the scale in which a fit returns them. Copies, made when they are first
        used (the sample factor of a fit on a cluster is gathered then): to change them does not change the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from gwntf import NCP, Iteration
    >>> def enough(news: Iteration) -> bool:
    ...     return news.iteration == 3
    >>> X = np.random.default_rng(0).random((20, 4, 5))
    >>> model = NCP(2, callbacks=[enough], random_state=0).fit(X)
    >>> model.n_iter_, model.status_.value
    (3, 'stopped')
    """

    restart: int
    iteration: int
    objective: float
    terms: ObjectiveTerms
    factors: Sequence[Array]


class Callback(Protocol):
    """Any callable that takes an `Iteration`; a true return value ends the fit."""

    def __call__(self, iteration: Iteration, /) -> bool | None:
        """Look at the iteration."""


class ProgressBar:
    """A progress bar over the iterations of a fit, one of its `callbacks`.

    Examples
    --------
    >>> from gwntf import NMF, ProgressBar
    >>> model = NMF(3, callbacks=[ProgressBar()])
    """

    def __init__(self) -> None:
        self._bar: Any = None

    def on_fit_begin(self, iterations: int) -> None:
        """Show the bar; called before the first of at most so many iterations."""
        from tqdm.auto import tqdm

        self._bar = tqdm(total=iterations, unit="iteration")

    def __call__(self, iteration: Iteration, /) -> None:
        """Advance by one iteration."""
        self._bar.set_postfix(objective=f"{iteration.objective:.6g}", refresh=False)
        self._bar.update()

    def on_fit_end(self) -> None:
        """Close the bar; called after the fit, also if it failed."""
        self._bar.close()
        self._bar = None  # an open stream could not be copied with the estimator


@contextmanager
def following(callbacks: Sequence[Any], iterations: int) -> Iterator[list[Callback]]:
    """Call `on_fit_begin` and `on_fit_end` of the callbacks that have them, around a fit."""
    begun = []
    try:
        for callback in callbacks:
            if hasattr(callback, "on_fit_begin"):
                callback.on_fit_begin(iterations)
            begun.append(callback)
        yield list(callbacks)
    finally:
        for callback in begun:
            if hasattr(callback, "on_fit_end"):
                callback.on_fit_end()
