"""Transport of short fibers under K_ij = scale ratio^|i-j|, from the first scaling to the last in registers.

Recursions apply the kernel with a few operations an entry, so that what binds is the powers. What follows the last
scaling goes array by array, because few of them fit in registers at a time.
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
from gwntf.backends.torch.fused.fibers import load_fibers
from gwntf.backends.torch.fused.recursion import apply_alone


@triton.jit
def start(log_u, xp, base, step, inside, offset, first, ratio, leap, scale, power, rest, SIZE: tl.constexpr,
          BITS: tl.constexpr, PARTS: tl.constexpr, WARM: tl.constexpr, EXACT: tl.constexpr, WIDE: tl.constexpr,
          NATIVE: tl.constexpr):  # fmt: skip
    """U of the last call, or the one that follows from a constant V."""
    if WARM:
        return load_start(log_u, base, step, inside, offset, SIZE, BITS, PARTS, WIDE)
    v = even_start(xp[0], first, SIZE, BITS, PARTS)
    return divide(xp, apply_alone(v, ratio, leap, scale, PARTS), power, rest, EXACT, NATIVE)


@triton.jit
def iterate(u, xp, yp, ratio, leap, scale, phi, psi, phi_rest, psi_rest, scalings, tol, check_every,
            PARTS: tl.constexpr, CHECKS: tl.constexpr, EXACT: tl.constexpr, NATIVE: tl.constexpr):  # fmt: skip
    """All scalings but the last; a settled column keeps the U from which it settled."""
    done = tl.sum(xp[0], axis=1) < 0
    iteration, going = 1, 1
    while (iteration < scalings) & (going > 0):
        v = divide(yp, apply_alone(u, ratio, leap, scale, PARTS), psi, psi_rest, EXACT, NATIVE)
        kv = apply_alone(v, ratio, leap, scale, PARTS)
        now = divide(xp, kv, phi, phi_rest, EXACT, NATIVE)
        if CHECKS:
            if iteration % check_every == 0:
                moved, mass = move(u, now, kv)
                done = done | settled(moved, mass, tol)
                going = tl.sum(1 - done.to(tl.int32))
            u = chosen(done, u, now)
        else:
            u = now
        iteration += 1
    return u


@triton.jit
def solve(c, inside, X, Y, log_u, marginal, terms, sound, columns, after, ratio, leap, scale, offset_u, offset_v, units,
          phi, psi, phi_rest, psi_rest, x_factor, y_factor, first, share, reg, alpha, beta, scalings, tol, check_every,
          SIZE: tl.constexpr, BITS: tl.constexpr, PARTS: tl.constexpr, WARM: tl.constexpr, KEEP: tl.constexpr,
          CHECKS: tl.constexpr, BALANCED: tl.constexpr, EXACT: tl.constexpr, WIDE: tl.constexpr,
          NATIVE: tl.constexpr):  # fmt: skip
    """Transport the fibers c of X to those of Y; of those that were not held only that is written."""
    base = (c // after).to(tl.int64) * (SIZE * after) + c % after
    xp, x_sum = load_raised(X, base, after, inside, phi_rest, x_factor, SIZE, BITS, PARTS, WIDE, NATIVE)
    yp, y_sum = load_raised(Y, base, after, inside, psi_rest, y_factor, SIZE, BITS, PARTS, WIDE, NATIVE)
    yp = chosen(x_sum > 0, yp, zeros_like(yp))
    u = start(log_u, xp, base, after, inside, offset_u, first, ratio, leap, scale, phi, phi_rest,
              SIZE, BITS, PARTS, WARM, EXACT, WIDE, NATIVE)  # fmt: skip
    u = iterate(u, xp, yp, ratio, leap, scale, phi, psi, phi_rest, psi_rest, scalings, tol, check_every,
                PARTS, CHECKS, EXACT, NATIVE)  # fmt: skip
    v = divide(yp, apply_alone(u, ratio, leap, scale, PARTS), psi, psi_rest, EXACT, NATIVE)
    kv = apply_alone(v, ratio, leap, scale, PARTS)
    u = divide(xp, kv, phi, phi_rest, EXACT, NATIVE)
    phi_sum, entropy_u = data_side(u, kv, NATIVE)
    total, fine, least = judge(v, kv, xp)
    good = clear(total, fine, least, units, SIZE) & (most_hidden(u, xp, kv) <= phi_sum * NEGLIGIBLE)
    ku = apply_alone(u, ratio, leap, scale, PARTS)
    total, fine, least = judge(u, ku, yp)
    good = good & clear(total, fine, least, units, SIZE) & (most_hidden(v, yp, ku) <= phi_sum * NEGLIGIBLE)
    good = good | (x_sum == 0)
    tl.store(sound + c, good, mask=inside)
    written = inside & good
    if KEEP:
        store_logs(log_u, base, after, written, u, offset_u, SIZE, BITS, PARTS, NATIVE)
    y = load_fibers(Y, base, after, inside, SIZE, BITS, PARTS, WIDE)
    moved, psi_sum, entropy_v, against = model_side(y, v, ku, NATIVE)
    add_to(marginal, base, after, written, moved, share, SIZE, BITS, PARTS, WIDE)
    store_terms(terms, c, columns, inside, x_sum, y_sum, phi_sum, psi_sum, entropy_u, entropy_v, against,
                offset_u, offset_v, reg, alpha, beta, BALANCED)  # fmt: skip


@triton.jit
def transport(X, Y, log_u, marginal, terms, sound, columns, after, ratio, leap, scale, offset_u, offset_v, units,
              phi, psi, phi_rest, psi_rest, x_factor, y_factor, first, share, reg, alpha, beta, scalings, tol,
              check_every, SIZE: tl.constexpr, BITS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
              WARM: tl.constexpr, KEEP: tl.constexpr, CHECKS: tl.constexpr, BALANCED: tl.constexpr, EXACT: tl.constexpr,
              NATIVE: tl.constexpr):  # fmt: skip
    """Transport a block of fibers of X to those of Y in float32: see `backends.protocol.StackTransport`."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    solve(c, c < columns, X, Y, log_u, marginal, terms, sound, columns, after, ratio, leap, scale, offset_u, offset_v,
          units, phi, psi, phi_rest, psi_rest, x_factor, y_factor, first, share, reg, alpha, beta, scalings, tol,
          check_every, SIZE, BITS, PARTS, WARM, KEEP, CHECKS, BALANCED, EXACT, False, NATIVE)  # fmt: skip


