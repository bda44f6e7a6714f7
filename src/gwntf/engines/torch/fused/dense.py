"""Transport of short fibers under any kernel: a tile of fibers goes through all scalings on the matrix units.

A tile is (fibers, places), padded to a power of two; the kernel is zero beyond the fiber. The arithmetic is that of
`transport.scaling` in plain numbers, and columns are judged by the rules of `transport.domains`.
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

_LIFT, _LOWER = tl.constexpr(2.0**24), tl.constexpr(2.0**-24)
"""The matrix units cut numbers in three and lose what is then below the smallest normal number: kernels are lifted."""


@triton.jit
def product(rows, lifted, PRECISION: tl.constexpr):
    """Rows times a kernel."""
    return tl.dot(rows, lifted, input_precision=PRECISION) * _LOWER


@triton.jit
def clear(given, product, counted, units, SIZE: tl.constexpr):
    """Whether a column stayed finite and its products are well above the smallest normal number."""
    summed = tl.sum(given, axis=1)
    floor = times_tiny(tl.maximum(units * summed, SIZE))
    good = held(product) & ((product > floor[:, None]) | (counted == 0.0))
    return held(summed) & (tl.min(good.to(tl.int32), axis=1) > 0)


@triton.jit
def transport(X, Y, log_u, marginal, terms, sound, columns, after, matrix, transposed, offset_u, offset_v, units,
              phi, psi, phi_rest, psi_rest, x_factor, y_factor, first, share, reg, alpha, beta, scalings, tol,
              check_every, SIZE: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr, WARM: tl.constexpr,
              KEEP: tl.constexpr, CHECKS: tl.constexpr, BALANCED: tl.constexpr, EXACT: tl.constexpr,
              NATIVE: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    """Transport a tile of fibers of X to those of Y: see `engines.protocol.StackTransport`."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.arange(0, 2**BITS)
    inside = c < columns
    wanted = inside[:, None] & (i < SIZE)[None, :]
    at = ((c // after).to(tl.int64) * (SIZE * after) + c % after)[:, None] + i[None, :] * after
    places = (i < SIZE)[:, None] & (i < SIZE)[None, :]
    # rows of fibers are multiplied from the right: v K' is K v, and u K is K' u
    forward = tl.load(transposed + i[:, None] * SIZE + i[None, :], mask=places, other=0.0) * _LIFT
    backward = tl.load(matrix + i[:, None] * SIZE + i[None, :], mask=places, other=0.0) * _LIFT
    x = tl.load(X + at, mask=wanted, other=0.0)
    xp = raise_to(x, phi_rest, x_factor, NATIVE)
    x_sum = tl.sum(x.to(tl.float64), axis=1)
    y = tl.load(Y + at, mask=wanted, other=0.0)
    yp = raise_to(y, psi_rest, y_factor, NATIVE)
    if WARM:
        u = tl.exp(tl.load(log_u + at, mask=wanted, other=float("-inf")) - offset_u)
    else:
        kv = product(tl.full((BLOCK, 2**BITS), 1.0, tl.float32) * first, forward, PRECISION)
        u = divide_by_power(xp, kv, phi, phi_rest, EXACT, NATIVE)
    done = x_sum < 0
    iteration, going = 1, 1
    while (iteration < scalings) & (going > 0):
        ku = product(u, backward, PRECISION)
        v = divide_by_power(yp, ku, psi, psi_rest, EXACT, NATIVE)
        kv = product(v, forward, PRECISION)
        now = divide_by_power(xp, kv, phi, phi_rest, EXACT, NATIVE)
        if CHECKS:
            if iteration % check_every == 0:
                moved = tl.sum(tl.abs(now - u) * kv, axis=1)
                done = done | ((moved > tol * tl.sum(now * kv, axis=1)) == 0)
                going = tl.sum(1 - done.to(tl.int32))
            u = tl.where(done[:, None], u, now)
        else:
            u = now
        iteration += 1
    ku = product(u, backward, PRECISION)
    v = tl.where(x_sum[:, None] > 0, divide_by_power(yp, ku, psi, psi_rest, EXACT, NATIVE), 0.0)
    kv = product(v, forward, PRECISION)
    u = divide_by_power(xp, kv, phi, phi_rest, EXACT, NATIVE)
    ku = product(u, backward, PRECISION)
    lost = tl.sum(hidden(u, xp, kv) + hidden(v, yp, ku), axis=1)
    phi_sum = tl.sum((u * kv).to(tl.float64), axis=1)
    good = clear(v, kv, xp, units, SIZE) & clear(u, ku, yp, units, SIZE) & (lost <= phi_sum * NEGLIGIBLE)
    good = good | (x_sum == 0)
    tl.store(sound + c, good, mask=inside)
    written = wanted & good[:, None]
    if KEEP:
        tl.store(log_u + at, natural_log(u, offset_u, NATIVE), mask=written)
    moved = v * ku
    old = tl.load(marginal + at, mask=wanted, other=0.0)
    tl.store(marginal + at, old + share * moved, mask=written)
    y_sum = tl.sum(y.to(tl.float64), axis=1)
    psi_sum = tl.sum(moved.to(tl.float64), axis=1)
    entropy = tl.sum(mass_times_log2(u * kv, u, NATIVE), axis=1) * LOG_2 + offset_u * phi_sum
    entropy_v = tl.sum(mass_times_log2(moved, v, NATIVE), axis=1) * LOG_2 + offset_v * psi_sum
    against = tl.sum(mass_times_log2(moved, moved / positive(y), NATIVE), axis=1) * LOG_2
    tl.store(terms + c, reg * (entropy + entropy_v - psi_sum), mask=inside)
    data = x_sum * 0 if BALANCED else alpha * (x_sum - phi_sum) - reg * entropy
    tl.store(terms + columns + c, data, mask=inside)
    tl.store(terms + 2 * columns + c, beta * (against - psi_sum + y_sum), mask=inside)
