"""Many fits of one estimator to one data set, with different random numbers."""

from collections.abc import Sequence
from typing import Any, TypeVar

from sklearn.base import clone

from gwntf.core import InputError
from gwntf.estimators.base import Factorization

Model = TypeVar("Model", bound=Factorization)


def fit_many(estimator: Model, X: Any, random_states: Sequence[Any]) -> list[Model]:
    """Fit an estimator once for every random state.

    The same as fitting copies of it one after the other, but X is checked and brought to the engine once, and graph,
    costs and kernels are built once; on a GPU small problems are recorded by the first fit and replayed by the others.

    Parameters
    ----------
    estimator : estimator of this library
        Not fitted itself.
    X : array-like
        Data, as in `fit`.
    random_states : sequence of int, RandomState or None
        One for each fit; with ``graph_metric="auto"`` the first one also chooses the graph of all. Callbacks see all
        fits, one after the other.

    Returns
    -------
    list of estimators
        Fitted copies, in the order of the random states.

    Examples
    --------
    >>> import numpy as np
    >>> from gwntf import NCP, fit_many
    >>> X = np.random.default_rng(0).random((20, 4, 5))
    >>> models = fit_many(NCP(n_components=2, tol=0, max_iter=5), X, random_states=range(3))
    >>> [model.random_state for model in models]
    [0, 1, 2]
    """
    if not isinstance(estimator, Factorization):
        raise InputError("estimator", type(estimator).__name__, "an estimator of this library")
    models = [clone(estimator).set_params(random_state=state) for state in random_states]
    if not models:
        raise InputError("random_states", "none", "at least one")
    for model in models:
        model.callbacks = estimator.callbacks  # not copies: whoever watches sees all fits, one after the other
    models[0]._fit_each(X, models)
    return models
