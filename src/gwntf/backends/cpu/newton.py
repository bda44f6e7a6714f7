"""Shares of given parts by Newton steps, one sample after the other: the compiled code of `unmixing.line`.

Names are those of `docs/mathematics.md`, "Unmixing": u = exp(f / reg) and v = exp(g / reg) scale the kernel K, whose
products are ku = K u and kv = K v; Phi = u kv and Psi = v ku are the marginals of the plan, y = H w is the model.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gwntf.backends.cpu.cache import cached_njit
from gwntf.backends.cpu.sources import digest_of_sources
from gwntf.core import FloatArray

_STRICT: dict[str, Any] = {"error_model": "numpy", "nogil": True}

_RADIUS = 40.0
"""Longest Newton step of g, in multiples of reg."""

_FIRST_SCALINGS = 4
"""Scalings, each with an update of the shares, before the first Newton step."""

_FIRST_TRY, _RADIUS_AGAIN, _COARSE_STEPS, _COARSE_GAP = 20, 10.0, 12, 1e-2
"""Newton steps after which a sample is solved again from larger values of reg downwards, and limits of these."""

_COARSE = (64.0, 16.0, 4.0, 2.0)
"""These values of reg, in multiples of the given one."""

_TINY = 1e-290
_LEAST_SHARE = 1e-12
"""Fraction of a share that a step leaves at least, so that the share can grow again."""


class Line(NamedTuple):
    """The kernel exp(-|s - t| / (scale reg) - 1) between the places of an axis, and its tridiagonal inverse."""

    steps: FloatArray  # (I,) array: distance from the previous place over scale reg; the first is infinite
    decay: FloatArray  # (I,) array: exp(-steps)
    diagonal: FloatArray  # (I,) array: diagonal of the inverse
    below: FloatArray  # (I,) array: entries of the inverse to the left of the diagonal


class Work(NamedTuple):
    """Arrays for one sample; after `newton` they have the values at its end."""

    f: FloatArray  # (I,)
    g: FloatArray
    u: FloatArray
    v: FloatArray
    ku: FloatArray
    kv: FloatArray
    y: FloatArray
    e: FloatArray  # exp(-g / b)
    d1: FloatArray  # Diagonals of the Newton system
    d2: FloatArray
    weight: FloatArray  # Reciprocal curvature of g
    sides: FloatArray  # (I, 2, R + 1): right-hand sides, then solutions
    blocks: FloatArray  # (I, 3): inverse diagonal blocks
    slopes: FloatArray  # (I, R + 1): change of g, and its derivatives in w
    curvature: FloatArray  # (R, R): Hessian of F in w
    gradient: FloatArray  # (R,): derivative of F in w
    step: FloatArray  # (R,)
    linear: FloatArray  # (R,)
    lowest: FloatArray  # (R,)


class Details(NamedTuple):
    """Arrays of every sample at the solution, or empty ones."""

    u: FloatArray  # (n, I)
    v: FloatArray
    ku: FloatArray
    kv: FloatArray
    slopes: FloatArray  # (n, R, I): derivatives of f in w
    curvature: FloatArray  # (n, R, R)
    gradient: FloatArray  # (n, R)


@njit(**_STRICT)
def multiply_kernel(v, decay, out):
    """Write K v; both passes of the recursion."""
    first, total = math.exp(-1.0), 0.0
    for i in range(len(v)):
        total = total * decay[i] + v[i]
        out[i] = total
    total = 0.0
    for i in range(len(v) - 1, -1, -1):
        out[i] = (out[i] + total) * first
        total = (total + v[i]) * decay[i]


@njit(**_STRICT)
def sum_sides(v, decay, left, right):
    """Write e K v, the sum over places up to each one and that over places from each one on separately."""
    total = 0.0
    for i in range(len(v)):
        total = total * decay[i] + v[i]
        left[i] = total
    total = 0.0
    for i in range(len(v) - 1, -1, -1):
        total += v[i]
        right[i] = total
        total *= decay[i]


@njit(**_STRICT)
def fill_line(line):
    """Compute decay and inverse from the steps."""
    first, n = math.exp(-1.0), len(line.steps)
    for i in range(n):
        line.decay[i] = math.exp(-line.steps[i])
    for i in range(n):
        total = 1.0
        if i > 0:
            rest = -math.expm1(-2.0 * line.steps[i])
            total += line.decay[i] ** 2 / rest
            line.below[i] = -line.decay[i] / rest / first
        if i < n - 1:
            total += line.decay[i + 1] ** 2 / -math.expm1(-2.0 * line.steps[i + 1])
        line.diagonal[i] = total / first


@njit(**_STRICT)
def solve_blocks(line, work):
    """Solve the block tridiagonal Newton system in place, by elimination from the first place to the last and back."""
    d1, d2, kv, ku, sides, blocks = work.d1, work.d2, work.kv, work.ku, work.sides, work.blocks
    n, _, count = sides.shape
    for i in range(n):
        a, b, d = d1[i], kv[i] * ku[i] * line.diagonal[i], d2[i]
        if i > 0:
            p, q = kv[i] * line.below[i] * ku[i - 1], ku[i] * line.below[i] * kv[i - 1]
            first, mixed, last = blocks[i - 1, 0], blocks[i - 1, 1], blocks[i - 1, 2]
            a -= p * last * p
            b -= p * mixed * q
            d -= q * first * q
            for k in range(count):
                z0, z1 = sides[i - 1, 0, k], sides[i - 1, 1, k]
                sides[i, 0, k] -= p * (mixed * z0 + last * z1)
                sides[i, 1, k] -= q * (first * z0 + mixed * z1)
        scale = 1.0 / (a * d - b * b)
        blocks[i, 0], blocks[i, 1], blocks[i, 2] = d * scale, -b * scale, a * scale
    for i in range(n - 1, -1, -1):
        p, q = 0.0, 0.0
        if i < n - 1:
            p, q = kv[i + 1] * line.below[i + 1] * ku[i], ku[i + 1] * line.below[i + 1] * kv[i]
        first, mixed, last = blocks[i, 0], blocks[i, 1], blocks[i, 2]
        for k in range(count):
            z0, z1 = sides[i, 0, k], sides[i, 1, k]
            if i < n - 1:
                z0 -= q * sides[i + 1, 1, k]
                z1 -= p * sides[i + 1, 0, k]
            sides[i, 0, k] = first * z0 + mixed * z1
            sides[i, 1, k] = mixed * z0 + last * z1


@njit(**_STRICT)
def minimise_quadratic(matrix, linear, lowest, x):
    """Minimise x' M x / 2 + c' x over x >= lowest, by coordinate descent."""
    count = len(linear)
    for _ in range(500):
        largest, size = 0.0, 1e-300
        for k in range(count):
            total = linear[k]
            for m in range(count):
                total += matrix[k, m] * x[m]
            change = max(lowest[k] - x[k], -total / max(matrix[k, k], 1e-300))
            x[k] += change
            largest, size = max(largest, abs(change)), max(size, abs(x[k]))
        if largest < 1e-10 * size:
            break


@njit(**_STRICT)
def set_model(parts, w, y):
    """Write y = H w."""
    for i in range(len(y)):
        total = 0.0
        for k in range(len(w)):
            total += parts[i, k] * w[k]
        y[i] = total


@njit(**_STRICT)
def scale_data(x, line, reg, price, work):
    """Write f, and with it u and ku, given g."""
    f, u, v = work.f, work.u, work.v
    power = 1.0 / (1.0 / price + 1.0 / reg)
    for i in range(len(x)):
        v[i] = math.exp(work.g[i] / reg)
    multiply_kernel(v, line.decay, work.kv)
    for i in range(len(x)):
        f[i], u[i] = 0.0, 0.0
        if x[i] > 0:
            f[i] = power * math.log(x[i] / work.kv[i])
            u[i] = math.exp(f[i] / reg)
    multiply_kernel(u, line.decay, work.ku)


@njit(**_STRICT)
def scale_model(reg, price, work):
    """Write g, given ku and y."""
    power = 1.0 / (1.0 / price + 1.0 / reg)
    for j in range(len(work.g)):
        work.g[j] = power * math.log(work.y[j] / work.ku[j]) if work.y[j] > 0 else -1e300


@njit(**_STRICT)
def multiply_shares(parts, masses, price, w, work):
    """Multiply the shares by the ratio of the majorizer, which lowers F, and write the new model."""
    for j in range(len(work.g)):
        work.e[j] = math.exp(-work.g[j] / price)
    for k in range(len(w)):
        total = 0.0
        for j in range(len(work.g)):
            total += parts[j, k] * work.e[j]
        w[k] *= total / masses[k]
    set_model(parts, w, work.y)


@njit(**_STRICT)
def bounds(x, parts, masses, reg, price, work):
    """Return F at the plan, and the dual objective at a feasible point, a lower bound; write e and the gradient."""
    value, mass = 0.0, 0.0
    for i in range(len(x)):
        phi, psi = work.u[i] * work.kv[i], work.v[i] * work.ku[i]
        mass += phi
        work.e[i] = math.exp(-work.g[i] / price)
        if x[i] > 0:
            value += price * (x[i] - phi)
        if work.y[i] > 0:
            value += psi * work.g[i] + price * (psi * math.log(psi / work.y[i]) - psi + work.y[i])
    worst = 0.0
    for k in range(len(masses)):
        total = 0.0
        for j in range(len(x)):
            total += parts[j, k] * work.e[j]
        work.gradient[k] = price * (masses[k] - total)
        worst = max(worst, total / masses[k])
    factor = math.exp(price * math.log(worst) / (price + reg))
    bound = 0.0
    for i in range(len(x)):
        if x[i] > 0:
            bound += price * x[i] - (price + reg) * work.u[i] * work.kv[i] * factor
    return value - reg * mass, bound


@njit(**_STRICT)
def differentiate(x, parts, line, reg, price, work):
    """Solve the Newton system: the change of g at fixed shares, its derivatives in them, and the Hessian of F."""
    count = parts.shape[1]
    for i in range(len(x)):
        phi, psi = work.u[i] * work.kv[i], work.v[i] * work.ku[i]
        own = psi + reg / price * work.y[i] * work.e[i]
        work.weight[i] = 1.0 / own if own > _TINY else 0.0
        work.d1[i] = phi / (1.0 + reg / price)
        work.d2[i] = psi * psi * work.weight[i]
        work.slopes[i, 0] = reg * (work.y[i] * work.e[i] - psi)
        for k in range(count):
            work.slopes[i, k + 1] = reg * parts[i, k] * work.e[i]
        for k in range(count + 1):
            work.sides[i, 0, k] = 0.0
            work.sides[i, 1, k] = psi * work.slopes[i, k] * work.weight[i]
    solve_blocks(line, work)
    work.linear[:] = work.gradient
    work.curvature[:] = 0.0
    for i in range(len(x)):
        psi = work.v[i] * work.ku[i]
        for k in range(count + 1):
            work.slopes[i, k] = (work.slopes[i, k] - psi * work.sides[i, 1, k]) * work.weight[i]
        for k in range(count):
            h = parts[i, k] * work.e[i]
            work.linear[k] += h * work.slopes[i, 0]
            for m in range(count):
                work.curvature[k, m] += h * work.slopes[i, m + 1]


@njit(**_STRICT)
def take_step(reg, radius, w, work):
    """Move shares and g by the Newton step, shortened where g would move too far."""
    count = len(w)
    for k in range(count):
        work.lowest[k], work.step[k] = -w[k], 0.0
    minimise_quadratic(work.curvature, work.linear, work.lowest, work.step)
    largest = 0.0
    for i in range(len(work.g)):
        for k in range(count):
            work.slopes[i, 0] += work.slopes[i, k + 1] * work.step[k]
        largest = max(largest, abs(work.slopes[i, 0]))
    length = min(1.0, radius * reg / max(largest, 1e-300))
    for i in range(len(work.g)):
        work.g[i] += length * work.slopes[i, 0]
    for k in range(count):
        w[k] = max(w[k] + length * work.step[k], _LEAST_SHARE * w[k])


@njit(**_STRICT)
def newton(x, parts, masses, line, reg, price, limits, w, work):
    """Minimise F over the shares w, which are changed in place; return iterations, F and its lower bound.

    The limits are the number of iterations, the relative gap between F and its bound, and the radius of a step.
    """
    most, gap, radius = limits
    value, bound = math.inf, -math.inf
    for iteration in range(most):
        set_model(parts, w, work.y)
        scale_data(x, line, reg, price, work)
        for turn in range(_FIRST_SCALINGS if iteration == 0 else 1):
            scale_model(reg, price, work)
            if turn > 0:
                multiply_shares(parts, masses, price, w, work)
            scale_data(x, line, reg, price, work)
        value, below = bounds(x, parts, masses, reg, price, work)
        bound = max(bound, below)
        differentiate(x, parts, line, reg, price, work)
        if value - bound <= gap * abs(value) or iteration == most - 1:
            return iteration + 1, value, bound
        take_step(reg, radius, w, work)
    return most, value, bound


@njit(**_STRICT)
def solve(x, parts, masses, line, coarse, reg, price, limits, w, work):
    """As `newton`; a sample that has not arrived soon is solved again from larger values of reg downwards."""
    most, gap = limits
    start = 1.0 / len(w)
    w[:] = start
    work.g[:] = 0.0
    found = newton(x, parts, masses, line, reg, price, (min(most, _FIRST_TRY), gap, _RADIUS), w, work)
    if found[1] - found[2] <= gap * abs(found[1]):
        return found
    spent = found[0]
    w[:] = start
    work.g[:] = 0.0
    for level in _COARSE:
        for i in range(len(x)):
            coarse.steps[i] = line.steps[i] / level
        fill_line(coarse)
        limited = (_COARSE_STEPS, _COARSE_GAP, _RADIUS)
        spent += newton(x, parts, masses, coarse, level * reg, price, limited, w, work)[0]
        for k in range(len(w)):
            w[k] = max(w[k], 1e-9 * start)
    found = newton(x, parts, masses, line, reg, price, (most, gap, _RADIUS_AGAIN), w, work)
    return spent + found[0], found[1], found[2]


@njit(**_STRICT)
def misfit(x, parts, gram, lowest, linear, w):
    """Fit w >= 0 by least squares, and return the sum of (x - y)^2 / (x + y)."""
    n, count = parts.shape
    linear[:] = 0.0
    for i in range(n):
        for k in range(count):
            linear[k] -= parts[i, k] * x[i]
    minimise_quadratic(gram, linear, lowest, w)
    total = 0.0
    for i in range(n):
        y = 0.0
        for k in range(count):
            y += parts[i, k] * w[k]
        if x[i] + y > 0:
            total += (x[i] - y) ** 2 / (x[i] + y)
    return total


def _compile(digest: int) -> Any:
    """Return the functions that Python calls; see `sources` for the digest."""

    @cached_njit(**_STRICT)
    def unmix_rows(rows, parts, masses, line, reg, prices, limits, shares, found, details):
        """Solve for every row; write its shares, and iterations, F and bound. The details may be empty arrays."""
        _ = digest
        count, n = parts.shape[1], parts.shape[0]
        coarse = Line(np.empty(n), np.empty(n), np.empty(n), np.empty(n))
        work = Work(
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros((n, 2, count + 1)),
            np.zeros((n, 3)),
            np.zeros((n, count + 1)),
            np.zeros((count, count)),
            np.zeros(count),
            np.zeros(count),
            np.zeros(count),
            np.zeros(count),
        )
        for row in range(len(rows)):
            price = prices[row]
            solved = solve(rows[row], parts, masses, line, coarse, reg, price, limits, shares[row], work)
            found[row, 0], found[row, 1], found[row, 2] = solved
            if len(details.u) == 0:
                continue
            details.u[row], details.v[row] = work.u, work.v
            details.ku[row], details.kv[row] = work.ku, work.kv
            details.curvature[row], details.gradient[row] = work.curvature, work.gradient
            for i in range(n):
                for k in range(count):
                    details.slopes[row, k, i] = -work.sides[i, 0, k + 1] / (1.0 + reg / price)

    @cached_njit(**_STRICT)
    def misfit_rows(rows, moved, grams, found):
        """Write the misfit of every row to every set of displaced parts."""
        _ = digest
        count = moved.shape[2]
        w, linear, lowest = np.zeros(count), np.zeros(count), np.zeros(count)
        for row in range(len(rows)):
            w[:] = 0.0
            for k in range(len(moved)):
                found[row, k] = misfit(rows[row], moved[k], grams[k], lowest, linear, w)

    return unmix_rows, misfit_rows


unmix_rows, misfit_rows = _compile(digest_of_sources())
