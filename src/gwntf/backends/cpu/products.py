"""K V for every form of kernel, on a tile that is stored by rows in a flat buffer.

`apply` and `apply_transposed` are chosen by the type of the kernel when the caller is compiled. Inner loops run over
contiguous numbers of one row, and outputs never overlap inputs.
"""

import math
from typing import Any

import numpy as np
from numba import njit, types

from gwntf.backends.cpu.line import add_log_moves, multiply_line, subtract
from gwntf.backends.cpu.powers import FLAGS, chosen_by_type, divide_by_powers
from gwntf.backends.forms import (
    DenseForm,
    ExponentialForm,
    KernelForm,
    LineForm,
    NearFarForm,
    SeparableForm,
    UnevenForm,
)

LOOSE: dict[str, Any] = {"fastmath": FLAGS | {"reassoc"}, "error_model": "numpy", "nogil": True}
ORDERED: dict[str, Any] = {**LOOSE, "fastmath": FLAGS}

T = 128
"""Columns of a tile."""

REACH32, REACH64 = 120.0, 1000.0
"""Approximate number of binary orders of magnitude below one at which a dtype underflows."""


def tile_width(form: KernelForm, length: int, columns: int) -> int:
    """Return the number of columns of a tile: T, or fewer for a recursion over the rows of long or few columns."""
    if not isinstance(form, ExponentialForm | UnevenForm | LineForm):
        return T
    return int(min(T, max(16, 2**17 // length // 16 * 16), max(16, -(-columns // 16) * 16)))


def scratch_size(form: KernelForm, length: int) -> int:
    """Return the size of the scratch array of `apply`."""
    if isinstance(form, SeparableForm):
        sizes = [_size(axis) for axis in form.axes]
        cells = math.prod(sizes)
        return (cells + max(cells // sizes[0], 2 * max(sizes))) * T
    if isinstance(form, NearFarForm):
        elements, clusters = form.field.shape
        return int(clusters * (group_size(elements, clusters) + 1)) * T
    if isinstance(form, LineForm):
        return (2 * length + 1) * T
    return T


def _size(axis: DenseForm | ExponentialForm | UnevenForm) -> int:
    if isinstance(axis, UnevenForm):
        return len(axis.roots) + 1
    return axis.size if isinstance(axis, ExponentialForm) else len(axis.matrix)


@njit(**LOOSE)
def multiply_dense(K, top, left, rows, columns, V, B):
    """B = K V for T columns and a part of K in C order, four of its rows and columns at a time."""
    even_rows, even = rows - rows % 4, columns - columns % 4
    B[: rows * T] = B.dtype.type(0)
    for i in range(0, even_rows, 4):
        b = i * T
        k0, k1, k2, k3 = K[top + i], K[top + i + 1], K[top + i + 2], K[top + i + 3]
        for k in range(0, even, 4):
            p = left + k
            a00, a01, a02, a03 = k0[p], k0[p + 1], k0[p + 2], k0[p + 3]
            a10, a11, a12, a13 = k1[p], k1[p + 1], k1[p + 2], k1[p + 3]
            a20, a21, a22, a23 = k2[p], k2[p + 1], k2[p + 2], k2[p + 3]
            a30, a31, a32, a33 = k3[p], k3[p + 1], k3[p + 2], k3[p + 3]
            v = k * T
            for t in range(T):
                v0, v1, v2, v3 = V[v + t], V[v + T + t], V[v + 2 * T + t], V[v + 3 * T + t]
                B[b + t] += a00 * v0 + a01 * v1 + a02 * v2 + a03 * v3
                B[b + T + t] += a10 * v0 + a11 * v1 + a12 * v2 + a13 * v3
                B[b + 2 * T + t] += a20 * v0 + a21 * v1 + a22 * v2 + a23 * v3
                B[b + 3 * T + t] += a30 * v0 + a31 * v1 + a32 * v2 + a33 * v3
        for k in range(even, columns):
            a0, a1, a2, a3 = k0[left + k], k1[left + k], k2[left + k], k3[left + k]
            v = k * T
            for t in range(T):
                v0 = V[v + t]
                B[b + t] += a0 * v0
                B[b + T + t] += a1 * v0
                B[b + 2 * T + t] += a2 * v0
                B[b + 3 * T + t] += a3 * v0
    for i in range(even_rows, rows):
        for k in range(columns):
            add_row(K[top + i, left + k], V, k * T, B, i * T)


@njit(**LOOSE)
def multiply_wide(K, size, V, B, width, work):
    """B = K V for rows of a multiple of T numbers, T of them at a time."""
    if width == T:
        multiply_dense(K, 0, 0, size, size, V, B)
        return
    part, out = work[: size * T], work[size * T : 2 * size * T]
    for left in range(0, width, T):
        for i in range(size):
            copy_row(V, i * width + left, part, i * T)
        multiply_dense(K, 0, 0, size, size, part, out)
        for i in range(size):
            copy_row(out, i * T, B, i * width + left)


@njit(**LOOSE)
def copy_row(V, v, B, b):
    """Copy T numbers."""
    row, out = V[v : v + T], B[b : b + T]
    for t in range(T):
        out[t] = row[t]


@njit(**LOOSE)
def add_row(a, V, v, B, b):
    """Add T numbers of one row, multiplied by a, to another row."""
    row, out = V[v : v + T], B[b : b + T]
    for t in range(T):
        out[t] += a * row[t]


@chosen_by_type
def factor_of_step(kernel, i):  # noqa: ARG001
    """Return what `discounted` needs for the step from place i to place i + 1."""
    even = _form(kernel) is ExponentialForm
    return (lambda kernel, i: kernel.ratio) if even else (lambda kernel, i: kernel.roots[i])  # noqa: ARG005


@chosen_by_type
def discounted(kernel, a, factor):  # noqa: ARG001
    """Return a number discounted by a step."""
    if _form(kernel) is ExponentialForm:
        return lambda kernel, a, factor: factor * a  # noqa: ARG005
    return lambda kernel, a, factor: twice(a, factor)  # noqa: ARG005


@njit(**ORDERED)
def twice(a, root):
    """Return a root^2, also where root^2 underflows."""
    return root * (root * a)


@njit(**LOOSE)
def multiply_recursively(kernel, V, B, size, width, work):
    """B = K V for an exponential or uneven kernel, in two recursive passes over the rows.

    V is scaled first, since the sums are otherwise smaller than the result and may underflow.
    """
    acc, scale = work[:width], kernel.scale
    acc[:] = V.dtype.type(0)
    for i in range(size):
        row = V[i * width : i * width + width]
        out = B[i * width : i * width + width]
        factor = factor_of_step(kernel, max(i - 1, 0))
        for t in range(width):
            a = scale * row[t] + discounted(kernel, acc[t], factor)
            acc[t] = a
            out[t] = a
    acc[:] = V.dtype.type(0)
    for q in range(size):
        i = size - 1 - q
        row = V[i * width : i * width + width]
        out = B[i * width : i * width + width]
        factor = factor_of_step(kernel, min(i, size - 2))
        for t in range(width):
            a = discounted(kernel, acc[t], factor)
            out[t] += a
            acc[t] = scale * row[t] + a


@njit(**LOOSE)
def multiply_near_far(kernel, V, B, work):
    """B = K V, in the order of the clusters: sums over clusters for every other cluster, far field, then near pairs."""
    elements, clusters = kernel.field.shape
    group = group_size(elements, clusters)
    sums, gathered = work[: clusters * group * T], work[clusters * group * T : clusters * (group + 1) * T]
    for first in range(0, clusters, group):
        last = min(first + group, clusters)
        for d in range(clusters):
            low, high = kernel.bounds[d], kernel.bounds[d + 1]
            part, out = V[low * T : high * T], sums[d * group * T :]
            multiply_dense(kernel.transposed, first, low, last - first, high - low, part, out)
        for c in range(first, last):
            low, high = kernel.bounds[c], kernel.bounds[c + 1]
            for d in range(clusters):
                copy_row(sums, (d * group + c - first) * T, gathered, d * T)
            multiply_dense(kernel.field, low, 0, high - low, clusters, gathered, B[low * T : high * T])
    for k in range(elements):
        add_neighbors(kernel, k, V, B[k * T : (k + 1) * T])


@njit(**LOOSE)
def group_size(elements, clusters):
    """Return the number of target clusters per pass: more of them read V less often but need more scratch memory."""
    return max(4, min(clusters, int(np.sqrt(elements / 2)) // 4 * 4))


@njit(**LOOSE)
def add_neighbors(kernel, i, V, out):
    """Add the near pairs of one row, four at a time."""
    excess, neighbors, p, last = kernel.excess, kernel.neighbors, kernel.starts[i], kernel.starts[i + 1]
    while p + 4 <= last:
        a0, a1, a2, a3 = excess[p], excess[p + 1], excess[p + 2], excess[p + 3]
        j0, j1 = neighbors[p] * T, neighbors[p + 1] * T
        j2, j3 = neighbors[p + 2] * T, neighbors[p + 3] * T
        r0, r1, r2, r3 = V[j0 : j0 + T], V[j1 : j1 + T], V[j2 : j2 + T], V[j3 : j3 + T]
        for t in range(T):
            out[t] += a0 * r0[t] + a1 * r1[t] + a2 * r2[t] + a3 * r3[t]
        p += 4
    for q in range(p, last):
        add_row(excess[q], V, neighbors[q] * T, out, 0)


def _form(kernel: Any) -> Any:
    """Return the form of a kernel, given its type in compiled code."""
    return kernel.instance_class if isinstance(kernel, types.BaseNamedTuple) else None


@chosen_by_type
def apply(kernel, V, B, size, width, work):  # noqa: ARG001
    """B = K V for a tile of `size` rows of `width` numbers."""
    if _form(kernel) is DenseForm:
        return lambda kernel, V, B, size, width, work: multiply_wide(kernel.matrix, size, V, B, width, work)
    if _form(kernel) is SeparableForm:
        return lambda kernel, V, B, size, width, work: along_axes(kernel.axes, False, V, B, size, width, work)
    return _apply_symmetric(kernel)


@chosen_by_type
def apply_transposed(kernel, V, B, size, width, work):  # noqa: ARG001
    """B = K' V."""
    if _form(kernel) is DenseForm:
        return lambda kernel, V, B, size, width, work: multiply_wide(kernel.transposed, size, V, B, width, work)
    if _form(kernel) is SeparableForm:
        return lambda kernel, V, B, size, width, work: along_axes(kernel.axes, True, V, B, size, width, work)
    return _apply_symmetric(kernel)


def _apply_symmetric(kernel: Any) -> Any:
    """Return `apply` for kernels that are equal to their transposes."""
    if _form(kernel) in (ExponentialForm, UnevenForm):
        return lambda kernel, V, B, size, width, work: multiply_recursively(kernel, V, B, size, width, work)
    if _form(kernel) is LineForm:
        return lambda kernel, V, B, size, width, work: multiply_line(kernel, V, B, size, width, work)
    return lambda kernel, V, B, size, width, work: multiply_near_far(kernel, V, B, work)  # noqa: ARG005


@chosen_by_type
def divide(kernel, numerator, product, power, out):  # noqa: ARG001
    """Out = numerator / product ** power: one half of a scaling."""
    if _form(kernel) is LineForm:
        return lambda kernel, numerator, product, power, out: subtract(numerator, product, power, out)  # noqa: ARG005
    return lambda kernel, numerator, product, power, out: divide_by_powers(numerator, product, power, out)  # noqa: ARG005


@chosen_by_type
def add_moves(kernel, u, nu, kv, moved, mass):  # noqa: ARG001
    """Add one row of |nu - u| kv and of nu kv."""
    if _form(kernel) is LineForm:
        return lambda kernel, u, nu, kv, moved, mass: add_log_moves(u, nu, kv, moved, mass)  # noqa: ARG005
    return lambda kernel, u, nu, kv, moved, mass: add_plain_moves(u, nu, kv, moved, mass)  # noqa: ARG005


@njit(**LOOSE)
def add_plain_moves(u, nu, kv, moved, mass):
    """Add one row of |nu - u| kv and of nu kv, of plain numbers."""
    for t in range(u.size):
        moved[t] += abs(nu[t] - u[t]) * kv[t]
        mass[t] += nu[t] * kv[t]


@chosen_by_type
def out_of_range(kernel, x, y, longest, size, width, filled):  # noqa: ARG001
    """Whether every column of a tile has mass so far from all mass of the other side that plain numbers underflow.

    A heuristic that saves time; other inaccurate columns are found after the scalings.
    """
    if _form(kernel) in (ExponentialForm, UnevenForm):
        return lambda kernel, x, y, longest, size, width, filled: all_far(kernel, x, y, longest, size, width, filled)
    return lambda kernel, x, y, longest, size, width, filled: False  # noqa: ARG005


@chosen_by_type
def bits_of_step(kernel, i):  # noqa: ARG001
    """Return the number of binary orders of magnitude by which a kernel falls from place i to place i + 1."""
    if _form(kernel) is ExponentialForm:
        return lambda kernel, i: -np.log2(kernel.ratio)  # noqa: ARG005
    return lambda kernel, i: -2 * np.log2(kernel.roots[i]) if kernel.roots[i] > 0 else REACH64


@njit(**LOOSE)
def all_far(kernel, x, y, columnwise, size, width, filled):
    """Whether the kernel vanishes across half of a run of zeros in every column that is not empty.

    The length of a run is in bits, where the first place counts as one, so that a run over all places is the longest.
    """
    run, longest = columnwise[0], columnwise[1]
    longest[:] = x.dtype.type(0)
    limit, everything = 2 * (REACH32 if x.itemsize == 4 else REACH64), x.dtype.type(0)
    for side in range(2):
        run[:] = x.dtype.type(0)
        everything = x.dtype.type(0)
        for i in range(size):
            bits = x.dtype.type(min(bits_of_step(kernel, i - 1), REACH64) if i > 0 else 1.0)
            everything += bits
            row = x[i * width : (i + 1) * width] if side == 0 else y[i * width : (i + 1) * width]
            for t in range(width):
                run[t] = run[t] + bits if row[t] == x.dtype.type(0) else x.dtype.type(0)
                longest[t] = max(longest[t], run[t])
    far = 0
    for t in range(filled):
        far += longest[t] >= everything or longest[t] > limit
    return far == filled


@chosen_by_type
def row_count(kernel, size):  # noqa: ARG001
    """Return the number of rows of a tile, for fibers of that size."""
    near_far = _form(kernel) is NearFarForm
    return (lambda kernel, size: len(kernel.order)) if near_far else (lambda kernel, size: size)  # noqa: ARG005


@chosen_by_type
def row_source(kernel, i):  # noqa: ARG001
    """Return which element of a fiber is in row i of a tile; -1 for none."""
    near_far = _form(kernel) is NearFarForm
    return (lambda kernel, i: kernel.order[i]) if near_far else (lambda kernel, i: i)  # noqa: ARG005


@chosen_by_type
def length_of(axis):
    """Return the size of one axis of a separable kernel."""
    if _form(axis) is DenseForm:
        return lambda axis: len(axis.matrix)
    return (lambda axis: len(axis.roots) + 1) if _form(axis) is UnevenForm else (lambda axis: axis.size)


@njit(**LOOSE)
def along_axes(axes, transposed, V, B, size, width, work):
    """Multiply along one axis at a time, with the tile as a stack (before, length, after)."""
    first, rest = work[: size * width], work[size * width :]
    first[:] = V[: size * width]
    before, left = 1, size
    for k in range(len(axes)):
        length = length_of(axes[k])
        left //= length
        step = length * left * width
        for p in range(before):
            source, target = first[p * step : (p + 1) * step], B[p * step : (p + 1) * step]
            if transposed:
                apply_transposed(axes[k], source, target, length, left * width, rest)
            else:
                apply(axes[k], source, target, length, left * width, rest)
        before *= length
        if k + 1 < len(axes):
            first[:] = B[: size * width]
