"""Transport of long fibers under K_ij = scale ratio^|i-j|, chunk by chunk, with a few operations per entry.

U, V, x^phi and y^psi of a block of fibers are in scratch memory, as one record for each chunk: the entries, each a
block (fibers, parts), and one more block, the carries into the parts from one side. V is computed from the first chunk
to the last, so that the carries from before are available and stored with it; U is computed from the last chunk to the
first and stored with the carries from behind. Each half-step thus reads one of its two carries, computes the other one,
and passes over the fiber once.
"""

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
    store_accurate,
    store_logs,
    store_terms,
    zero_unless,
)
from gwntf.backends.torch.fused.fibers import (
    columns_at,
    constant_fibers,
    load_fibers,
    locate,
    locate_chunk,
    restrict,
    stack,
    unstack,
)
from gwntf.backends.torch.fused.recursion import apply, chunked, sum_before, sum_behind


@triton.jit
def record(array, chunk, config):
    """Return pointers to the entries of a chunk, (fibers, parts, 2^bits), and to the carries into its parts."""
    count: tl.constexpr = config.block * config.parts
    lane = tl.arange(0, config.block)[:, None] * config.parts + tl.arange(0, config.parts)[None, :]
    start = array + chunk * (count * (2**config.bits + 1))
    entries = lane[:, :, None] + tl.arange(0, 2**config.bits)[None, None, :] * count
    return start[:, :, None] + entries, start + (lane + count * 2**config.bits)


@triton.jit
def load_entries(array, chunk, config):
    """Load the entries of a chunk."""
    return unstack(tl.load(record(array, chunk, config)[0]), config.bits)


@triton.jit
def store_entries(array, chunk, entries, config):
    """Store the entries of a chunk."""
    tl.store(record(array, chunk, config)[0], stack(entries, config.bits))


@triton.jit
def into_parts(carry, kernel, FORWARD: tl.constexpr):
    """Return the contribution of a carry to each part of a chunk, from before (FORWARD) or from behind."""
    return carry[:, None] * (kernel.from_start if FORWARD else kernel.from_end)


@triton.jit
def past_chunk(carry, v, kernel, FORWARD: tl.constexpr):
    """Return the carry into the next chunk (FORWARD), or into the one before."""
    total = sum_before(v, kernel.ratio) if FORWARD else sum_behind(v, kernel.ratio)
    own = total * (kernel.from_end if FORWARD else kernel.from_start)
    return tl.sum(own, axis=1) + kernel.chunk_ratio * carry


@triton.jit
def product(given, chunk, carry, kernel, FORWARD: tl.constexpr, config):
    """Return a chunk of U or V, its product with the kernel, and the carry into the next chunk."""
    v, stored = load_entries(given, chunk, config), tl.load(record(given, chunk, config)[1])
    computed = into_parts(carry, kernel, FORWARD)
    if FORWARD:
        kv = apply(v, kernel, computed, stored, config.parts)
    else:
        kv = apply(v, kernel, stored, computed, config.parts)
    return v, kv, past_chunk(carry, v, kernel, FORWARD)


@triton.jit
def store_chunk(array, chunk, v, carry, kernel, FORWARD: tl.constexpr, config):
    """Store a chunk of U or V with the carries into its parts, and return the carry into the next chunk."""
    store_entries(array, chunk, v, config)
    tl.store(record(array, chunk, config)[1], into_parts(carry, kernel, FORWARD))
    return past_chunk(carry, v, kernel, FORWARD)


@triton.jit
def zeros(kernel, config):
    """Return a zero for every fiber: carries at the ends of fibers, and sums."""
    return tl.full((config.block,), 0, kernel.part_ratio.dtype)


@triton.jit
def add(sums, others):
    """Return two tuples of sums added up."""
    out = ()
    for k in tl.static_range(len(sums)):
        out = out + (sums[k] + others[k],)
    return out


@triton.jit
def merge(checked, other):
    """Return `check_entries` of two chunks together."""
    fine, least = tl.minimum(checked[1], other[1]), tl.minimum(checked[2], other[2])
    return checked[0] + other[0], fine, least, checked[3] + other[3]


