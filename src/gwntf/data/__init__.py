"""The data of a fit: blocks of samples, where they are, and the algebra between them and the factors.

May import `backends` and `core`. Start with `block`, what every block can do; `dense` and `sparse` are the two kinds of
block. `blocks` says where blocks are and where functions of one block run: `InMemory` there, `stream` for sources that
are larger than memory, `dask` for a cluster. `tensor` is what the rest of the library sees, `inputs` makes it from what
a user gives, `checks` says what entries are allowed.
"""

from gwntf.data.algebra import (
    KruskalRows,
    as_factors,
    fold,
    khatri_rao,
    other_mode_product,
    reconstruct,
    to_simplex,
    unfold,
)
from gwntf.data.block import Block, Looked, Products, Sums, Swept, Tile, mode_product
from gwntf.data.blocks import Blocks, Kept, Parts
from gwntf.data.checks import as_real_array, check_layout, check_sample_shape, check_unscaled
from gwntf.data.inputs import as_data, as_dense_block, masked_to_nan
from gwntf.data.partition import pieces
from gwntf.data.sources import find_client
from gwntf.data.tensor import DataTensor, stacked_alike

__all__ = [
    "Block",
    "Blocks",
    "DataTensor",
    "Kept",
    "KruskalRows",
    "Looked",
    "Parts",
    "Products",
    "Sums",
    "Swept",
    "Tile",
    "as_data",
    "as_dense_block",
    "as_factors",
    "as_real_array",
    "check_layout",
    "check_sample_shape",
    "check_unscaled",
    "find_client",
    "fold",
    "khatri_rao",
    "masked_to_nan",
    "mode_product",
    "other_mode_product",
    "pieces",
    "reconstruct",
    "stacked_alike",
    "to_simplex",
    "unfold",
]
