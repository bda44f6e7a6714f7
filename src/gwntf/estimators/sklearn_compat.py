"""All uses of private parts of scikit-learn."""

import sys
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils._set_output import ADAPTERS_MANAGER, _get_output_config
from sklearn.utils.validation import _num_samples as count_samples
from sklearn.utils.validation import validate_data

from gwntf.backends import to_host
from gwntf.core import InputError

__all__ = [
    "Interval",
    "Options",
    "StrOptions",
    "as_float_array",
    "as_frame",
    "column_names",
    "count_samples",
    "in_cross_validation",
    "note_features",
    "take_samples",
    "unweighted",
]


Method = TypeVar("Method", bound=Callable[..., Any])


def note_features(estimator: Any, X: Any, *, reset: bool) -> None:
    """Set number and names of the features from X, or (without `reset`) check X against those of the fit."""
    validate_data(estimator, X, reset=reset, skip_check_array=True)


def column_names(X: Any) -> list[Any] | None:
    """Return the column names of a data frame, which need not be text; None for other data."""
    names = getattr(X, "columns", None)
    return None if names is None else list(names)


def as_float_array(X: Any, *, dtype: Any, estimator: Any) -> Any:
    """Convert an array-like on the host to a float array, as scikit-learn does; entries are not checked."""
    own = getattr(X, "dtype", None)
    whole = getattr(own, "kind", "") in ("i", "u", "b")
    single = isinstance(own, np.dtype) and own.newbyteorder("=") == np.float32
    return check_array(
        X,
        dtype=[dtype] if dtype and whole else "float32" if single else ["float64", "float32"],
        order="C",
        allow_nd=True,
        ensure_all_finite=False,
        estimator=estimator,
        input_name="X",
    )


def take_samples(X: Any, index: NDArray[np.intp]) -> Any:
    """Return the samples with given indices, of arrays of any library, data frames and lists."""
    if hasattr(X, "oindex"):  # index arrays of zarr
        return X.oindex[index]
    return X[index] if hasattr(X, "shape") and not hasattr(X, "iloc") else _safe_indexing(X, index)


def as_frame(values: Any, like: Any, names: Any, estimator: Any) -> Any:
    """Return rows as a data frame with the index of `like` if `set_output` or `like` requires one; else unchanged."""
    library = _get_output_config("transform", estimator)["dense"]
    if library == "default" and hasattr(like, "columns"):
        library = type(like).__module__.partition(".")[0]
    adapter = ADAPTERS_MANAGER.adapters.get(library)
    if adapter is None or values.ndim != 2:
        return values
    return adapter.create_container(to_host(values), like, names)


def in_cross_validation() -> bool:
    """Whether the caller runs inside a cross-validation or parameter search of scikit-learn."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != "sklearn.model_selection._validation":
        frame = frame.f_back
    return frame is not None


def unweighted(method: Method) -> Method:
    """Make a method without `sample_weight` raise a clear error if it is given."""

    @wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        if "sample_weight" in options:
            given = f"weights, which {type(self).__name__} does not support"
            raise InputError("sample_weight", given, "no such argument: repeat samples to give them more weight")
        return method(self, *arguments, **options)

    return cast(Method, call)
