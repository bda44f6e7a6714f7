"""Conversion of the data of a user (arrays, sparse arrays, and sources that are read in blocks) to checked data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gwntf.backends import Backend, get_backend, is_foreign, to_host
from gwntf.core import InputError
from gwntf.data.blocks import Blocks, InMemory
from gwntf.data.checks import (
    as_real_array,
    check_entries,
    check_kind,
    check_layout,
    check_range,
    check_shape,
    refuse_text,
)
from gwntf.data.dense import DenseBlock
from gwntf.data.sources import check_dtype, check_source, file_state, fit_dtype, is_small, is_source, is_sparse, read
from gwntf.data.sparse import sparse_block
from gwntf.data.stream import Streamed
from gwntf.data.tensor import DataTensor

if TYPE_CHECKING:
    from gwntf.data.dask import Cluster


def as_data(
    X: Any,
    backend: Backend | None = None,
    *,
    missing: str = "error",
    dtype: Any = None,
    scaled: bool = False,
    name: str = "X",
    as_array: Callable[[Any], Any] | None = None,
    cluster: Cluster | None = None,
) -> DataTensor:
    """Check X, of order two or more, and all its entries, and convert it for the backend.

    Parameters
    ----------
    X : array-like, sparse array, memmap, zarr array, Dask array or DataTensor
        Nonnegative, samples first. A DataTensor is returned unchanged.
    backend : Backend, optional
        Backend of the computations; NumPy by default.
    missing : {"error", "ignore"}
        Whether NaN and masked entries raise an error, or are treated as not observed.
    dtype : optional
        Dtype of the fit; by default float32 and float64 are kept, other dtypes are converted to float64.
    scaled : bool
        Whether every sample will be divided by its norm, so that each must be in the range of the dtype.
    name : str
        Name of the argument in error messages.
    as_array : callable, optional
        Converts an array-like on the host to an array of real numbers; by default NumPy is used.
    cluster : Cluster, optional
        Cluster whose workers read a source.
    """
    if isinstance(X, DataTensor):
        return X
    check_layout(X, name)
    backend = backend or get_backend("numpy")
    finish = partial(_checked, missing=missing, scaled=scaled, name=name)
    if is_source(X):
        check_source(X)
        kind = fit_dtype(X.dtype, dtype)
        seen = check_dtype(X.dtype, kind)
        if cluster is not None:
            return finish(cluster.read(X, seen), X.shape, seen, kind)
        if not is_small(X, kind):
            return finish(Streamed(X, backend, seen, kind, written=file_state(X)), X.shape, seen, kind)
        X = read(X, slice(None))
    if is_sparse(X):
        block = sparse_block(X, backend)
        return finish(InMemory(block), block.shape, block.dtype, fit_dtype(block.dtype, dtype))
    values = _as_floats(X, backend, missing, dtype, name, as_array)
    own = backend.dtype(values)
    return finish(InMemory(DenseBlock(values, None, backend)), values.shape, own, np.dtype(dtype or own))


def as_dense_block(X: Any, *, missing: str = "error", dtype: Any = None, name: str = "X") -> DenseBlock:
    """Check X like `as_data` and return it as a dense block of NumPy arrays."""
    check_layout(X, name)
    host = as_real_array(masked_to_nan(to_host(X), name=name, missing=missing), name)
    return cast(DenseBlock, as_data(host, missing=missing, dtype=dtype, name=name).dense_block)


def _checked(
    blocks: Blocks, shape: Sequence[int], own: Any, dtype: np.dtype[Any], *, missing: str, scaled: bool, name: str
) -> DataTensor:
    """Check all entries in their own dtype, then convert them; NaN becomes "not observed"."""
    found = blocks.map(methodcaller("summary"))
    complete = check_entries(found, blocks.slices, missing, name=name)
    check_range(np.concatenate([to_host(block.tops) for block in found]), dtype, every=scaled, name=name)
    if own != dtype:
        blocks = blocks.converted(dtype)
    if not complete:
        blocks = blocks.prepared(methodcaller("without_nan"))
    return DataTensor(blocks, tuple(int(size) for size in shape), dtype, complete)


def _as_floats(
    X: Any, backend: Backend, missing: str, dtype: Any, name: str, as_array: Callable[[Any], Any] | None
) -> Any:
    """Return X as an array of the backend; float32 and float64 are kept."""
    if is_foreign(X) and backend.name == "torch":
        check_shape(X.shape, name)
        check_kind(X.dtype, name)
        values = backend.asarray(X)
        supported = str(values.dtype) in ("torch.float32", "torch.float64")
        return values if supported else backend.asarray(values, dtype or "float64")
    host = masked_to_nan(to_host(X), name=name, missing=missing)
    array = as_real_array(host, name) if as_array is None else as_array(refuse_text(host, name))
    check_shape(array.shape, name)
    integers = array.dtype.kind in "iub"
    kind = fit_dtype(array.dtype, dtype if integers else None)
    return backend.asarray(np.ascontiguousarray(array, dtype=kind))


def masked_to_nan(X: Any, *, name: str = "X", missing: str = "error") -> Any:
    """Replace the masked entries of a masked array by NaN; return anything else unchanged.

    Values under the mask are ignored. float32 is kept, other dtypes are converted to float64.
    """
    if not isinstance(X, np.ma.MaskedArray):
        return X
    count = int(np.ma.getmaskarray(X).sum())
    if count and missing == "error":
        allowed = "no mask, or missing='ignore' to treat masked entries as not observed"
        raise InputError(name, f"{count} masked entries", allowed)
    if not count:
        return X.data
    check_kind(X.dtype, name)
    return np.ma.filled(X.astype(fit_dtype(X.dtype, None)), np.nan)
