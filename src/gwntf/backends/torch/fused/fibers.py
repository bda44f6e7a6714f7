"""Fibers in registers: each fiber is divided into parts, one for each of a few neighbouring threads.

A fiber of up to parts * 2^bits entries is a tuple of 2^bits blocks (fibers, parts): block k of part p is entry
p 2^bits + k. Loops over blocks are unrolled at compile time. Fibers are loaded and stored as one block, because
compiling one operation for each entry takes minutes.
"""

import triton
import triton.language as tl

from gwntf.backends.torch.fused.arguments import Location


@triton.jit
def columns_at(indices, left, end, config):
    """Return the block of columns that starts at `left`, from a list of indices if there is one, and which exist."""
    c = left + tl.arange(0, config.block)
    inside = c < end
    if indices is not None:
        c = tl.load(indices + c, mask=inside, other=0)
    return c, inside


@triton.jit
def locate(c, inside, step, size):
    """Return where the fibers c are in a stack."""
    return Location((c // step).to(tl.int64) * size * step + c % step, step, inside, size)


@triton.jit
def locate_chunk(where, chunk, config):
    """Return where one chunk of long fibers is."""
    first = chunk * (config.parts * 2**config.bits)
    return Location(where.base + tl.cast(first, tl.int64) * where.step, where.step, where.inside, where.size - first)


@triton.jit
def restrict(where, condition):
    """Restrict a location to the fibers that satisfy a condition."""
    return Location(where.base, where.step, where.inside & condition, where.size)


@triton.jit
def pointers(where, config):
    """Return offsets and mask of the entries of fibers, (fibers, parts, 2^bits)."""
    entry = (tl.arange(0, config.parts) * 2**config.bits)[:, None] + tl.arange(0, 2**config.bits)[None, :]
    at = where.base[:, None, None] + entry[None, :, :] * where.step
    return at, where.inside[:, None, None] & (entry < where.size)[None, :, :]


@triton.jit
def load_fibers(source, where, config, padding: tl.constexpr = 0.0):
    """Load fibers, with padding after the last entry."""
    at, mask = pointers(where, config)
    block = tl.load(source + at, mask=mask, other=padding)
    return unstack(block.to(tl.float64) if config.wide else block, config.bits)


@triton.jit
def store_fibers(target, where, fibers, config):
    """Store fibers where `load_fibers` loads them."""
    at, mask = pointers(where, config)
    tl.store(target + at, stack(fibers, config.bits), mask=mask)


@triton.jit
def constant_fibers(value, where, like, config):
    """Return fibers of which all entries are equal, zero after the last one."""
    fibers = ()
    for k in tl.static_range(2**config.bits):
        is_entry = tl.arange(0, config.parts)[None, :] * 2**config.bits + k < where.size
        fibers = fibers + (tl.where(is_entry, value, tl.zeros_like(like)),)
    return fibers


@triton.jit
def unstack(block, BITS: tl.constexpr):
    """Split a block (fibers, parts, 2^BITS) into one block for each entry of a part."""
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
