"""The one place that touches parts of scikit-learn that it does not promise to keep."""

from __future__ import annotations

from typing import Any

from sklearn.cluster._spectral import cluster_qr, discretize
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples as count_samples
from sklearn.utils.validation import validate_data

from gwntf.core import InputError
from gwntf.problem import masked_to_nan

__all__ = ["Interval", "StrOptions", "cluster_qr", "count_samples", "discretize", "estimator_data"]


def estimator_data(estimator: Any, X: Any, *, reset: bool, missing: str, dtype: Any) -> Any:
    """Check X as scikit-learn does, for any order of at least two, and note or compare its features.

    A masked array, whose mask scikit-learn would drop, becomes an array with NaN in its place.
    """
    X = masked_to_nan(X, missing=missing)
    shape = getattr(X, "shape", ())
    if 0 in shape[2:]:  # scikit-learn looks at the first two axes only
        raise InputError("X", f"the empty shape {shape}", "at least one entry along every axis")
    return validate_data(
        estimator,
        X,
        reset=reset,
        dtype=dtype,
        order="C",
        allow_nd=True,
        ensure_all_finite="allow-nan" if missing == "ignore" else True,
        ensure_non_negative=True,
    )
