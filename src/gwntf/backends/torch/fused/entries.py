"""What the fused transports do to the entries of fibers in registers, and how a column is judged.

Fibers are tuples of blocks (fibers, parts) as in `fibers`; they may be a stretch of longer ones. The arithmetic is that
of `transport.scaling` in plain numbers, and columns are judged by the rules of `transport.domains`.
"""

import triton
import triton.language as tl

from gwntf.backends.torch.fused.arithmetic import (
    LOG_2,
    divide_by_power,
    held,
    hidden,
    mass_times_log2,
    natural_log,
    positive,
    raise_to,
    times_tiny,
)
from gwntf.backends.torch.fused.fibers import is_place, load_fibers, store_fibers


@triton.jit
def divide(raised, product, power, rest, EXACT: tl.constexpr, NATIVE: tl.constexpr):
    """Return raised / product^power."""
    moved = ()
    for k in tl.static_range(len(raised)):
        moved = moved + (divide_by_power(raised[k], product[k], power, rest, EXACT, NATIVE),)
    return moved


@triton.jit
def chosen(condition, fibers, others):
    """Fibers where a condition on columns holds, else others."""
    out = ()
    for k in tl.static_range(len(fibers)):
        out = out + (tl.where(condition[:, None], fibers[k], others[k]),)
    return out


@triton.jit
def zeros_like(fibers):
    """Fibers of zeros."""
    out = ()
    for _ in tl.static_range(len(fibers)):
        out = out + (tl.zeros_like(fibers[0]),)
    return out


@triton.jit
def load_raised(source, base, step, inside, rest, factor, size,
                BITS: tl.constexpr, PARTS: tl.constexpr, WIDE: tl.constexpr, NATIVE: tl.constexpr):  # fmt: skip
    """Read fibers, raise them to the power 1 - rest, and sum them as they were."""
    x = load_fibers(source, base, step, inside, size, BITS, PARTS, WIDE)
    total = x[0].to(tl.float64)
    raised = (raise_to(x[0], rest, factor, NATIVE),)
    for k in tl.static_range(1, len(x)):
        total += x[k].to(tl.float64)
        raised = raised + (raise_to(x[k], rest, factor, NATIVE),)
    return raised, tl.sum(total, axis=1)


@triton.jit
def load_start(log_u, base, step, inside, offset, size,
               BITS: tl.constexpr, PARTS: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    """U of the last call."""
    logs = load_fibers(log_u, base, step, inside, size, BITS, PARTS, WIDE)
    u = ()
    for k in tl.static_range(len(logs)):
        u = u + (tl.where(is_place(k, size, BITS, PARTS), tl.exp(logs[k] - offset), 0.0),)
    return u


@triton.jit
def even_start(like, first, size, BITS: tl.constexpr, PARTS: tl.constexpr):
    """V that is the same at every place."""
    v = ()
    for k in tl.static_range(2**BITS):
        v = v + (tl.where(is_place(k, size, BITS, PARTS), first, tl.zeros_like(like)),)
    return v


@triton.jit
def move(last, now, kv):
    """Return by how much the data marginal moved, and its mass."""
    moved, mass = tl.zeros_like(kv[0]), tl.zeros_like(kv[0])
    for k in tl.static_range(len(kv)):
        moved += tl.abs(now[k] - last[k]) * kv[k]
        mass += now[k] * kv[k]
    return tl.sum(moved, axis=1), tl.sum(mass, axis=1)


@triton.jit
def settled(moved, mass, tol):
    """Whether the data marginal moved by at most `tol` of its mass."""
    return (moved > tol * mass) == 0


@triton.jit
def judge(given, product, counted):
    """Sum of the given entries, whether all products are held, and the least of those that count."""
    total, fine = given[0], held(product[0])
    least = tl.where(counted[0] == 0.0, float("inf"), product[0])
    for k in tl.static_range(1, len(given)):
        total += given[k]
        fine = fine & held(product[k])
        least = tl.minimum(least, tl.where(counted[k] == 0.0, float("inf"), product[k]))
    return tl.sum(total, axis=1), tl.min(fine.to(tl.int32), axis=1), tl.min(least, axis=1)


@triton.jit
def clear(total, fine, least, units, size):
    """Whether a column was held and its products are well above the smallest normal number."""
    return held(total) & (fine > 0) & (least > times_tiny(tl.maximum(units * total, size)))


@triton.jit
def most_hidden(given, counted, product):
    """Sum of `hidden` over the entries of every column."""
    most = hidden(given[0], counted[0], product[0])
    for k in tl.static_range(1, len(given)):
        most += hidden(given[k], counted[k], product[k])
    return tl.sum(most, axis=1)


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
def store_logs(log_u, base, step, written, u, offset, size,
               BITS: tl.constexpr, PARTS: tl.constexpr, NATIVE: tl.constexpr):  # fmt: skip
    """Keep log U for the next call."""
    logs = ()
    for k in tl.static_range(len(u)):
        logs = logs + (natural_log(u[k], offset, NATIVE),)
    store_fibers(log_u, base, step, written, logs, size, BITS, PARTS)


@triton.jit
def add_to(marginal, base, step, written, psi, share, size,
           BITS: tl.constexpr, PARTS: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    """Add a share of Psi to the marginal."""
    old = load_fibers(marginal, base, step, written, size, BITS, PARTS, WIDE)
    target = ()
    for k in tl.static_range(len(old)):
        target = target + (old[k] + share * psi[k],)
    store_fibers(marginal, base, step, written, target, size, BITS, PARTS)


@triton.jit
def store_terms(terms, c, columns, inside, x_sum, y_sum, phi_sum, psi_sum, entropy_u, entropy_v, against,
                offset_u, offset_v, reg, alpha, beta, BALANCED: tl.constexpr):  # fmt: skip
    """Write the three terms of W."""
    entropy = entropy_u * LOG_2 + offset_u * phi_sum
    tl.store(terms + c, reg * (entropy + entropy_v * LOG_2 + offset_v * psi_sum - psi_sum), mask=inside)
    data = x_sum * 0 if BALANCED else alpha * (x_sum - phi_sum) - reg * entropy
    tl.store(terms + columns + c, data, mask=inside)
    tl.store(terms + 2 * columns + c, beta * (against * LOG_2 - psi_sum + y_sum), mask=inside)
