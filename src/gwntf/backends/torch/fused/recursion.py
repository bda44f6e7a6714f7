"""K v for K_ij = scale ratio^|i-j| by two recursions, for fibers in registers or for one chunk of longer ones.

This takes a few operations per entry. Where a fiber is divided among several threads, each thread first computes the
contribution of its part to the sums of the others. Entries outside the registers are represented by two carries: the
sum over all entries before the first one, discounted to the entry before it, and the same from behind.
"""

import triton
import triton.language as tl

from gwntf.backends.torch.fused.arguments import Recursion


@triton.jit
def shifted(own, BY: tl.constexpr, PARTS: tl.constexpr):
    """Return the values of the parts shifted by `BY`, zero where there is none."""
    part = tl.arange(0, PARTS)[None, :] - BY
    exists = (part >= 0) & (part < PARTS)
    source = tl.broadcast_to(tl.where(exists, part, 0), (own.shape[0], PARTS))
    return tl.where(exists, tl.gather(own, source, 1), 0.0)


@triton.jit
def from_others(own, part_ratio, STEP: tl.constexpr, PARTS: tl.constexpr):
    """Return the discounted sum over the parts before each part (STEP 1), or behind it (-1), by recursive doubling."""
    total = shifted(own, STEP, PARTS)
    for bit in tl.static_range(8):
        if 2**bit < PARTS - 1:
            total += part_ratio * shifted(total, STEP * 2**bit, PARTS)
            part_ratio = part_ratio * part_ratio
    return total


@triton.jit
def sum_before(v, ratio):
    """Return the sum over each part, discounted to its last entry."""
    total = v[0]
    for k in tl.static_range(1, len(v)):
        total = v[k] + ratio * total
    return total


@triton.jit
def sum_behind(v, ratio):
    """Return the sum over each part, discounted to its first entry."""
    total = v[len(v) - 1]
    for k in tl.static_range(1, len(v)):
        total = v[len(v) - 1 - k] + ratio * total
    return total


@triton.jit
def apply(v, kernel, before, behind, PARTS: tl.constexpr):
    """K v, given the carries into each part from before and from behind."""
    ratio = kernel.ratio
    if PARTS > 1:
        before += from_others(sum_before(v, ratio), kernel.part_ratio, 1, PARTS)
        behind += from_others(sum_behind(v, ratio), kernel.part_ratio, -1, PARTS)
    ahead = (v[0] + ratio * before,)
    for k in tl.static_range(1, len(v)):
        ahead = ahead + (v[k] + ratio * ahead[k - 1],)
    behind = ratio * behind
    out = (kernel.scale * (ahead[len(v) - 1] + behind),)
    for j in tl.static_range(1, len(v)):
        behind = ratio * (v[len(v) - j] + behind)
        out = (kernel.scale * (ahead[len(v) - 1 - j] + behind),) + out
    return out


@triton.jit
def chunked(ratio, scale, BITS: tl.constexpr, PARTS: tl.constexpr, WIDE: tl.constexpr):
    """Return the coefficients for fibers of several chunks; powers are computed in float64."""
    part_ratio = tl.cast(ratio, tl.float64)
    for _ in tl.static_range(BITS):
        part_ratio = part_ratio * part_ratio
    part = tl.arange(0, PARTS)[None, :]
    power, from_start, from_end = part_ratio, (part * 0 + 1.0).to(tl.float64), (part * 0 + 1.0).to(tl.float64)
    for bit in tl.static_range(8):
        if 2**bit < PARTS:
            from_start = from_start * tl.where((part >> bit) % 2 == 1, power, 1.0)
            from_end = from_end * tl.where((part >> bit) % 2 == 0, power, 1.0)
            power = power * power
    kind: tl.constexpr = tl.float64 if WIDE else tl.float32
    return Recursion(ratio, scale, part_ratio.to(kind), from_start.to(kind), from_end.to(kind), power.to(kind))
