"""Operations on the entries of fibers in registers, from the powers of X and Y to the terms of W.

Fibers are tuples of blocks (fibers, parts) as in `fibers`; they may be one chunk of longer ones. The arithmetic is that
of `transport.scaling` in plain numbers, and a column is accurate by the rules of `transport.domains`.
"""

import triton
import triton.language as tl

from gwntf.backends.torch.fused.arithmetic import (
    LOG_2,
    divide_by_power,
    flushed_mass,
    in_range,
    is_negligible,
    mass_times_log2,
    natural_log,
    positive,
    raise_to_power,
    times_tiny,
)
from gwntf.backends.torch.fused.fibers import load_fibers, store_fibers


@triton.jit
def raise_fibers(x, side, config):
    """Return factor x^power, and the sum of every fiber of x."""
    total = x[0].to(tl.float64)
    raised = (raise_to_power(x[0], side, config),)
    for k in tl.static_range(1, len(x)):
        total += x[k].to(tl.float64)
        raised = raised + (raise_to_power(x[k], side, config),)
    return raised, tl.sum(total, axis=1)


@triton.jit
def load_scalings(log_u, where, offset, config):
    """Load U from the previous call."""
    logs = load_fibers(log_u, where, config, float("-inf"))
    u = ()
    for k in tl.static_range(len(logs)):
        u = u + (tl.exp(logs[k] - offset),)
    return u


@triton.jit
def divide(raised, product, side, config):
    """Return raised / product^power: one half of a scaling."""
    divided = ()
    for k in tl.static_range(len(raised)):
        divided = divided + (divide_by_power(raised[k], product[k], side, config),)
    return divided


@triton.jit
def zero_unless(condition, fibers):
    """Return fibers where a condition on columns holds, else zeros."""
    out = ()
    for k in tl.static_range(len(fibers)):
        out = out + (tl.where(condition[:, None], fibers[k], tl.zeros_like(fibers[k])),)
    return out


@triton.jit
def select(condition, fibers, others):
    """Return fibers where a condition on columns holds, else others."""
    out = ()
    for k in tl.static_range(len(fibers)):
        out = out + (tl.where(condition[:, None], fibers[k], others[k]),)
    return out


@triton.jit
def marginal_change(last, now, kv):
    """Return the change of the data marginal in the L1 norm, and its mass."""
    change, mass = tl.zeros_like(kv[0]), tl.zeros_like(kv[0])
    for k in tl.static_range(len(kv)):
        change += tl.abs(now[k] - last[k]) * kv[k]
        mass += now[k] * kv[k]
    return tl.sum(change, axis=1), tl.sum(mass, axis=1)


@triton.jit
def converged(change, mass, tol):
    """Whether the data marginal changed by at most `tol` times its mass; true for NaN."""
    return (change > tol * mass) == 0


@triton.jit
def check_entries(given, product, counted, scaled):
    """Return what `is_accurate` needs for one half of a scaling, for every column.

    Parameters
    ----------
    given, product : fibers
        V and K V, or U and K' U.
    counted, scaled : fibers
        x^phi and the U computed from it, or y^psi and V.

    Returns
    -------
    total, fine, least, flushed : blocks (fibers,)
        Sum of `given`; whether all products are in range; the smallest product at a nonzero entry; bound on the mass of
        subnormal entries of `scaled`.
    """
    total, fine = given[0], in_range(product[0])
    least = tl.where(counted[0] == 0.0, float("inf"), product[0])
    flushed = flushed_mass(scaled[0], counted[0], product[0])
    for k in tl.static_range(1, len(given)):
        total += given[k]
        fine = fine & in_range(product[k])
        least = tl.minimum(least, tl.where(counted[k] == 0.0, float("inf"), product[k]))
        flushed += flushed_mass(scaled[k], counted[k], product[k])
    return (
        tl.sum(total, axis=1),
        tl.min(fine.to(tl.int32), axis=1),
        tl.min(least, axis=1),
        tl.sum(flushed, axis=1),
    )


@triton.jit
def is_accurate(checked, mass, units, size):
    """Whether a column stayed in range and its products are well above the smallest normal number."""
    total, fine, least, flushed = checked
    clear = in_range(total) & (fine > 0) & (least > times_tiny(tl.maximum(units * total, size)))
    return clear & is_negligible(flushed, mass)


@triton.jit
def data_sums(u, kv, config):
    """Return the sums of Phi and of Phi log2 U."""
    mass = (u[0] * kv[0]).to(tl.float64)
    entropy = mass_times_log2(u[0] * kv[0], u[0], config)
    for k in tl.static_range(1, len(u)):
        mass += (u[k] * kv[k]).to(tl.float64)
        entropy += mass_times_log2(u[k] * kv[k], u[k], config)
    return tl.sum(mass, axis=1), tl.sum(entropy, axis=1)


@triton.jit
def model_sums(y, v, ku, config):
    """Return Psi, and the sums of Psi, Psi log2 V and Psi log2(Psi / y)."""
    psi = (v[0] * ku[0],)
    mass = psi[0].to(tl.float64)
    entropy = mass_times_log2(psi[0], v[0], config)
    divergence = mass_times_log2(psi[0], psi[0] / positive(y[0]), config)
    for k in tl.static_range(1, len(v)):
        psi = psi + (v[k] * ku[k],)
        mass += psi[k].to(tl.float64)
        entropy += mass_times_log2(psi[k], v[k], config)
        divergence += mass_times_log2(psi[k], psi[k] / positive(y[k]), config)
    return psi, (tl.sum(mass, axis=1), tl.sum(entropy, axis=1), tl.sum(divergence, axis=1))


@triton.jit
def store_accurate(arrays, c, inside, accurate, x_sum):
    """Store and return which columns are accurate; empty columns are."""
    accurate = accurate | (x_sum == 0)
    tl.store(arrays.accurate + c, accurate, mask=inside)
    return accurate


@triton.jit
def store_logs(arrays, where, u, offset, config):
    """Store log U for the next call, if requested."""
    if config.keep:
        logs = ()
        for k in tl.static_range(len(u)):
            logs = logs + (natural_log(u[k], offset, config),)
        store_fibers(arrays.log_u, where, logs, config)


@triton.jit
def add_to_marginal(arrays, where, psi, share, config):
    """Add a share of Psi to the marginal."""
    old = load_fibers(arrays.marginal, where, config)
    new = ()
    for k in tl.static_range(len(old)):
        new = new + (old[k] + share * psi[k],)
    store_fibers(arrays.marginal, where, new, config)


@triton.jit
def store_terms(arrays, c, inside, x_sum, y_sum, of_data, of_model, numbers, config):
    """Store the three terms of W, given `data_sums` and `model_sums`."""
    phi_sum, entropy_u = of_data
    psi_sum, entropy_v, divergence = of_model
    terms = arrays.terms + c
    entropy = entropy_u * LOG_2 + numbers.data.offset * phi_sum
    plan = entropy + entropy_v * LOG_2 + numbers.model.offset * psi_sum - psi_sum
    tl.store(terms, numbers.reg * plan, mask=inside)
    data = x_sum * 0 if config.balanced else numbers.alpha * (x_sum - phi_sum) - numbers.reg * entropy
    tl.store(terms + arrays.columns, data, mask=inside)
    tl.store(terms + 2 * arrays.columns, numbers.beta * (divergence * LOG_2 - psi_sum + y_sum), mask=inside)
