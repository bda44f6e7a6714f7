"""The data of a fit: blocks of samples, their storage, and tensor algebra with the factors.

May import `backends` and `core`. Start with `block`, the interface of a block of samples, which `dense` and `sparse`
implement. `blocks` is the interface of a collection of blocks that runs functions on them; `InMemory` implements it for
one block, `stream` out of core, `dask` on a cluster. `tensor` is the class that the rest of the library uses, `inputs`
builds it from the data of the user, and `checks` validates the entries.
"""

from gwntf.data.algebra import (
    KruskalRows,
    as_factors,
    fold,
    khatri_rao,
    other_mode_product,
    rank_one,
    reconstruct,
    to_simplex,
    unfold,
)
from gwntf.data.block import Block, Products, Sums, SweepResult, Tile, TileResult, mode_product
from gwntf.data.blocks import Blocks, BlockState, PerBlock
from gwntf.data.checks import as_real_array, check_layout, check_sample_shape, check_unscaled
from gwntf.data.inputs import as_data, as_dense_block, masked_to_nan
from gwntf.data.partition import pieces
from gwntf.data.sources import is_dask
from gwntf.data.tensor import DataTensor, stacked_alike

__all__ = [
    "Block",
    "BlockState",
    "Blocks",
    "DataTensor",
    "KruskalRows",
    "PerBlock",
    "Products",
    "Sums",
    "SweepResult",
    "Tile",
    "TileResult",
    "as_data",
    "as_dense_block",
    "as_factors",
    "as_real_array",
    "check_layout",
    "check_sample_shape",
    "check_unscaled",
    "fold",
    "is_dask",
    "khatri_rao",
    "masked_to_nan",
    "mode_product",
    "other_mode_product",
    "pieces",
    "rank_one",
    "reconstruct",
    "stacked_alike",
    "to_simplex",
    "unfold",
]