@triton.jit
def no_entries(kernel, config):
    """Return `check_entries` of no entries."""
    none = zeros(kernel, config)
    return none, tl.full((config.block,), 1, tl.int32), none + float("inf"), none


@triton.jit
def update(given, raised, out, chunk, carries, kernel, side, FORWARD: tl.constexpr, config):
    """Compute and store one chunk of V going forward, or of U going backward.

    Returns
    -------
    v, kv, entries, now, carries
        The given chunk, its product with the kernel, the power that is divided, the result, and the next carries.
    """
    v, kv, carry = product(given, chunk, carries[0], kernel, FORWARD, config)
    entries = load_entries(raised, chunk, config)
    now = divide(entries, kv, side, config)
    return v, kv, entries, now, (carry, store_chunk(out, chunk, now, carries[1], kernel, FORWARD, config))


@triton.jit
def half_step(given, raised, out, last, checking, chunks, kernel, side, FORWARD: tl.constexpr,
              CHECKS: tl.constexpr, config):  # fmt: skip
    """Compute V from U going forward, or U from V going backward; if checking, return `marginal_change`, else zeros."""
    tl.debug_barrier()
    carries = (zeros(kernel, config), zeros(kernel, config))
    change, mass = zeros(kernel, config), zeros(kernel, config)
    for i in range(chunks):
        chunk = i if FORWARD else chunks - 1 - i
        _, kv, _, now, carries = update(given, raised, out, chunk, carries, kernel, side, FORWARD, config)
        if CHECKS:  # noqa: SIM102  (evaluated at compile time)
            if checking:
                by, of = marginal_change(load_entries(last, chunk, config), now, kv)
                change += by
                mass += of
    return change, mass


@triton.jit
def raise_all(source, out, where, counted, chunks, side, config):
    """Store fibers raised to a power, zero unless the column counts, and return the sum of every fiber."""
    total = tl.full((config.block,), 0, tl.float64)
    for chunk in range(chunks):
        x = load_fibers(source, locate_chunk(where, chunk, config), config)
        raised, part = raise_fibers(x, side, config)
        store_entries(out, chunk, zero_unless(counted, raised), config)
        total += part
    return total


@triton.jit
def start(arrays, u, v, x_raised, where, chunks, kernel, numbers, config):
    """Store U from the previous call, or U computed from a constant V."""
    carry = zeros(kernel, config)
    for i in range(chunks):
        chunk = chunks - 1 - i if config.warm else i
        here = locate_chunk(where, chunk, config)
        if config.warm:
            given = load_scalings(arrays.log_u, here, numbers.data.offset, config)
            carry = store_chunk(u, chunk, given, carry, kernel, False, config)
        else:
            like = tl.full((config.block, config.parts), 0, kernel.part_ratio.dtype)
            given = constant_fibers(numbers.initial_v, here, like, config)
            carry = store_chunk(v, chunk, given, carry, kernel, True, config)
    if not config.warm:
        half_step(v, x_raised, u, u, False, chunks, kernel, numbers.data, False, False, config)


@triton.jit
def iterate(u, v, x_raised, y_raised, other, chunks, kernel, numbers, config):
    """Do all scalings but the last; return pointers to U of each column.

    With checks, U alternates between two arrays with a distance of `other`; a converged column stays in one of them.
    """
    side = tl.full((config.block, 1), 0, tl.int32)
    done = tl.full((config.block,), 0, tl.int32) > 0
    iteration, going = 1, 1
    while (iteration < numbers.max_iter) & (going > 0):
        checking = config.checks and iteration % numbers.check_every == 0
        half_step(u + side, y_raised, v, v, False, chunks, kernel, numbers.model, True, False, config)
        change, mass = half_step(v, x_raised, u + (other - side), u + side, checking, chunks, kernel, numbers.data,
                                 False, config.checks, config)  # fmt: skip
        if config.checks:
            if checking:
                done = done | converged(change, mass, numbers.tol)
                going = tl.sum(1 - done.to(tl.int32))
            side = tl.where(done[:, None], side, other - side)
        iteration += 1
    return u + side


