"""Transport of short fibers under K_ij = scale ratio^|i-j|, from the first scaling to the last in registers.

Two recursions apply the kernel with a few operations an entry, so that what binds is the powers. Where a fiber lies on
several threads, each first finds what its part adds to the sums of the others. The arithmetic is that of
`transport.scaling` in plain numbers, and columns are judged by the rules of `transport.domains`. What follows the last
scaling goes array by array, because few of them fit in registers at a time.
"""

from __future__ import annotations

import triton
import triton.language as tl

from gwntf.engines.torch.fused.arithmetic import (
    LOG_2,
    NEGLIGIBLE,
    divide_by_power,
    held,
    hidden,
    mass_times_log2,
    natural_log,
    positive,
    raise_to,
    times_tiny,
)
from gwntf.engines.torch.fused.fibers import is_place, load_fibers, store_fibers
from gwntf.engines.torch.fused.recursion import apply_alone


@triton.jit
def divide(raised, product, power, rest, EXACT: tl.constexpr, NATIVE: tl.constexpr):
    """Return raised / product^power."""
    moved = ()
    for k in tl.static_range(len(raised)):
        moved = moved + (divide_by_power(raised[k], product[k], power, rest, EXACT, NATIVE),)
    return moved


@triton.jit
def load_raised(source, base, step, inside, rest, factor,
                SIZE: tl.constexpr, BITS: tl.constexpr, PARTS: tl.constexpr, WIDE: tl.constexpr,
                NATIVE: tl.constexpr):  # fmt: skip
    """Read fibers, raise them to the power 1 - rest, and sum them as they were."""
    x = load_fibers(source, base, step, inside, SIZE, BITS, PARTS, WIDE)
    total = x[0].to(tl.float64)
    raised = (raise_to(x[0], rest, factor, NATIVE),)
    for k in tl.static_range(1, len(x)):
        total += x[k].to(tl.float64)
        raised = raised + (raise_to(x[k], rest, factor, NATIVE),)
    return raised, tl.sum(total, axis=1)


@triton.jit
def settled(last, now, kv, tol):
    """Whether the data marginal moved by at most `tol` of its mass."""
    moved, mass = tl.zeros_like(kv[0]), tl.zeros_like(kv[0])
    for k in tl.static_range(len(kv)):
        moved += tl.abs(now[k] - last[k]) * kv[k]
        mass += now[k] * kv[k]
    return (tl.sum(moved, axis=1) > tol * tl.sum(mass, axis=1)) == 0


@triton.jit
def clear(given, product, counted, units, SIZE: tl.constexpr):
    """Whether a column stayed finite and its products are well above the smallest normal number."""
    summed = given[0]
    for k in tl.static_range(1, len(given)):
        summed += given[k]
    total = tl.sum(summed, axis=1)
    floor = times_tiny(tl.maximum(units * total, SIZE))[:, None]
    good = held(summed)
    for k in tl.static_range(len(product)):
        good = good & held(product[k]) & ((product[k] > floor) | (counted[k] == 0.0))
    return held(total) & (tl.min(good.to(tl.int32), axis=1) > 0)


@triton.jit
def most_hidden(given, counted, product):
    """Sum of `hidden` over the entries of every column."""
    most = hidden(given[0], counted[0], product[0])
    for k in tl.static_range(1, len(given)):
        most += hidden(given[k], counted[k], product[k])
    return tl.sum(most, axis=1)


@triton.jit
def start(log_u, xp, base, step, inside, offset, first, ratio, leap, scale, power, rest, SIZE: tl.constexpr,
          BITS: tl.constexpr, PARTS: tl.constexpr, WARM: tl.constexpr, EXACT: tl.constexpr, WIDE: tl.constexpr,
          NATIVE: tl.constexpr):  # fmt: skip
    """U of the last call, or the one that follows from a constant V."""
    if WARM:
        logs = load_fibers(log_u, base, step, inside, SIZE, BITS, PARTS, WIDE)
        u = ()
        for k in tl.static_range(len(logs)):
            u = u + (tl.where(is_place(k, SIZE, BITS, PARTS), tl.exp(logs[k] - offset), 0.0),)
        return u
    v = ()
    for k in tl.static_range(len(xp)):
        v = v + (tl.where(is_place(k, SIZE, BITS, PARTS), first, tl.zeros_like(xp[0])),)
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
                done = done | settled(u, now, kv, tol)
                going = tl.sum(1 - done.to(tl.int32))
            kept = ()
            for k in tl.static_range(len(now)):
                kept = kept + (tl.where(done[:, None], u[k], now[k]),)
            u = kept
        else:
            u = now
        iteration += 1
    return u


