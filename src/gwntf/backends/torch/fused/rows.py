"""The product of a sparse matrix in compressed rows with a dense one, summed in the order of each row."""

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def add_rows(starts, columns, weights, dense, out, width, BLOCK: tl.constexpr):
    """Compute a block of columns of one row of the product."""
    row = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = c < width
    total = tl.zeros((BLOCK,), weights.dtype.element_ty)
    entry, stop = tl.load(starts + row), tl.load(starts + row + 1)
    while entry < stop:
        source = tl.load(columns + entry).to(tl.int64) * width
        total += tl.load(weights + entry) * tl.load(dense + source + c, mask=inside, other=0.0)
        entry += 1
    tl.store(out + row.to(tl.int64) * width + c, total, mask=inside)


class RowProduct:
    """Multiplies by a CSR matrix whose row starts, columns and weights are on the device."""

    def __init__(self, starts: Any, columns: Any, weights: Any) -> None:
        self._starts, self._columns, self._weights = starts, columns, weights

    def __call__(self, dense: Any) -> Any:
        """Return the product, in C order."""
        dense = dense.contiguous()
        rows, width = len(self._starts) - 1, dense.shape[1]
        out = torch.empty((rows, width), dtype=dense.dtype, device=dense.device)
        block = min(256, triton.next_power_of_2(width))
        if rows and width:
            warps = max(1, block // 64)
            arrays = (self._starts, self._columns, self._weights, dense, out)
            add_rows[(rows, triton.cdiv(width, block))](*arrays, width, BLOCK=block, num_warps=warps)
        return out
