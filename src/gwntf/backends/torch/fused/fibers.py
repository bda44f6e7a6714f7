"""Fibers in registers: a fiber lies on a few neighbouring threads, each of its entries there a variable of its own.

A fiber of up to PARTS * 2^BITS places is a tuple of 2^BITS blocks (fibers, PARTS): entry k of part p is the place
p 2^BITS + k. Loops over entries are unrolled when compiling. Fibers travel to and from memory as one block: with one
operation for each place the compiler takes minutes.
"""

import triton
import triton.language as tl


@triton.jit
def pointers(base, step, size, BITS: tl.constexpr, PARTS: tl.constexpr):
    """Where the entries of fibers lie, (fibers, PARTS, 2^BITS), and which of them are places."""
    place = (tl.arange(0, PARTS) * 2**BITS)[:, None] + tl.arange(0, 2**BITS)[None, :]
    return base[:, None, None] + place[None, :, :] * step, (place < size)[None, :, :]


@triton.jit
def is_place(k: tl.constexpr, size, BITS: tl.constexpr, PARTS: tl.constexpr):
    """In which parts entry k is a place of the fiber, (1, PARTS)."""
    return tl.arange(0, PARTS)[None, :] * 2**BITS + k < size


@triton.jit
def load_fibers(
    source,
    base,
    step,
    inside,
    size,
    BITS: tl.constexpr,
    PARTS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Read fibers that begin at `base` with `step` numbers from entry to entry; zeros beyond the last place."""
    at, places = pointers(base, step, size, BITS, PARTS)
    block = tl.load(source + at, mask=inside[:, None, None] & places, other=0.0)
    return unstack(block.to(tl.float64) if WIDE else block, BITS)


@triton.jit
def store_fibers(target, base, step, inside, fibers, size, BITS: tl.constexpr, PARTS: tl.constexpr):
    """Write fibers where `load_fibers` would read them."""
    at, places = pointers(base, step, size, BITS, PARTS)
    tl.store(target + at, stack(fibers, BITS), mask=inside[:, None, None] & places)


@triton.jit
def unstack(block, BITS: tl.constexpr):
    """Cut a block (fibers, parts, 2^BITS) into one block for each entry, bit by bit of its number."""
    parts = (tl.reshape(block, (block.shape[0], block.shape[1]) + (2,) * BITS),)
    for bit in tl.static_range(BITS):
        even = ()
        odd = ()
        for k in tl.static_range(2**bit):
            left, right = tl.split(parts[k])
            even = even + (left,)
            odd = odd + (right,)
        parts = even + odd
    return parts


@triton.jit
def stack(fibers, BITS: tl.constexpr):
    """Undo `unstack`."""
    parts = fibers
    for bit in tl.static_range(BITS):
        joined = ()
        for k in tl.static_range(2 ** (BITS - 1 - bit)):
            joined = joined + (tl.join(parts[k], parts[k + 2 ** (BITS - 1 - bit)]),)
        parts = joined
    return tl.reshape(parts[0], (fibers[0].shape[0], fibers[0].shape[1], 2**BITS))
