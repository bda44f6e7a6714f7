"""The one place that touches parts of scikit-learn that it does not promise to keep."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster._spectral import cluster_qr, discretize
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import _num_samples as count_samples
from sklearn.utils.validation import validate_data

from gwntf.core import InputError
from gwntf.backends import Backend, is_foreign, to_host
from gwntf.data import (
    SparseTensor,
    as_chunked_tensor,
    as_sparse_tensor,
    check_largest,
    check_shape,
    is_chunked,
    is_sparse,
    masked_to_nan,
    whole_or_streamed,
)

__all__ = [
    "Interval",
    "Options",
    "StrOptions",
    "cluster_qr",
    "count_samples",
    "discretize",
    "estimator_data",
    "indexable",
    "take_samples",
]


def estimator_data(
    estimator: Any, X: Any, *, engine: Backend, reset: bool, missing: str, dtype: str | None, scaled: bool
) -> Any:
    """Check X for any order of at least two, note or compare its features, and bring it to the engine.

    An array that another library than NumPy holds for an engine that knows it stays where it is; its entries are
    looked at later. Everything else is checked as scikit-learn does, but for a masked array, whose mask scikit-learn
    would drop: it becomes an array with NaN in its place. A sparse array becomes a `SparseTensor`, and a memmap, zarr
    or Dask array of more than one block a `ChunkedTensor`, all of whose entries are looked at. Entries must be what the
    number type holds; where samples are to be `scaled`, those of every sample.
    """
    if is_sparse(X):
        return _sparse_data(estimator, X, engine=engine, reset=reset, dtype=dtype, scaled=scaled)
    if engine.name == "dask" and is_chunked(X):
        from gwntf.cluster import as_cluster_tensor

        tensor = as_cluster_tensor(X, engine, missing=missing, dtype=dtype, scaled=scaled)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return tensor
    X, streamed = whole_or_streamed(X, dtype)
    if streamed:
        tensor = as_chunked_tensor(X, engine, missing=missing, dtype=dtype, scaled=scaled)
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
        return _typed(engine, engine.asarray(X), dtype, scaled)
    host = to_host(X)
    whole = getattr(getattr(host, "dtype", None), "kind", "") in ("i", "u", "b")
    checked = validate_data(
        estimator,
        host,
        reset=reset,
        dtype=[dtype] if dtype and whole else ["float64", "float32"],
        order="C",
        allow_nd=True,
        ensure_all_finite="allow-nan" if missing == "ignore" else True,
        ensure_non_negative=True,
    )
    return _typed(engine, engine.asarray(checked), dtype, scaled)


def take_samples(X: Any, index: NDArray[np.intp]) -> Any:
    """Return some samples, of arrays of any library, data frames and lists."""
    if hasattr(X, "oindex"):  # zarr takes lists of places along an axis only so
        return X.oindex[index]
    return X[index] if hasattr(X, "shape") and not hasattr(X, "iloc") else _safe_indexing(X, index)


def _typed(engine: Backend, values: Any, dtype: str | None, scaled: bool) -> Any:
    """Bring an array of the engine into a number type that holds it."""
    if "float" in str(values.dtype):  # of NumPy or torch, which knows types that NumPy does not
        xp, rows = engine.xp, values.reshape(values.shape[0], -1)
        holes = xp.isnan(rows)
        known = xp.where(holes, xp.zeros_like(rows), rows) if bool(xp.any(holes)) else rows
        check_largest(xp.max(known, axis=1), dtype or engine.dtype(values), every=scaled)
    return engine.asarray(values, dtype)


def _sparse_data(
    estimator: Any, X: Any, *, engine: Backend, reset: bool, dtype: str | None, scaled: bool
) -> SparseTensor:
    """Check a sparse array and note or compare its features."""
    if engine.name in ("torch", "dask"):
        raise InputError("engine", f"{engine.name!r} with a sparse array", "'cpu' or 'numpy'")
    tensor = as_sparse_tensor(X, engine=engine)
    check_largest(tensor.sample_tops, dtype or tensor.dtype, every=scaled)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return tensor if dtype is None else tensor.astype(dtype)
