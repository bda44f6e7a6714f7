"""Slow, literal versions of what the library computes, sharing none of its code."""

from __future__ import annotations

import itertools
import math

import numpy as np


def kl(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for p, q in zip(np.ravel(a), np.ravel(b), strict=True):
        total += (p * math.log(p / q) if p > 0 else 0.0) - p + q
    return total


def scalings(x, y, cost, lam, alpha, beta, iterations=None):
    """u and v of one pair of vectors, to convergence or for a fixed number of scalings from v = 1/I."""
    kernel = np.exp(-lam * cost - 1)
    phi = 1.0 if math.isinf(alpha) else lam * alpha / (lam * alpha + 1)
    psi = 1.0 if math.isinf(beta) else lam * beta / (lam * beta + 1)
    v = np.full(len(y), 1 / len(y))
    for _ in range(iterations or 200_000):
        u = (x / (kernel @ v)) ** phi
        before, v = v, (y / (kernel.T @ u)) ** psi
        if iterations is None and np.abs(v - before).max() <= 1e-15 * v.max():
            break
    return (x / (kernel @ v)) ** phi, v, kernel


def plan(x, y, cost, lam, alpha, beta, iterations=None) -> np.ndarray:
    """The plan T = diag(u) K diag(v); empty where either side is."""
    if not (x.sum() > 0 and y.sum() > 0):
        return np.zeros((len(x), len(y)))
    u, v, kernel = scalings(x, y, cost, lam, alpha, beta, iterations)
    return u[:, None] * kernel * v[None, :]


def plan_value(T, x, y, cost, lam, alpha, beta) -> float:
    """<C, T> + (1/lam) sum T log T + alpha KL(T1 | x) + beta KL(T'1 | y), entry by entry."""
    value = 0.0
    for i, j in itertools.product(range(len(x)), range(len(y))):
        value += cost[i, j] * T[i, j]
        if T[i, j] > 0:
            value += T[i, j] * math.log(T[i, j]) / lam
    if not math.isinf(alpha):
        value += alpha * kl(T.sum(axis=1), x)
    if not math.isinf(beta):
        value += beta * kl(T.sum(axis=0), y)
    return value


def kruskal(factors) -> np.ndarray:
    """X^, entry by entry."""
    model = np.zeros([len(a) for a in factors])
    for index in np.ndindex(*model.shape):
        for r in range(factors[0].shape[1]):
            model[index] += math.prod(a[i, r] for a, i in zip(factors, index, strict=True))
    return model


def fibers(shape, mode):
    """Index of every mode-n fiber."""
    others = [range(size) if axis != mode else [slice(None)] for axis, size in enumerate(shape)]
    return itertools.product(*others)


def graph_penalty(a, graph, mu) -> float:
    total = 0.0
    for i, j in itertools.product(range(len(a)), repeat=2):
        total += mu / 4 * graph[i, j] * ((a[i] - a[j]) ** 2).sum()
    return total


def objective(X, factors, costs, lam, alpha, beta, graph=None, mu=0.0) -> float:
    """F by loops over modes, fibers and the entries of every plan."""
    model = kruskal(factors)
    value = 0.0
    for mode, cost in enumerate(costs):
        if cost is None:
            continue
        for index in fibers(X.shape, mode):
            T = plan(X[index], model[index], cost, lam, alpha, beta)
            value += plan_value(T, X[index], model[index], cost, lam, alpha, beta)
    if all(cost is None for cost in costs):
        value += kl(X, model)
    return value + (0.0 if graph is None else graph_penalty(factors[0], graph, mu))


def wasserstein_nmf(X, W, H, cost_rows, cost_columns, lam, alpha, beta, graph, mu, iterations, scalings_each):
    """Matrix case, X ~ W H' with samples in rows: literal loops, cold transports, one root per iteration."""
    H = H / H.sum(axis=0)
    for _ in range(iterations):
        model = W @ H.T
        rows, columns = np.zeros_like(X), np.zeros_like(X)
        for j in range(X.shape[1]):
            rows[:, j] = plan(X[:, j], model[:, j], cost_rows, lam, alpha, beta, scalings_each).sum(axis=0)
        for i in range(X.shape[0]):
            columns[i] = plan(X[i], model[i], cost_columns, lam, alpha, beta, scalings_each).sum(axis=0)
        ratio = (rows + columns) / 2 / model
        w, h = np.zeros_like(W), np.zeros_like(H)
        for i, j in np.ndindex(*X.shape):
            for r in range(W.shape[1]):
                w[i, r] += W[i, r] * ratio[i, j] * H[j, r]
                h[j, r] += H[j, r] * ratio[i, j] * W[i, r]
        H = h / h.sum(axis=0)
        b, degree = 2 * beta, graph.sum(axis=1)
        new = np.zeros_like(W)
        for i in range(W.shape[0]):
            for r in range(W.shape[1]):
                c = b * w[i, r] + mu * W[i, r] * sum(graph[i, k] * W[k, r] for k in range(len(W)))
                new[i, r] = max(np.roots([mu * degree[i], b, -c]).real)
        W = new
    return W, H
