"""Factor updates for beta * sum_n KL(Psi_n | X^), the KL-CP problem that fixed transports leave.

The sum over the transported modes is b KL(Psi_bar | X^) up to a constant, with Psi_bar the mean of the Psi_n
and b = beta times their number. With the columns of every factor but the sample factor summing to one,
sum(X^) = sum(A(samples)), and the EM majorizer separates over the factors, so all of them move at once from
one pass over the data.
"""

from __future__ import annotations

from collections.abc import Sequence

from gwntf.core import Array
from gwntf.backends import Backend
from gwntf.geometry import SampleGraph
from gwntf.updates.graph_term import SampleRule


def ratio_to_model(backend: Backend, target: Array, model: Array) -> Array:
    """Psi_bar / X^, zero where both vanish."""
    xp = backend.xp
    return target / xp.clip(model, float(xp.finfo(model.dtype).smallest_normal), None)


def simplex_step(
    backend: Backend,
    factors: Sequence[Array],
    products: Sequence[Array],
    b: float,
    graph: SampleGraph | None,
    rule: SampleRule,
    inner_iter: int,
) -> list[Array]:
    """One simultaneous step of all factors, given (Psi_bar / X^)_(n) A(-n) for every n.

    The numerators are w_n = A(n) * ((Psi_bar / X^)_(n) A(-n)). Every factor but the first becomes w_n with columns
    divided by their sums; the sample factor takes `inner_iter` steps of `rule` with its numerator held, or is the
    numerator itself where there is no graph.
    """
    w, *rest = [a * m for a, m in zip(factors, products, strict=True)]
    moved = [_on_simplex(backend, new, old) for new, old in zip(rest, factors[1:], strict=True)]
    if graph is None:
        return [w, *moved]
    a = factors[0]
    for _ in range(inner_iter):
        a = rule(backend, a, w, b, graph)
    return [a, *moved]


def printed_factor(
    backend: Backend,
    factors: Sequence[Array],
    product: Array,
    mode: int,
    beta: float,
    graph: SampleGraph | None,
) -> Array:
    """Factor n as printed: from (Psi_n / X^)_(n) A(-n), unconstrained, V and D exchanged in the graph term."""
    a = factors[mode]
    numerator = beta * product
    denominator = beta * other_masses(backend, factors, mode)
    if mode == 0 and graph is not None:
        numerator = numerator + graph.weight * graph.degree * a
        denominator = denominator + graph.weight * (graph.matrix @ a)
    return a * numerator / denominator


def other_masses(backend: Backend, factors: Sequence[Array], mode: int) -> Array:
    """1' A(-n): for every component, the product of the column sums of all factors but one."""
    product = backend.xp.ones_like(factors[0][0, :])
    for other, factor in enumerate(factors):
        if other != mode:
            product = product * backend.xp.sum(factor, axis=0)
    return product


def _on_simplex(backend: Backend, new: Array, old: Array) -> Array:
    """Columns divided by their sums; a component without mass keeps its old column."""
    xp = backend.xp
    sums = xp.sum(new, axis=0)
    safe = xp.where(sums > 0, sums, xp.ones_like(sums))
    return xp.where(sums > 0, new / safe, old)
