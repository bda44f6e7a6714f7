"""The data and the model: a validated nonnegative tensor, CP factors, and the algebra between them.

May import `backends` and `core`. Start with `algebra`: unfolding, Khatri-Rao, Kruskal reconstruction, MTTKRP.
`tensor` is the dense tensor, `sparse_tensor` the one that holds nonzero entries only, by way of their `fibers`, and
`chunked_tensor` the one that goes by in blocks (`chunks`).
"""

from __future__ import annotations

from typing import TypeAlias

from gwntf.data.algebra import (
    fold,
    khatri_rao,
    other_mode_product,
    other_mode_products,
    reconstruct,
    unfold,
)
from gwntf.data.blocks import even_pieces, pieces, sample_blocks
from gwntf.data.chunked_tensor import ChunkedTensor, as_chunked_tensor, temporary_rows
from gwntf.data.chunks import (
    Blocks,
    Gathered,
    StreamedBlocks,
    check_source,
    fit_dtype,
    is_chunked,
    is_dask,
    read,
    whole_or_streamed,
)
from gwntf.data.factors import KruskalRows, as_factors, to_simplex
from gwntf.data.fibers import Fibers
from gwntf.data.ranges import check_largest, check_unscaled
from gwntf.data.sparse_tensor import SparseTensor, as_sparse_tensor, is_sparse
from gwntf.data.tensor import (
    NonnegativeTensor,
    as_real_array,
    as_tensor,
    check_shape,
    check_values,
    fill_missing,
    fold_samples,
    masked_to_nan,
    normalise_samples,
    relative_error,
)

DataTensor: TypeAlias = NonnegativeTensor | SparseTensor | ChunkedTensor
"""What a problem may be stated with."""

__all__ = [
    "Blocks",
    "ChunkedTensor",
    "DataTensor",
    "Fibers",
    "Gathered",
    "KruskalRows",
    "NonnegativeTensor",
    "SparseTensor",
    "StreamedBlocks",
    "as_chunked_tensor",
    "as_factors",
    "as_real_array",
    "as_sparse_tensor",
    "as_tensor",
    "check_largest",
    "check_shape",
    "check_source",
    "check_unscaled",
    "check_values",
    "even_pieces",
    "fill_missing",
    "fit_dtype",
    "fold",
    "fold_samples",
    "is_chunked",
    "is_dask",
    "is_sparse",
    "khatri_rao",
    "masked_to_nan",
    "normalise_samples",
    "other_mode_product",
    "other_mode_products",
    "pieces",
    "read",
    "reconstruct",
    "relative_error",
    "sample_blocks",
    "temporary_rows",
    "to_simplex",
    "unfold",
    "whole_or_streamed",
]
