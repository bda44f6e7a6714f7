"""Transport of fibers that stay in registers from the first scaling to the last, for any type of kernel."""

# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from gwntf.backends.torch.fused.entries import (
    add_to_marginal,
    check_entries,
    converged,
    data_sums,
    divide,
    is_accurate,
    load_scalings,
    marginal_change,
    model_sums,
    raise_fibers,
    select,
    store_accurate,
    store_logs,
    store_terms,
    zero_unless,
)
from gwntf.backends.torch.fused.fibers import constant_fibers, load_fibers, locate, restrict


@triton.jit
def iterate(u, xp, yp, kernel, product, numbers, config):
    """Do all scalings but the last; a converged column keeps its last U before the test."""
    done = tl.sum(xp[0], axis=1) < 0
    iteration, going = 1, 1
    while (iteration < numbers.max_iter) & (going > 0):
        v = divide(yp, product(u, kernel, True, config), numbers.model, config)
        kv = product(v, kernel, False, config)
        now = divide(xp, kv, numbers.data, config)
        if config.checks:
            if iteration % numbers.check_every == 0:
                change, mass = marginal_change(u, now, kv)
                done = done | converged(change, mass, numbers.tol)
                going = tl.sum(1 - done.to(tl.int32))
            u = select(done, u, now)
        else:
            u = now
        iteration += 1
    return u


@triton.jit
def solve(c, inside, arrays, kernel, product, numbers, config):
    """Transport the fibers c of X to those of Y; for inaccurate ones only the flag and the terms are stored.

    ``product(fibers, kernel, transposed, config)`` is K V, or K' U if transposed. After the last scaling,
    arrays are processed one at a time, because few of them fit in registers.
    """
    where = locate(c, inside, arrays.after, config.size)
    xp, x_sum = raise_fibers(load_fibers(arrays.data, where, config), numbers.data, config)
    y = load_fibers(arrays.model, where, config)
    yp, y_sum = raise_fibers(y, numbers.model, config)
    yp = zero_unless(x_sum > 0, yp)
    if config.warm:
        u = load_scalings(arrays.log_u, where, numbers.data.offset, config)
    else:
        v = constant_fibers(numbers.initial_v, where, xp[0], config)
        u = divide(xp, product(v, kernel, False, config), numbers.data, config)
    u = iterate(u, xp, yp, kernel, product, numbers, config)
    v = divide(yp, product(u, kernel, True, config), numbers.model, config)
    kv = product(v, kernel, False, config)
    u = divide(xp, kv, numbers.data, config)
    of_data = data_sums(u, kv, config)
    accurate = is_accurate(check_entries(v, kv, xp, u), of_data[0], numbers.units, config.size)
    ku = product(u, kernel, True, config)
    accurate = accurate & is_accurate(check_entries(u, ku, yp, v), of_data[0], numbers.units, config.size)
    written = restrict(where, store_accurate(arrays, c, inside, accurate, x_sum))
    store_logs(arrays, written, u, numbers.data.offset, config)
    if config.bits > 0:  # loading Y again costs less than registers during the loop
        y = load_fibers(arrays.model, where, config)
    psi, of_model = model_sums(y, v, ku, config)
    add_to_marginal(arrays, written, psi, numbers.share, config)
    store_terms(arrays, c, inside, x_sum, y_sum, of_data, of_model, numbers, config)
