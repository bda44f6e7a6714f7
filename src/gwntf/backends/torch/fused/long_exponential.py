"""Transport of long fibers under K_ij = scale ratio^|i-j|, chunk by chunk, with a few operations an entry and scaling.

U, V, x^phi and y^psi of a block of fibers lie in scratch memory, as records: the entries of a chunk, each a block
(fibers, parts), and one block more, what comes into each of its parts from the chunks of one side. V is found from the
first chunk to the last, so that what comes from before is known on the way and is written beside it; U from the last
to the first, with what comes from behind. Each half-step thus finds one of the two carries that it needs beside what it
reads, brings the other one along, and goes through the fiber once.
"""

import triton
import triton.language as tl

from gwntf.backends.torch.fused.arithmetic import NEGLIGIBLE
from gwntf.backends.torch.fused.entries import (
    add_to,
    chosen,
    clear,
    data_side,
    divide,
    even_start,
    judge,
    load_raised,
    load_start,
    model_side,
    most_hidden,
    move,
    settled,
    store_logs,
    store_terms,
    zeros_like,
)
from gwntf.backends.torch.fused.fibers import load_fibers, stack, unstack
from gwntf.backends.torch.fused.recursion import apply, reaches, sum_before, sum_behind


@triton.jit
def places(array, chunk, BITS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Where a record has the entries of each part, (fibers, parts, 2^BITS), and what comes into each part."""
    lane = tl.arange(0, BLOCK)[:, None] * PARTS + tl.arange(0, PARTS)[None, :]
    record = array + chunk * (BLOCK * PARTS * (2**BITS + 1))
    entries = lane[:, :, None] + tl.arange(0, 2**BITS)[None, None, :] * (BLOCK * PARTS)
    return record[:, :, None] + entries, record + (lane + BLOCK * PARTS * 2**BITS)


@triton.jit
def read(array, chunk, BITS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Return the entries of a chunk, and what comes into its parts from one side."""
    at, beside = places(array, chunk, BITS, PARTS, BLOCK)
    return unstack(tl.load(at), BITS), tl.load(beside)


@triton.jit
def write(array, chunk, entries, BITS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Write entries where `read` reads them."""
    tl.store(places(array, chunk, BITS, PARTS, BLOCK)[0], stack(entries, BITS))


@triton.jit
def law_of(ratio, scale, BITS: tl.constexpr, PARTS: tl.constexpr, WIDE: tl.constexpr):
    """Return the numbers of the kernel: ratio, leap, scale, the powers of leap over the parts, and over a chunk."""
    leap, near, mirrored, far = reaches(ratio, BITS, PARTS)
    kind: tl.constexpr = tl.float64 if WIDE else tl.float32
    return ratio, leap.to(kind), scale, near.to(kind), mirrored.to(kind), far.to(kind)


@triton.jit
def into_parts(carry, law, FORWARD: tl.constexpr):
    """Return what a carry brings to each part of a chunk, from before (FORWARD) or from behind."""
    return carry[:, None] * (law[3] if FORWARD else law[4])


@triton.jit
def beyond(carry, v, law, FORWARD: tl.constexpr):
    """Take a carry past a chunk: the sum before it to the sum before the next one, or the other way round."""
    own = sum_before(v, law[0]) * law[4] if FORWARD else sum_behind(v, law[0]) * law[3]
    return tl.sum(own, axis=1) + law[5] * carry


@triton.jit
def product(given, chunk, carry, law, FORWARD: tl.constexpr, BITS: tl.constexpr, PARTS: tl.constexpr,
            BLOCK: tl.constexpr):  # fmt: skip
    """Return a chunk of U or V, its product with the kernel, and the carry past it."""
    v, beside = read(given, chunk, BITS, PARTS, BLOCK)
    along = into_parts(carry, law, FORWARD)
    if FORWARD:
        kv = apply(v, law[0], law[1], law[2], along, beside, PARTS)
    else:
        kv = apply(v, law[0], law[1], law[2], beside, along, PARTS)
    return v, kv, beyond(carry, v, law, FORWARD)


@triton.jit
def keep(array, chunk, v, carry, law, FORWARD: tl.constexpr, BITS: tl.constexpr, PARTS: tl.constexpr,
         BLOCK: tl.constexpr):  # fmt: skip
    """Write a chunk of U or V with the carry into it, and return the carry past it."""
    write(array, chunk, v, BITS, PARTS, BLOCK)
    tl.store(places(array, chunk, BITS, PARTS, BLOCK)[1], into_parts(carry, law, FORWARD))
    return beyond(carry, v, law, FORWARD)


@triton.jit
def no_carry(law, BLOCK: tl.constexpr):
    """Return the carry at an end of the fibers."""
    return tl.zeros((BLOCK,), law[1].dtype)


@triton.jit
def half_step(given, raised, out, last, looking, chunks, law, power, rest, FORWARD: tl.constexpr,
              CHECKS: tl.constexpr, BITS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
              EXACT: tl.constexpr, NATIVE: tl.constexpr):  # fmt: skip
    """V from U going forward, or U from V going backward; where one looks, also `move` from the last U."""
    tl.debug_barrier()
    carry, own = no_carry(law, BLOCK), no_carry(law, BLOCK)
    moved, mass = no_carry(law, BLOCK), no_carry(law, BLOCK)
    for i in range(chunks):
        chunk = i if FORWARD else chunks - 1 - i
        _, kv, carry = product(given, chunk, carry, law, FORWARD, BITS, PARTS, BLOCK)
        now = divide(read(raised, chunk, BITS, PARTS, BLOCK)[0], kv, power, rest, EXACT, NATIVE)
        own = keep(out, chunk, now, own, law, FORWARD, BITS, PARTS, BLOCK)
        if CHECKS:  # noqa: SIM102  (decided when compiling)
            if looking:
                by, of = move(read(last, chunk, BITS, PARTS, BLOCK)[0], now, kv)
                moved += by
                mass += of
    return moved, mass


@triton.jit
def raise_all(source, out, base, step, inside, counted, rest, factor, size, chunks, BITS: tl.constexpr,
              PARTS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr, NATIVE: tl.constexpr):  # fmt: skip
    """Read fibers, write them raised to the power 1 - rest where the columns count, and sum them as they were."""
    total = tl.zeros((BLOCK,), tl.float64)
    for chunk in range(chunks):
        first = chunk * (PARTS * 2**BITS)
        raised, part = load_raised(source, base + tl.cast(first, tl.int64) * step, step, inside, rest, factor,
                                   size - first, BITS, PARTS, WIDE, NATIVE)  # fmt: skip
        write(out, chunk, chosen(counted, raised, zeros_like(raised)), BITS, PARTS, BLOCK)
        total += part
    return total


@triton.jit
def start(log_u, u, v, x_raised, base, step, inside, offset, first, size, chunks, law, power, rest,
          BITS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr, WARM: tl.constexpr, EXACT: tl.constexpr,
          WIDE: tl.constexpr, NATIVE: tl.constexpr):  # fmt: skip
    """Write U of the last call, or the one that follows from a constant V."""
    own = no_carry(law, BLOCK)
    for i in range(chunks):
        chunk = chunks - 1 - i if WARM else i
        gone = chunk * (PARTS * 2**BITS)
        if WARM:
            at = base + tl.cast(gone, tl.int64) * step
            given = load_start(log_u, at, step, inside, offset, size - gone, BITS, PARTS, WIDE)
            own = keep(u, chunk, given, own, law, False, BITS, PARTS, BLOCK)
        else:
            like = tl.zeros((BLOCK, PARTS), law[1].dtype)
            given = even_start(like, first, size - gone, BITS, PARTS)
            own = keep(v, chunk, given, own, law, True, BITS, PARTS, BLOCK)
    if not WARM:
        half_step(v, x_raised, u, u, False, chunks, law, power, rest,
                  False, False, BITS, PARTS, BLOCK, EXACT, NATIVE)  # fmt: skip


@triton.jit
def iterate(u, v, x_raised, y_raised, other, chunks, law, phi, psi, phi_rest, psi_rest, scalings, tol, check_every,
            BITS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr, CHECKS: tl.constexpr, EXACT: tl.constexpr,
            NATIVE: tl.constexpr):  # fmt: skip
    """All scalings but the last; return where each column has its U.

    With checks U goes from one of two arrays to the other, `other` numbers behind; a settled column stays where it is.
    """
    side = tl.zeros((BLOCK, 1), tl.int32)
    done = tl.zeros((BLOCK,), tl.int32) > 0
    iteration, going = 1, 1
    while (iteration < scalings) & (going > 0):
        looking = CHECKS and iteration % check_every == 0
        half_step(u + side, y_raised, v, v, False, chunks, law, psi, psi_rest,
                  True, False, BITS, PARTS, BLOCK, EXACT, NATIVE)  # fmt: skip
        moved, mass = half_step(v, x_raised, u + (other - side), u + side, looking, chunks, law, phi, phi_rest,
                                False, CHECKS, BITS, PARTS, BLOCK, EXACT, NATIVE)  # fmt: skip
        if CHECKS:
            if looking:
                done = done | settled(moved, mass, tol)
                going = tl.sum(1 - done.to(tl.int32))
            side = tl.where(done[:, None], side, other - side)
        iteration += 1
    return u + side


@triton.jit
def last_of_data(v, x_raised, u, chunks, law, power, rest, units, size, BITS: tl.constexpr, PARTS: tl.constexpr,
                 BLOCK: tl.constexpr, EXACT: tl.constexpr, NATIVE: tl.constexpr):  # fmt: skip
    """Write the last U; return the sums of Phi and Phi log2 U, and which columns were held."""
    tl.debug_barrier()
    carry, own, total, lost = (
        no_carry(law, BLOCK),
        no_carry(law, BLOCK),
        no_carry(law, BLOCK),
        no_carry(law, BLOCK),
    )
    mass, entropy = tl.zeros((BLOCK,), tl.float64), tl.zeros((BLOCK,), tl.float64)
    fine, least = tl.full((BLOCK,), 1, tl.int32), no_carry(law, BLOCK) + float("inf")
    for i in range(chunks):
        chunk = chunks - 1 - i
        given, kv, carry = product(v, chunk, carry, law, False, BITS, PARTS, BLOCK)
        raised = read(x_raised, chunk, BITS, PARTS, BLOCK)[0]
        now = divide(raised, kv, power, rest, EXACT, NATIVE)
        own = keep(u, chunk, now, own, law, False, BITS, PARTS, BLOCK)
        mass_here, entropy_here = data_side(now, kv, NATIVE)
        mass += mass_here
        entropy += entropy_here
        lost += most_hidden(now, raised, kv)
        total_here, fine_here, least_here = judge(given, kv, raised)
        total += total_here
        fine, least = tl.minimum(fine, fine_here), tl.minimum(least, least_here)
    return mass, entropy, clear(total, fine, least, units, size) & (lost <= mass * NEGLIGIBLE)


@triton.jit
def last_of_model(u, v, y_raised, psi, Y, base, step, inside, phi_sum, chunks, law, units, size,
                  BITS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
                  NATIVE: tl.constexpr):  # fmt: skip
    """Write Psi; return the sums of Psi, Psi log2 V and Psi log2(Psi / y), and which columns were held."""
    tl.debug_barrier()
    carry, total, lost = no_carry(law, BLOCK), no_carry(law, BLOCK), no_carry(law, BLOCK)
    mass, entropy = tl.zeros((BLOCK,), tl.float64), tl.zeros((BLOCK,), tl.float64)
    against = tl.zeros((BLOCK,), tl.float64)
    fine, least = tl.full((BLOCK,), 1, tl.int32), no_carry(law, BLOCK) + float("inf")
    for chunk in range(chunks):
        given, ku, carry = product(u, chunk, carry, law, True, BITS, PARTS, BLOCK)
        held_v = read(v, chunk, BITS, PARTS, BLOCK)[0]
        raised = read(y_raised, chunk, BITS, PARTS, BLOCK)[0]
        lost += most_hidden(held_v, raised, ku)
        total_here, fine_here, least_here = judge(given, ku, raised)
        total += total_here
        fine, least = tl.minimum(fine, fine_here), tl.minimum(least, least_here)
        gone = chunk * (PARTS * 2**BITS)
        y = load_fibers(
            Y, base + tl.cast(gone, tl.int64) * step, step, inside, size - gone, BITS, PARTS, WIDE
        )
        moved, mass_here, entropy_here, against_here = model_side(y, held_v, ku, NATIVE)
        write(psi, chunk, moved, BITS, PARTS, BLOCK)
        mass += mass_here
        entropy += entropy_here
        against += against_here
    return mass, entropy, against, clear(total, fine, least, units, size) & (lost <= phi_sum * NEGLIGIBLE)


@triton.jit
def give_back(u, psi, log_u, marginal, base, step, written, offset, share, size, chunks, BITS: tl.constexpr,
              PARTS: tl.constexpr, BLOCK: tl.constexpr, KEEP: tl.constexpr, WIDE: tl.constexpr,
              NATIVE: tl.constexpr):  # fmt: skip
    """Add Psi to the marginal and write log U, of the columns that were held."""
    tl.debug_barrier()
    for chunk in range(chunks):
        gone = chunk * (PARTS * 2**BITS)
        at = base + tl.cast(gone, tl.int64) * step
        moved = read(psi, chunk, BITS, PARTS, BLOCK)[0]
        add_to(marginal, at, step, written, moved, share, size - gone, BITS, PARTS, WIDE)
        if KEEP:
            now = read(u, chunk, BITS, PARTS, BLOCK)[0]
            store_logs(log_u, at, step, written, now, offset, size - gone, BITS, PARTS, NATIVE)
    tl.debug_barrier()


@triton.jit
def solve(c, inside, room, X, Y, log_u, marginal, terms, sound, columns, after, law, size, offset_u, offset_v, units,
          phi, psi, phi_rest, psi_rest, x_factor, y_factor, first, share, reg, alpha, beta, scalings, tol, check_every,
          BITS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr, WARM: tl.constexpr, KEEP: tl.constexpr,
          CHECKS: tl.constexpr, BALANCED: tl.constexpr, EXACT: tl.constexpr, WIDE: tl.constexpr,
          NATIVE: tl.constexpr):  # fmt: skip
    """Transport the fibers c of X to those of Y; of those that were not held only that is written."""
    base = (c // after).to(tl.int64) * size * after + c % after
    chunks = tl.cdiv(size, PARTS * 2**BITS)
    array = chunks * (BLOCK * PARTS * (2**BITS + 1))
    x_raised = room + tl.zeros((1, 1), tl.int32)
    y_raised, v, u = x_raised + array, x_raised + 2 * array, x_raised + 3 * array
    x_sum = raise_all(X, x_raised, base, after, inside, inside, phi_rest, x_factor, size, chunks,
                      BITS, PARTS, BLOCK, WIDE, NATIVE)  # fmt: skip
    y_sum = raise_all(Y, y_raised, base, after, inside, x_sum > 0, psi_rest, y_factor, size, chunks,
                      BITS, PARTS, BLOCK, WIDE, NATIVE)  # fmt: skip
    start(log_u, u, v, x_raised, base, after, inside, offset_u, first, size, chunks, law, phi, phi_rest,
          BITS, PARTS, BLOCK, WARM, EXACT, WIDE, NATIVE)  # fmt: skip
    u = iterate(u, v, x_raised, y_raised, array if CHECKS else 0, chunks, law, phi, psi, phi_rest, psi_rest,
                scalings, tol, check_every, BITS, PARTS, BLOCK, CHECKS, EXACT, NATIVE)  # fmt: skip
    half_step(u, y_raised, v, v, False, chunks, law, psi, psi_rest,
              True, False, BITS, PARTS, BLOCK, EXACT, NATIVE)  # fmt: skip
    phi_sum, entropy_u, good = last_of_data(v, x_raised, u, chunks, law, phi, phi_rest, units, size,
                                            BITS, PARTS, BLOCK, EXACT, NATIVE)  # fmt: skip
    psi_sum, entropy_v, against, fine = last_of_model(u, v, y_raised, x_raised, Y, base, after, inside, phi_sum, chunks,
                                                      law, units, size, BITS, PARTS, BLOCK, WIDE, NATIVE)  # fmt: skip
    good = (good & fine) | (x_sum == 0)
    tl.store(sound + c, good, mask=inside)
    give_back(u, x_raised, log_u, marginal, base, after, inside & good, offset_u, share, size, chunks,
              BITS, PARTS, BLOCK, KEEP, WIDE, NATIVE)  # fmt: skip
    store_terms(terms, c, columns, inside, x_sum, y_sum, phi_sum, psi_sum, entropy_u, entropy_v, against,
                offset_u, offset_v, reg, alpha, beta, BALANCED)  # fmt: skip


@triton.jit
def transport(some, count, scratch, room, X, Y, log_u, marginal, terms, sound, columns, after, ratio, scale, size,
              offset_u, offset_v, units, phi, psi, phi_rest, psi_rest, x_factor, y_factor, first, share,
              reg, alpha, beta, scalings, tol, check_every, BITS: tl.constexpr, PARTS: tl.constexpr,
              BLOCK: tl.constexpr, WARM: tl.constexpr, KEEP: tl.constexpr, CHECKS: tl.constexpr, BALANCED: tl.constexpr,
              EXACT: tl.constexpr, WIDE: tl.constexpr, NATIVE: tl.constexpr):  # fmt: skip
    """Transport fibers of X to those of Y: all in float32, or in float64 the first `count` of a list (WIDE).

    A program has `room` numbers of scratch memory and takes one block of fibers after the other.
    """
    own = scratch + tl.program_id(0).to(tl.int64) * room
    law = law_of(ratio, scale, BITS, PARTS, WIDE)
    left = tl.program_id(0) * BLOCK
    end = tl.load(count) if WIDE else columns
    while left < end:
        c = left + tl.arange(0, BLOCK)
        inside = c < end
        if WIDE:
            c = tl.load(some + c, mask=inside, other=0)
        solve(c, inside, own, X, Y, log_u, marginal, terms, sound, columns, after, law, size, offset_u, offset_v,
              units, phi, psi, phi_rest, psi_rest, x_factor, y_factor, first, share, reg, alpha, beta, scalings, tol,
              check_every, BITS, PARTS, BLOCK, WARM, KEEP, CHECKS, BALANCED, EXACT, WIDE, NATIVE)  # fmt: skip
        left += tl.num_programs(0) * BLOCK
