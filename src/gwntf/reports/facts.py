"""What reports and the command line say about a fitted estimator."""

from typing import Any

import numpy as np

from gwntf.core import Status
from gwntf.estimators import TensorClustering
from gwntf.estimators.records import SESSION


def factorization_of(estimator: Any) -> Any:
    """Return the fitted factorization of a clusterer, and any other estimator as it is."""
    return estimator.model_ if isinstance(estimator, TensorClustering) else estimator


def describe(estimator: Any) -> str:
    """Return the name of a fitted estimator and the rank of its factorization."""
    model = factorization_of(estimator)
    text = f"{type(model).__name__} of rank {model.embedding_.shape[1]}"
    return text if model is estimator else f"{type(estimator).__name__} with {text}"


def ending(model: Any) -> str:
    """Return a sentence that says why the fit of a factorization ended."""
    if model.status_ is Status.MAX_ITER and model.tol == 0:
        return "All `max_iter` iterations were run."
    return str(model.status_.message)


def set_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters that differ from the defaults of the class, as numbers, text or lists of them.

    Other objects are returned as text: arrays by their shape, estimators by their parameters.
    """
    defaults = type(estimator)().get_params(deep=False)
    own = {name: value for name, value in estimator.get_params(deep=False).items() if name not in SESSION}
    return {name: _readable(value) for name, value in own.items() if repr(value) != repr(defaults[name])}


def _readable(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, list | tuple):
        return [_readable(one) for one in value]
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"{type(value).__name__} of shape {shape}"
    return " ".join(repr(value).split())  # scikit-learn breaks long lines
