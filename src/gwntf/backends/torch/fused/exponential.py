"""Transport of short fibers under K_ij = scale ratio^|i-j|, with a few operations per entry."""

import triton
import triton.language as tl

from gwntf.backends.torch.fused.fibers import columns_at
from gwntf.backends.torch.fused.recursion import apply
from gwntf.backends.torch.fused.short_fibers import solve


@triton.jit
def product(fibers, kernel, transposed: tl.constexpr, config):  # noqa: ARG001
    """K V or K' U, which are the same."""
    zeros = tl.zeros_like(fibers[0])
    return apply(fibers, kernel, zeros, zeros, config.parts)


@triton.jit
def transport(indices, count, arrays, kernel, numbers, config: tl.constexpr):
    """Transport fibers of X to those of Y: see `backends.protocol.StackTransport`.

    Each program processes one block of fibers; with `indices` it loops over blocks of the first `count` of them.
    """
    left = tl.program_id(0) * config.block
    if indices is None:
        c, inside = columns_at(None, left, arrays.columns, config)
        solve(c, inside, arrays, kernel, product, numbers, config)
    else:
        end = tl.load(count)
        while left < end:
            c, inside = columns_at(indices, left, end, config)
            solve(c, inside, arrays, kernel, product, numbers, config)
            left += tl.num_programs(0) * config.block