@triton.jit
def data_side(u, kv, NATIVE: tl.constexpr):
    """Return the sums of Phi and of Phi log2 U."""
    mass = (u[0] * kv[0]).to(tl.float64)
    entropy = mass_times_log2(u[0] * kv[0], u[0], NATIVE)
    for k in tl.static_range(1, len(u)):
        mass += (u[k] * kv[k]).to(tl.float64)
        entropy += mass_times_log2(u[k] * kv[k], u[k], NATIVE)
    return tl.sum(mass, axis=1), tl.sum(entropy, axis=1)


@triton.jit
def model_side(y, v, ku, NATIVE: tl.constexpr):
    """Psi, and the sums of Psi, Psi log2 V and Psi log2(Psi / y)."""
    psi = (v[0] * ku[0],)
    mass = psi[0].to(tl.float64)
    entropy = mass_times_log2(psi[0], v[0], NATIVE)
    against = mass_times_log2(psi[0], psi[0] / positive(y[0]), NATIVE)
    for k in tl.static_range(1, len(v)):
        psi = psi + (v[k] * ku[k],)
        mass += psi[k].to(tl.float64)
        entropy += mass_times_log2(psi[k], v[k], NATIVE)
        against += mass_times_log2(psi[k], psi[k] / positive(y[k]), NATIVE)
    return psi, tl.sum(mass, axis=1), tl.sum(entropy, axis=1), tl.sum(against, axis=1)


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
    u = start(log_u, xp, base, after, inside, offset_u, first, ratio, leap, scale, phi, phi_rest,
              SIZE, BITS, PARTS, WARM, EXACT, WIDE, NATIVE)  # fmt: skip
    u = iterate(u, xp, yp, ratio, leap, scale, phi, psi, phi_rest, psi_rest, scalings, tol, check_every,
                PARTS, CHECKS, EXACT, NATIVE)  # fmt: skip
    free = divide(yp, apply_alone(u, ratio, leap, scale, PARTS), psi, psi_rest, EXACT, NATIVE)
    v = ()
    for k in tl.static_range(len(free)):
        v = v + (tl.where(x_sum[:, None] > 0, free[k], 0.0),)
    kv = apply_alone(v, ratio, leap, scale, PARTS)
    u = divide(xp, kv, phi, phi_rest, EXACT, NATIVE)
    phi_sum, entropy_u = data_side(u, kv, NATIVE)
    good = clear(v, kv, xp, units, SIZE) & (most_hidden(u, xp, kv) <= phi_sum * NEGLIGIBLE)
    ku = apply_alone(u, ratio, leap, scale, PARTS)
    good = good & clear(u, ku, yp, units, SIZE) & (most_hidden(v, yp, ku) <= phi_sum * NEGLIGIBLE)
    good = good | (x_sum == 0)
    tl.store(sound + c, good, mask=inside)
    written = inside & good
    if KEEP:
        logs = ()
        for k in tl.static_range(len(u)):
            logs = logs + (natural_log(u[k], offset_u, NATIVE),)
        store_fibers(log_u, base, after, written, logs, SIZE, BITS, PARTS)
    y = load_fibers(Y, base, after, inside, SIZE, BITS, PARTS, WIDE)
    moved, psi_sum, entropy_v, against = model_side(y, v, ku, NATIVE)
    old = load_fibers(marginal, base, after, inside, SIZE, BITS, PARTS, WIDE)
    target = ()
    for k in tl.static_range(len(old)):
        target = target + (old[k] + share * moved[k],)
    store_fibers(marginal, base, after, written, target, SIZE, BITS, PARTS)
    entropy = entropy_u * LOG_2 + offset_u * phi_sum
    tl.store(terms + c, reg * (entropy + entropy_v * LOG_2 + offset_v * psi_sum - psi_sum), mask=inside)
    data = x_sum * 0 if BALANCED else alpha * (x_sum - phi_sum) - reg * entropy
    tl.store(terms + columns + c, data, mask=inside)
    tl.store(terms + 2 * columns + c, beta * (against * LOG_2 - psi_sum + y_sum), mask=inside)


@triton.jit
def transport(X, Y, log_u, marginal, terms, sound, columns, after, ratio, leap, scale, offset_u, offset_v, units,
              phi, psi, phi_rest, psi_rest, x_factor, y_factor, first, share, reg, alpha, beta, scalings, tol,
              check_every, SIZE: tl.constexpr, BITS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
              WARM: tl.constexpr, KEEP: tl.constexpr, CHECKS: tl.constexpr, BALANCED: tl.constexpr, EXACT: tl.constexpr,
              NATIVE: tl.constexpr):  # fmt: skip
    """Transport a block of fibers of X to those of Y in float32: see `engines.protocol.StackTransport`."""
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
