"""K v for K_ij = scale ratio^|i-j| by two recursions, for fibers in registers or for a stretch of longer ones.

A few operations an entry. Where a fiber lies on several threads, each first finds what its part adds to the sums of the
others; `leap` is the ratio from a part to the next. What lies outside of the registers comes in as two carries: the sum
before the first place as seen from the place before it, and the sum behind the last place as seen from the one behind.
"""

import triton
import triton.language as tl


@triton.jit
def shifted(own, BY: tl.constexpr, PARTS: tl.constexpr):
    """Return what the part so many places before has, zero where there is none."""
    part = tl.arange(0, PARTS)[None, :] - BY
    there = (part >= 0) & (part < PARTS)
    source = tl.broadcast_to(tl.where(there, part, 0), (own.shape[0], PARTS))
    return tl.where(there, tl.gather(own, source, 1), 0.0)


@triton.jit
def from_others(own, leap, STEP: tl.constexpr, PARTS: tl.constexpr):
    """Sum of what the parts before each part add (STEP 1), or those behind (-1), each step multiplied by `leap`.

    Sums double their reach from round to round.
    """
    total = shifted(own, STEP, PARTS)
    for bit in tl.static_range(8):
        if 2**bit < PARTS - 1:
            total += leap * shifted(total, STEP * 2**bit, PARTS)
            leap = leap * leap
    return total


@triton.jit
def sum_before(v, ratio):
    """Return what each part adds to the sums of those behind, as seen from its last place."""
    total = v[0]
    for k in tl.static_range(1, len(v)):
        total = v[k] + ratio * total
    return total


@triton.jit
def sum_behind(v, ratio):
    """Return what each part adds to the sums of those before, as seen from its first place."""
    total = v[len(v) - 1]
    for k in tl.static_range(1, len(v)):
        total = v[len(v) - 1 - k] + ratio * total
    return total


@triton.jit
def apply(v, ratio, leap, scale, before, behind, PARTS: tl.constexpr):
    """K v, given what comes into each part from outside, from before and from behind."""
    if PARTS > 1:
        before += from_others(sum_before(v, ratio), leap, 1, PARTS)
        behind += from_others(sum_behind(v, ratio), leap, -1, PARTS)
    ahead = (v[0] + ratio * before,)
    for k in tl.static_range(1, len(v)):
        ahead = ahead + (v[k] + ratio * ahead[k - 1],)
    behind = ratio * behind
    out = (scale * (ahead[len(v) - 1] + behind),)
    for j in tl.static_range(1, len(v)):
        behind = ratio * (v[len(v) - j] + behind)
        out = (scale * (ahead[len(v) - 1 - j] + behind),) + out
    return out


@triton.jit
def apply_alone(v, ratio, leap, scale, PARTS: tl.constexpr):
    """K v where the registers hold whole fibers."""
    nothing = tl.zeros_like(v[0])
    return apply(v, ratio, leap, scale, nothing, nothing, PARTS)


@triton.jit
def reaches(ratio, BITS: tl.constexpr, PARTS: tl.constexpr):
    """Return leap, leap^p and leap^(PARTS - 1 - p) for all parts p, and leap^PARTS, in float64."""
    leap = tl.cast(ratio, tl.float64)
    for _ in tl.static_range(BITS):
        leap = leap * leap
    part = tl.arange(0, PARTS)[None, :]
    power, near, mirrored = leap, part * 0 + 1.0, part * 0 + 1.0
    near, mirrored = near.to(tl.float64), mirrored.to(tl.float64)
    for bit in tl.static_range(8):
        if 2**bit < PARTS:
            near = near * tl.where((part >> bit) % 2 == 1, power, 1.0)
            mirrored = mirrored * tl.where((part >> bit) % 2 == 0, power, 1.0)
            power = power * power
    return leap, near, mirrored, power