@triton.jit
def finish_data(v, x_raised, u, chunks, kernel, side, config):
    """Compute the last U; return `data_sums` and `check_entries` of all chunks."""
    tl.debug_barrier()
    carries = (zeros(kernel, config), zeros(kernel, config))
    none = tl.full((config.block,), 0, tl.float64)
    sums, checked = (none, none), no_entries(kernel, config)
    for i in range(chunks):
        chunk = chunks - 1 - i
        given, kv, raised, now, carries = update(v, x_raised, u, chunk, carries, kernel, side, False, config)
        sums = add(sums, data_sums(now, kv, config))
        checked = merge(checked, check_entries(given, kv, raised, now))
    return sums, checked


@triton.jit
def finish_model(u, v, y_raised, psi, model, where, chunks, kernel, config):
    """Store Psi; return `model_sums` and `check_entries` of all chunks."""
    tl.debug_barrier()
    carry, none = zeros(kernel, config), tl.full((config.block,), 0, tl.float64)
    sums, checked = (none, none, none), no_entries(kernel, config)
    for chunk in range(chunks):
        given, ku, carry = product(u, chunk, carry, kernel, True, config)
        scaled = load_entries(v, chunk, config)
        checked = merge(checked, check_entries(given, ku, load_entries(y_raised, chunk, config), scaled))
        y = load_fibers(model, locate_chunk(where, chunk, config), config)
        moved, part = model_sums(y, scaled, ku, config)
        store_entries(psi, chunk, moved, config)
        sums = add(sums, part)
    return sums, checked


@triton.jit
def write_back(arrays, u, psi, where, chunks, numbers, config):
    """Add Psi to the marginal and store log U."""
    tl.debug_barrier()
    for chunk in range(chunks):
        here = locate_chunk(where, chunk, config)
        add_to_marginal(arrays, here, load_entries(psi, chunk, config), numbers.share, config)
        store_logs(arrays, here, load_entries(u, chunk, config), numbers.data.offset, config)
    tl.debug_barrier()


@triton.jit
def solve(c, inside, scratch, arrays, size, kernel, numbers, config):
    """Transport the fibers c of X to those of Y; for inaccurate ones only the flag and the terms are stored."""
    where = locate(c, inside, arrays.after, size)
    chunks = tl.cdiv(size, config.parts * 2**config.bits)
    array = chunks * (config.block * config.parts * (2**config.bits + 1))
    x_raised = scratch + tl.zeros((1, 1), tl.int32)
    y_raised, v, u = x_raised + array, x_raised + 2 * array, x_raised + 3 * array
    x_sum = raise_all(arrays.data, x_raised, where, inside, chunks, numbers.data, config)
    y_sum = raise_all(arrays.model, y_raised, where, x_sum > 0, chunks, numbers.model, config)
    start(arrays, u, v, x_raised, where, chunks, kernel, numbers, config)
    other = array if config.checks else 0
    u = iterate(u, v, x_raised, y_raised, other, chunks, kernel, numbers, config)
    half_step(u, y_raised, v, v, False, chunks, kernel, numbers.model, True, False, config)
    of_data, checked = finish_data(v, x_raised, u, chunks, kernel, numbers.data, config)
    accurate = is_accurate(checked, of_data[0], numbers.units, size)
    psi = x_raised  # no longer needed
    of_model, checked = finish_model(u, v, y_raised, psi, arrays.model, where, chunks, kernel, config)
    accurate = accurate & is_accurate(checked, of_data[0], numbers.units, size)
    written = restrict(where, store_accurate(arrays, c, inside, accurate, x_sum))
    write_back(arrays, u, psi, written, chunks, numbers, config)
    store_terms(arrays, c, inside, x_sum, y_sum, of_data, of_model, numbers, config)


@triton.jit
def transport(indices, count, scratch, room, arrays, size, ratio, scale, numbers, config: tl.constexpr):
    """Transport fibers of X to those of Y: all of them, or the first `count` of a list of indices.

    A program has `room` numbers of scratch memory and loops over blocks of fibers.
    """
    own = scratch + tl.program_id(0).to(tl.int64) * room
    kernel = chunked(ratio, scale, config.bits, config.parts, config.wide)
    left = tl.program_id(0) * config.block
    end = arrays.columns if indices is None else tl.load(count)
    while left < end:
        c, inside = columns_at(indices, left, end, config)
        solve(c, inside, own, arrays, size, kernel, numbers, config)
        left += tl.num_programs(0) * config.block
