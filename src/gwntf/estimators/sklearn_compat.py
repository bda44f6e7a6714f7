"""The one place that touches parts of scikit-learn that it does not promise to keep."""

from __future__ import annotations

from typing import Any

from sklearn.cluster._spectral import cluster_qr, discretize
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples as count_samples
from sklearn.utils.validation import validate_data

from gwntf.core import InputError
from gwntf.engines import Engine, is_foreign, to_host
from gwntf.problem import (
    SparseTensor,
    as_chunked_tensor,
    as_sparse_tensor,
    check_shape,
    is_chunked,
    is_sparse,
    masked_to_nan,
    whole_or_streamed,
)

__all__ = ["Interval", "StrOptions", "cluster_qr", "count_samples", "discretize", "estimator_data"]


def estimator_data(
    estimator: Any, X: Any, *, engine: Engine, reset: bool, missing: str, dtype: str | None
) -> Any:
    """Check X for any order of at least two, note or compare its features, and bring it to the engine.

    An array that another library than NumPy holds for an engine that knows it stays where it is; its entries are
    looked at later. Everything else is checked as scikit-learn does, but for a masked array, whose mask scikit-learn
    would drop: it becomes an array with NaN in its place. A sparse array becomes a `SparseTensor`, and a memmap, zarr
    or Dask array of more than one block a `ChunkedTensor`, all of whose entries are looked at.
    """
    if is_sparse(X):
        return _sparse_data(estimator, X, engine=engine, reset=reset, dtype=dtype)
    if engine.name == "dask" and is_chunked(X):
        from gwntf.cluster import as_cluster_tensor

        tensor = as_cluster_tensor(X, engine, missing=missing, dtype=dtype)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return tensor
    X, streamed = whole_or_streamed(X, dtype)
    if streamed:
        tensor = as_chunked_tensor(X, engine, missing=missing, dtype=dtype)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return tensor
    X = masked_to_nan(X, missing=missing)
    shape = getattr(X, "shape", ())
    if 0 in shape[2:]:  # scikit-learn looks at the first two axes only
        raise InputError("X", f"the empty shape {tuple(shape)}", "at least one entry along every axis")
    if is_foreign(X) and engine.name == "torch":
        check_shape(shape)
        if "complex" in str(X.dtype):
            raise InputError("X", f"entries of type {X.dtype}", "an array of real numbers")
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return engine.asarray(X, dtype)
    checked = validate_data(
        estimator,
        to_host(X),
        reset=reset,
        dtype=[dtype] if dtype else ["float64", "float32"],
        order="C",
        allow_nd=True,
        ensure_all_finite="allow-nan" if missing == "ignore" else True,
        ensure_non_negative=True,
    )
    return engine.asarray(checked)


def _sparse_data(estimator: Any, X: Any, *, engine: Engine, reset: bool, dtype: str | None) -> SparseTensor:
    """Check a sparse array and note or compare its features."""
    if engine.name in ("torch", "dask"):
        raise InputError("engine", f"{engine.name!r} with a sparse array", "'cpu' or 'numpy'")
    tensor = as_sparse_tensor(X, dtype=dtype, engine=engine)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return tensor