@triton.jit
def transport_some(chosen, count, X, Y, log_u, marginal, terms, sound, columns, after, ratio, leap, scale,
                   offset_u, offset_v, units, phi, psi, phi_rest, psi_rest, x_factor, y_factor, first, share,
                   reg, alpha, beta, scalings, tol, check_every,
                   SIZE: tl.constexpr, BITS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr, WARM: tl.constexpr,
                   KEEP: tl.constexpr, CHECKS: tl.constexpr, BALANCED: tl.constexpr):  # fmt: skip
    """`transport` in float64 of the first `count` fibers of a list, both of which are known to the device alone."""
    left = tl.program_id(0) * BLOCK
    some = tl.load(count)
    while left < some:
        place = left + tl.arange(0, BLOCK)
        inside = place < some
        c = tl.load(chosen + place, mask=inside, other=0)
        solve(c, inside, X, Y, log_u, marginal, terms, sound, columns, after, ratio, leap, scale, offset_u, offset_v,
              units, phi, psi, phi_rest, psi_rest, x_factor, y_factor, first, share, reg, alpha, beta, scalings, tol,
              check_every, SIZE, BITS, PARTS, WARM, KEEP, CHECKS, BALANCED, True, True, False)  # fmt: skip
        left += tl.num_programs(0) * BLOCK
