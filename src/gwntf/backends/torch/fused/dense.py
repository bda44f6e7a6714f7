"""Transport of short fibers under any kernel: a tile of fibers goes through all scalings on the matrix units.

A tile is (fibers, places), padded to a power of two; the kernel is zero beyond the fiber. To what works on fibers in
registers (`entries`) it is a tuple of one block, a place for each part.
"""

import triton
import triton.language as tl

from gwntf.backends.torch.fused.arithmetic import NEGLIGIBLE, natural_log, raise_to
from gwntf.backends.torch.fused.entries import (
    chosen,
    clear,
    data_side,
    divide,
    judge,
    model_side,
    most_hidden,
    move,
    settled,
    store_terms,
    zeros_like,
)

_LIFT, _LOWER = tl.constexpr(2.0**24), tl.constexpr(2.0**-24)
"""The matrix units cut numbers in three and lose what is then below the smallest normal number: kernels are lifted."""


@triton.jit
def product(tile, lifted, PRECISION: tl.constexpr):
    """Fibers times a kernel."""
    return (tl.dot(tile[0], lifted, input_precision=PRECISION) * _LOWER,)


@triton.jit
def load_lifted(matrix, i, SIZE: tl.constexpr):
    """Read a kernel, zero beyond the fiber."""
    places = (i < SIZE)[:, None] & (i < SIZE)[None, :]
    return tl.load(matrix + i[:, None] * SIZE + i[None, :], mask=places, other=0.0) * _LIFT


@triton.jit
def start(log_u, at, wanted, xp, forward, offset, first, power, rest,
          WARM: tl.constexpr, EXACT: tl.constexpr, NATIVE: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    """U of the last call, or the one that follows from a constant V."""
    if WARM:
        return (tl.exp(tl.load(log_u + at, mask=wanted, other=float("-inf")) - offset),)
    v = (tl.zeros_like(xp[0]) + first,)
    return divide(xp, product(v, forward, PRECISION), power, rest, EXACT, NATIVE)


@triton.jit
def iterate(u, xp, yp, forward, backward, phi, psi, phi_rest, psi_rest, scalings, tol, check_every,
            CHECKS: tl.constexpr, EXACT: tl.constexpr, NATIVE: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    """All scalings but the last; a settled column keeps the U from which it settled."""
    done = tl.sum(xp[0], axis=1) < 0
    iteration, going = 1, 1
    while (iteration < scalings) & (going > 0):
        v = divide(yp, product(u, backward, PRECISION), psi, psi_rest, EXACT, NATIVE)
        kv = product(v, forward, PRECISION)
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
def transport(X, Y, log_u, marginal, terms, sound, columns, after, matrix, transposed, offset_u, offset_v, units,
              phi, psi, phi_rest, psi_rest, x_factor, y_factor, first, share, reg, alpha, beta, scalings, tol,
              check_every, SIZE: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr, WARM: tl.constexpr,
              KEEP: tl.constexpr, CHECKS: tl.constexpr, BALANCED: tl.constexpr, EXACT: tl.constexpr,
              NATIVE: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    """Transport a tile of fibers of X to those of Y: see `backends.protocol.StackTransport`."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.arange(0, 2**BITS)
    inside = c < columns
    wanted = inside[:, None] & (i < SIZE)[None, :]
    at = ((c // after).to(tl.int64) * (SIZE * after) + c % after)[:, None] + i[None, :] * after
    # rows of fibers are multiplied from the right: v K' is K v, and u K is K' u
    forward, backward = load_lifted(transposed, i, SIZE), load_lifted(matrix, i, SIZE)
    x, y = tl.load(X + at, mask=wanted, other=0.0), tl.load(Y + at, mask=wanted, other=0.0)
    x_sum, y_sum = tl.sum(x.to(tl.float64), axis=1), tl.sum(y.to(tl.float64), axis=1)
    xp, yp = (raise_to(x, phi_rest, x_factor, NATIVE),), (raise_to(y, psi_rest, y_factor, NATIVE),)
    yp = chosen(x_sum > 0, yp, zeros_like(yp))
    u = start(log_u, at, wanted, xp, forward, offset_u, first, phi, phi_rest, WARM, EXACT, NATIVE, PRECISION)
    u = iterate(u, xp, yp, forward, backward, phi, psi, phi_rest, psi_rest, scalings, tol, check_every,
                CHECKS, EXACT, NATIVE, PRECISION)  # fmt: skip
    v = divide(yp, product(u, backward, PRECISION), psi, psi_rest, EXACT, NATIVE)
    kv = product(v, forward, PRECISION)
    u = divide(xp, kv, phi, phi_rest, EXACT, NATIVE)
    ku = product(u, backward, PRECISION)
    phi_sum, entropy_u = data_side(u, kv, NATIVE)
    moved, psi_sum, entropy_v, against = model_side((y,), v, ku, NATIVE)
    total, fine, least = judge(v, kv, xp)
    good = clear(total, fine, least, units, SIZE) & (most_hidden(u, xp, kv) <= phi_sum * NEGLIGIBLE)
    total, fine, least = judge(u, ku, yp)
    good = good & clear(total, fine, least, units, SIZE) & (most_hidden(v, yp, ku) <= phi_sum * NEGLIGIBLE)
    good = good | (x_sum == 0)
    tl.store(sound + c, good, mask=inside)
    written = wanted & good[:, None]
    if KEEP:
        tl.store(log_u + at, natural_log(u[0], offset_u, NATIVE), mask=written)
    old = tl.load(marginal + at, mask=wanted, other=0.0)
    tl.store(marginal + at, old + share * moved[0], mask=written)
    store_terms(terms, c, columns, inside, x_sum, y_sum, phi_sum, psi_sum, entropy_u, entropy_v, against,
                offset_u, offset_v, reg, alpha, beta, BALANCED)  # fmt: skip
