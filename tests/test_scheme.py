"""The scheme of the library by literal loops: several updates per transport, sweeps, and extrapolation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gwntf import GNMF, GWNTF, KNNGraph, TransportOptions
from gwntf.losses import transport as transport_module
from tests.oracles import graph_penalty, kruskal, objective
from tests.schemes import plain
from tests.test_missing import literal_target

REG, MU, STEPS = 0.1, 3.0, 10
EXACT = TransportOptions(2000, tol=0)


def extrapolated(value, advance, retreat, A, iterations):
    """Literal loop: extrapolate what `advance` returns, keep it if F does not rise, adapt the weight."""
    curve, previous, weight, bound, limit = [value(A)], A, 0.0, 1.0, advance.limit
    kept = []
    for _ in range(iterations):
        point, now = advance(A, previous, weight)
        kept.append(value(point) <= curve[-1])
        if kept[-1]:
            grown = (min(bound, 1.05 * weight), min(limit, 1.01 * bound))
            weight, bound = grown if weight else (0.5, 1.0)
        else:
            point = retreat(A, now)
            weight, bound = (weight / 1.5, weight) if weight else (0.5, 1.0)
        A, previous = point, now
        curve.append(value(A))
    return A, curve, kept


def on_simplex(factor):
    return factor / factor.sum(axis=0)


@pytest.mark.parametrize("transported", [(1, 2), (2,), ()], ids=["two modes", "one mode", "KL"])
def test_ten_updates_per_transport_and_extrapolation_equal_literal_loops(transported, rng):
    X, start = rng.random((7, 4, 3)) + 0.05, [rng.random((size, 2)) + 0.1 for size in (7, 4, 3)]
    costs = [rng.random((size, size)) if mode in transported else None for mode, size in enumerate(X.shape)]
    graph = KNNGraph(2).build(X)
    V, d, b = graph.toarray(), graph.sum(axis=1)[:, None], float(len(transported)) or 1.0
    steps = STEPS if transported else 1

    def value(A):
        return objective(X, A, costs, 1 / REG, 1.0, 1.0, V, MU)

    def advance(A, previous, weight):
        target = literal_target(X, np.zeros(X.shape, bool), A, costs, 1 / REG)
        for step in range(steps):
            ratio = target / kruskal(A)
            w = [
                A[0] * np.einsum("ijk,jr,kr->ir", ratio, A[1], A[2]),
                A[1] * np.einsum("ijk,ir,kr->jr", ratio, A[0], A[2]),
                A[2] * np.einsum("ijk,ir,jr->kr", ratio, A[0], A[1]),
            ]
            a = A[0]
            for _ in range(1 if step < steps - 1 else 3 * steps):
                c = b * w[0] + MU * a * (V @ a)
                a = 2 * c / (b + np.sqrt(b**2 + 4 * MU * d * c))
            A = [a, on_simplex(w[1]), on_simplex(w[2])]
        moved = [new * np.clip(new / old, 1 / 8, 8) ** weight for new, old in zip(A, previous, strict=True)]
        return [moved[0], on_simplex(moved[1]), on_simplex(moved[2])], A

    advance.limit = 2.0
    options = {"reg": REG, "graph": graph, "graph_reg": MU, "sample_norm": None, "init": start, "transport": EXACT}
    model = GWNTF(2, costs=costs, max_iter=6, tol=0, **options).fit(X)
    begin = [start[0] * start[1].sum(axis=0) * start[2].sum(axis=0), *map(on_simplex, start[1:])]
    A, curve, _ = extrapolated(value, advance, lambda _, now: now, begin, 6)
    np.testing.assert_allclose(model.objective_curve_, curve, rtol=1e-8)
    for found, wanted in zip(model.factors_, A, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_sweeps_and_extrapolation_equal_literal_loops(rng):
    mu = 0.02
    X, start = rng.random((9, 6)), [rng.random((size, 3)) + 0.1 for size in (9, 6)]
    graph = KNNGraph(2).build(X)
    V, d = graph.toarray(), graph.sum(axis=1)

    def value(A):
        return 0.5 * ((X - A[0] @ A[1].T) ** 2).sum() + graph_penalty(A[0], V, mu)

    def rows(W, H):
        linear, new = X @ H + mu * (V @ W + d[:, None] * W), W.copy()
        for _, i, r in product(range(3), range(9), range(3)):
            others = [s for s in range(3) if s != r]
            rest = linear[i, r] - new[i, others] @ (H.T @ H)[others, r]
            new[i, r] = max(0.0, rest / ((H.T @ H)[r, r] + 2 * mu * d[i]))
        return new

    def advance(A, previous, weight):
        (W, H), C, G = A, X.T @ A[0], A[0].T @ A[0]
        H = H.copy()
        for _, r in product(range(3), range(3)):
            others = [s for s in range(3) if s != r]
            rise = np.maximum(0, C[:, r] - H[:, others] @ G[others, r])
            H[:, r] = rise / np.linalg.norm(rise) if rise.any() else H[:, r]
        moved = np.maximum(0, H + weight * (H - previous[1]))
        moved /= np.linalg.norm(moved, axis=0)
        return [rows(W, moved), moved], [W, H]

    advance.limit = 1.0
    model = GNMF(3, graph=graph, graph_reg=mu, sample_norm=None, init=start, max_iter=40, tol=0).fit(X)
    norms = np.linalg.norm(start[1], axis=0)
    begin = [start[0] * norms, start[1] / norms]
    A, curve, kept = extrapolated(value, advance, lambda A, now: [rows(A[0], now[1]), now[1]], begin, 40)
    assert not all(kept)  # both sides of the rule were tried
    np.testing.assert_allclose(model.objective_curve_, curve, rtol=1e-7)
    np.testing.assert_allclose(model.factors_[0], A[0], rtol=1e-4, atol=1e-6)


def plateau(seed):
    """Counts of three groups under heavy noise, on which a transport fit from random factors hardly moves at first."""
    rng = np.random.default_rng(seed)
    groups, base = rng.dirichlet(np.full(60, 0.3), 3), rng.dirichlet(np.full(60, 1.0))
    X = rng.poisson(150 * (0.7 * base + 0.3 * groups[np.repeat([0, 1, 2], 15)])) + 1e-6
    unit = X / np.linalg.norm(X, axis=0)
    cost = 1 - unit.T @ unit
    return X, np.clip(cost / cost.max(), 0, None)


@pytest.mark.parametrize("seed", range(3))
def test_a_random_start_does_not_end_above_a_fit_of_kl(seed):
    X, cost = plateau(seed)
    options = {"graph_reg": 0, "sample_norm": "l1", "random_state": 0}
    kl = GWNTF(4, costs=(None, None), **options).fit(X)
    transport = {"costs": (None, cost), "reg": 0.05, "reg_m": (np.inf, 1.0), **options}
    found, from_kl = GWNTF(4, **transport).fit(X), GWNTF(4, init=kl.factors_, **transport).fit(X)
    scale = max(abs(found.objective_), len(X))  # samples have mass one
    assert found.objective_ <= from_kl.objective_ + 1e-4 * scale


def test_fits_with_more_iterations_give_the_same_answer(rng):
    """What converged means: the objective is close to that of twenty times as many iterations."""
    factors = [rng.gamma(0.5, size=(size, 3)) for size in (40, 8, 7)]
    X = rng.poisson(20 * kruskal(factors)) + 0.01
    for costs in ((None, None, None), (None, "grid", "grid")):
        model = GWNTF(3, costs=costs, random_state=0).fit(X)
        assert model.status_.value == "converged"
        longer = GWNTF(3, costs=costs, random_state=0, tol=0, max_iter=20 * model.n_iter_).fit(X)
        assert model.objective_ - longer.objective_ <= 0.01 * abs(longer.objective_)


def test_the_plain_scheme_reaches_the_same_point_in_many_more_iterations(rng):
    X, start = rng.random((20, 6)) + 0.05, [rng.random((size, 2)) + 0.1 for size in (20, 6)]
    options = {"costs": (None, "grid"), "graph_reg": 0, "sample_norm": None, "init": start, "tol": 0, "reg": REG}
    few = GWNTF(2, max_iter=300, **options).fit(X).objective_
    many = plain(GWNTF(2, max_iter=20_000, **options)).fit(X).objective_
    assert abs(few - many) <= 1e-5 * abs(many)


def test_without_memory_for_the_targets_there_is_one_update_per_transport(rng, monkeypatch):
    X, visits = rng.random((20, 6, 5)), []
    real = transport_module.TransportLoss.compare_target
    monkeypatch.setattr(
        transport_module.TransportLoss, "compare_target", lambda *a, **k: visits.append(1) or real(*a, **k)
    )
    options = {"costs": (None, "grid", "grid"), "graph_reg": 0, "max_iter": 4, "tol": 0}
    options["init"] = [rng.random((size, 2)) + 0.1 for size in X.shape]
    GWNTF(2, transport=TransportOptions(max_memory=0), **options).fit(X)
    assert not visits
    GWNTF(2, **options).fit(X)
    assert len(visits) == 4 * (STEPS - 1)
