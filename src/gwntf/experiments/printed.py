"""Algorithm 1 exactly as the paper prints it, to show what is wrong with it (`docs/mathematics.md`).

A literal version in NumPy, without blocks and without safeguards. The estimators use the corrected rules instead.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import kl_div, xlogy

from gwntf.core import FloatArray


@np.errstate(over="ignore", invalid="ignore")
def printed_algorithm(
    X: FloatArray,
    factors: Sequence[FloatArray],
    costs: Sequence[FloatArray | None],
    reg: float,
    *,
    reg_m_data: float = 1.0,
    reg_m_model: float = 1.0,
    graph: Any = None,
    graph_reg: float = 0.0,
    n_iter: int = 100,
    n_scalings: int = 10,
) -> tuple[list[FloatArray], list[float]]:
    """Run Algorithm 1 from given factors.

    Parameters
    ----------
    X : ndarray of shape (I_1, ..., I_N)
        Nonnegative data, samples first, used without normalisation.
    factors : sequence of (I_n, R) ndarrays
        Initial factors, samples first.
    costs : sequence of (I_n, I_n) ndarrays or None
        Ground cost of every mode; None for a mode that is not transported.
    reg : float
        1 / lambda, weight of the entropy.
    reg_m_data, reg_m_model : float, default=1.0
        alpha and beta, weights of the two relaxed marginals.
    graph : (I_1, I_1) ndarray or sparse array, optional
        V, symmetric weights between the samples.
    graph_reg : float, default=0.0
        mu, weight of the graph.
    n_iter : int, default=100
        Number of iterations.
    n_scalings : int, default=10
        Number of scalings of every transport.

    Returns
    -------
    factors : list of (I_n, R) ndarrays
        After the last iteration. They may be infinite or NaN, because the algorithm diverges with a graph.
    objective : list of float
        The objective at the start and after every iteration.
    """
    A: list[FloatArray] = [np.array(factor, dtype=np.float64) for factor in factors]
    X, order = np.asarray(X, dtype=np.float64), len(A)
    V = csr_array((len(X), len(X))) if graph is None else csr_array(graph)
    D = np.asarray(V.sum(axis=1)).reshape(-1, 1)
    beta = reg_m_model if any(cost is not None for cost in costs) else 1.0
    kernels = [None if cost is None else np.exp(-np.asarray(cost) / reg - 1) for cost in costs]
    weights = (reg, reg_m_data, reg_m_model, n_scalings)

    def psi(mode: int) -> FloatArray:
        """Psi_n: the transported data of one mode, an array of the shape of X."""
        kernel = kernels[mode]
        if kernel is None:
            return X
        moved, _ = transport(unfold(X, mode), unfold(model(A), mode), kernel, *weights)
        return fold(moved, mode, X.shape)

    def objective() -> float:
        Y = model(A)
        value = graph_reg / 2 * float((D * A[0] ** 2 - A[0] * (V @ A[0])).sum())
        if all(kernel is None for kernel in kernels):
            return value + float(kl_div(X, Y).sum())
        found = [
            (unfold(X, mode), unfold(Y, mode), kernel) for mode, kernel in enumerate(kernels) if kernel is not None
        ]
        return value + sum(transport(x, y, kernel, *weights)[1] for x, y, kernel in found)

    curve = [objective()]
    for _ in range(n_iter):
        # A(n) <- A(n) * (beta (Psi_n / X^)_(n) A(-n)) / (beta 1 A(-n)): one factor after the other, each from the
        # transport of its own mode only
        for mode in range(1, order):
            rest = khatri_rao([A[other] for other in range(order) if other != mode])
            A[mode] = A[mode] * (beta * unfold(ratio(psi(mode), model(A)), mode) @ rest) / (beta * rest.sum(axis=0))
        # The same for the samples, with mu D A in the numerator and mu V A in the denominator: V and D are exchanged
        rest = khatri_rao(A[1:])
        up = beta * unfold(ratio(psi(0), model(A)), 0) @ rest + graph_reg * D * A[0]
        down = beta * rest.sum(axis=0) + graph_reg * (V @ A[0])
        A[0] = A[0] * up / down
        curve.append(objective())
    return A, curve


def transport(
    x: FloatArray, y: FloatArray, kernel: FloatArray, reg: float, alpha: float, beta: float, n_scalings: int
) -> tuple[FloatArray, float]:
    """Transport the columns of x to those of y; return Psi, the second marginals of the plans, and the sum of W."""
    phi, psi = alpha / (alpha + reg), beta / (beta + reg)
    v = np.full(y.shape, 1 / len(y))
    for _ in range(n_scalings):
        u = ratio(x, kernel @ v) ** phi
        v = ratio(y, kernel.T @ u) ** psi
    u = ratio(x, kernel @ v) ** phi
    first, second = u * (kernel @ v), v * (kernel.T @ u)
    entropy = reg * float((xlogy(first, u) + xlogy(second, v) - second).sum())  # <C, T> + reg sum T log T
    return second, entropy + alpha * float(kl_div(first, x).sum()) + beta * float(kl_div(second, y).sum())


def model(factors: Sequence[FloatArray]) -> FloatArray:
    """Return X^, the CP model as a dense array."""
    rows: FloatArray = factors[0] @ khatri_rao(factors[1:]).T
    return rows.reshape([len(factor) for factor in factors])


def khatri_rao(factors: Sequence[FloatArray]) -> FloatArray:
    """Column-wise Kronecker product, the last factor fastest."""
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, None, :] * factor[None, :, :]).reshape(-1, factor.shape[1])
    return product


def unfold(X: FloatArray, mode: int) -> FloatArray:
    """Mode-n unfolding: its columns are the fibers of that mode."""
    return np.moveaxis(X, mode, 0).reshape(X.shape[mode], -1)


def fold(rows: FloatArray, mode: int, shape: tuple[int, ...]) -> FloatArray:
    """Inverse of `unfold`."""
    return np.moveaxis(rows.reshape(shape[mode], *np.delete(shape, mode)), 0, mode)


def ratio(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a / b, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b != 0)
