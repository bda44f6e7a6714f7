"""Transport of short fibers under any kernel, whose products are computed on the matrix units.

Fibers are one block (fibers, parts) with one entry in each part; the kernel is padded with zeros.
"""

import triton
import triton.language as tl

from gwntf.backends.torch.fused.fibers import columns_at
from gwntf.backends.torch.fused.short_fibers import solve

_LIFT, _LOWER = tl.constexpr(2.0**24), tl.constexpr(2.0**-24)
"""The matrix units split a number into three and flush subnormal parts to zero, so kernels are scaled up first."""


@triton.jit
def load_scaled(matrix, config):
    """Load a kernel, zero after its last row and column, and scale it up."""
    i = tl.arange(0, config.parts)
    mask = (i < config.size)[:, None] & (i < config.size)[None, :]
    return tl.load(matrix + i[:, None] * config.size + i[None, :], mask=mask, other=0.0) * _LIFT


@triton.jit
def product(fibers, kernel, transposed: tl.constexpr, config):
    """K V or K' U; fibers are rows, which are multiplied from the right: v K' is K v, and u K is K' u."""
    matrix = kernel[0] if transposed else kernel[1]
    return (tl.dot(fibers[0], matrix, input_precision=config.precision) * _LOWER,)


@triton.jit
def transport(arrays, matrix, transposed, numbers, config: tl.constexpr):
    """Transport a block of fibers of X to those of Y: see `backends.protocol.StackTransport`."""
    kernel = (load_scaled(matrix, config), load_scaled(transposed, config))
    c, inside = columns_at(None, tl.program_id(0) * config.block, arrays.columns, config)
    solve(c, inside, arrays, kernel, product, numbers, config)
