"""The scheme of the library by literal loops: several updates per transport, sweeps, and extrapolation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gwntf import GNMF, GWNTF, KNNGraph, TransportOptions
from gwntf.core import Relaxation
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


class LiteralQuasiNewton:
    """Textbook BFGS in the square roots of all factors, with dense matrices and six pairs; see `quasi_newton`."""

    def __init__(self, X, costs, V):
        self.X, self.costs, self.V, self.laplacian = X, costs, V, np.diag(V.sum(axis=0)) - V
        modes = sum(cost is not None for cost in costs)
        self.b = float(modes) or 1.0
        self.mass = (1 + REG) / (2 + REG) if modes and not V.any() else 0.0

    def value(self, A):
        return objective(self.X, A, self.costs, 1 / REG, 1.0, 1.0, self.V, MU)

    def point(self, A):
        """The square roots, the gradient of the data term, that of F, and the curvature of the majorizer."""
        ratio = literal_target(self.X, np.zeros(self.X.shape, bool), A, self.costs, 1 / REG) / kruskal(A)
        data, bends = [], []
        for mode, letters in enumerate(("ir", "jr", "kr")):
            others = [part for part in ("ir", "jr", "kr") if part != letters]
            terms = [factor for other, factor in enumerate(A) if other != mode]
            w, root = A[mode] * np.einsum(f"ijk,{others[0]},{others[1]}->{letters}", ratio, *terms), np.sqrt(A[mode])
            mass = np.ones_like(w) if mode == 0 else np.broadcast_to(w.sum(axis=0), w.shape)
            data.append(2 * self.b * (root * mass - w / root))
            bends.append(4 * self.b * mass)
        total = [data[0] + 2 * MU * np.sqrt(A[0]) * (self.laplacian @ A[0]), *data[1:]]
        flat = [np.concatenate([part.ravel() for part in parts]) for parts in ([np.sqrt(a) for a in A], data, total)]
        return *flat, np.concatenate([bend.ravel() for bend in bends])

    def direction(self, A, gradient, bends, scale, pairs):
        base, a = np.diag(bends / scale), A[0]
        n, rank = a.shape
        for r in range(rank):
            index = np.arange(n) * rank + r
            base[np.ix_(index, index)] += 4 * MU * np.sqrt(np.outer(a[:, r], a[:, r])) * self.laplacian
        for unit in self.mass_directions(np.sqrt(a), len(base)) if self.mass else ():
            base += 4 * self.b * max(0.0, self.mass - 1 / scale) * np.outer(unit, unit)
        inverse, one = np.linalg.inv(base), np.eye(len(base))
        for s, y in pairs[-6:]:
            if s @ y > 1e-8 * np.linalg.norm(s) * np.linalg.norm(y):
                rho = 1 / (s @ y)
                inverse = (one - rho * np.outer(s, y)) @ inverse @ (one - rho * np.outer(y, s)) + rho * np.outer(s, s)
        return inverse @ gradient

    def mass_directions(self, root, size):
        """Unit vectors along the mass of every sample."""
        units = np.zeros((len(root), size))
        for i, row in enumerate(root):
            units[i, i * len(row) : (i + 1) * len(row)] = row / np.linalg.norm(row)
        return units

    def scale(self, root, step, change, bends, samples):
        """The curvature of the majorizer over that of the data term, along what does not change masses."""
        if self.mass:
            units = self.mass_directions(root[:samples].reshape(-1, 2), len(root))
            step, change = (part - units.T @ (units @ part) for part in (step, change))
        return step @ change / (change @ (change / bends))

    def moved(self, A, step):
        parts, start = [], 0
        for a in A:
            root = np.sqrt(a).ravel() - step[start : start + a.size]
            parts.append((root**2).reshape(a.shape))
            start += a.size
        return [parts[0], *map(on_simplex, parts[1:])]

    def fit(self, A, iterations):
        curve, pairs, scale, shortened = [self.value(A)], [], 1.0, 0
        root, data, gradient, bends = self.point(A)
        for _ in range(iterations):
            step = self.direction(A, gradient, bends, scale, pairs)
            slope, tried = gradient @ step, [self.moved(A, step)]
            rise = self.value(tried[0]) - curve[-1]
            if rise > 0:
                shortened += 1
                tried.append(self.moved(A, np.clip(slope / (2 * (rise + slope)), 0.1, 0.5) * step))
            points = [self.point(part) for part in tried]
            pairs += [(new[0] - root, new[2] - gradient) for new in points]
            new = points[-1]
            scale = self.scale(new[0], new[0] - root, new[1] - data, new[3], A[0].size)
            A, (root, data, gradient, bends) = tried[-1], points[-1]
            curve.append(self.value(A))
            assert curve[-1] <= curve[-2]
        return A, curve, shortened


@pytest.mark.parametrize("neighbors", [2, 0], ids=["graph", "no graph"])
@pytest.mark.parametrize("transported", [(1, 2), (2,), ()], ids=["two modes", "one mode", "KL"])
def test_the_quasi_newton_method_equals_dense_matrices(transported, neighbors):
    """Four samples, for which four steps of conjugate gradients solve the graph term exactly."""
    rng = np.random.default_rng(1)
    X, start = rng.random((4, 4, 3)) + 0.05, [rng.random((size, 2)) + 0.1 for size in (4, 4, 3)]
    costs = [rng.random((size, size)) if mode in transported else None for mode, size in enumerate(X.shape)]
    graph = KNNGraph(neighbors).build(X) if neighbors else None
    V = graph.toarray() if neighbors else np.zeros((4, 4))
    options = {
        "reg": REG,
        "graph": graph,
        "graph_reg": MU if neighbors else 0,
        "sample_norm": None,
        "init": start,
        "transport": EXACT,
    }
    model = GWNTF(2, costs=costs, max_iter=9, tol=0, **options).fit(X)
    begin = [start[0] * start[1].sum(axis=0) * start[2].sum(axis=0), *map(on_simplex, start[1:])]
    A, curve, shortened = LiteralQuasiNewton(X, costs, V).fit(begin, 9)
    assert shortened == (1 if neighbors else 0)  # with the graph both sides of the rule are tried
    np.testing.assert_allclose(model.objective_curve_, curve, rtol=1e-7)
    for found, wanted in zip(model.factors_, A, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.3, 5.0), (np.inf, 2.0)])
def test_curvature_along_the_mass_is_that_of_transport_at_one_place(alpha, beta):
    """The second difference of W in the mass of y, in relation to beta times the transported mass over its square."""
    x, y, cost, h = 1.3, 0.8, 0.4, 1e-3

    def plan(mass):
        if np.isinf(alpha):
            return x
        return np.exp((alpha * np.log(x) + beta * np.log(mass) - cost - REG) / (alpha + beta + REG))

    def value(mass):
        m, data = plan(mass), 0.0
        if np.isfinite(alpha):
            data = alpha * (m * np.log(m / x) - m + x)
        return cost * m + REG * m * np.log(m) + data + beta * (m * np.log(m / mass) - m + mass)

    second = (value(y + h) - 2 * value(y) + value(y - h)) / h**2
    found = Relaxation(REG, alpha, beta).mass_curvature
    assert found == pytest.approx(second / (beta * plan(y) / y**2), rel=1e-4)


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


def test_without_memory_for_the_targets_there_is_one_update_of_new_samples_per_transport(rng, monkeypatch):
    X, visits = rng.random((20, 6, 5)), []
    real = transport_module.TransportLoss.compare_target
    monkeypatch.setattr(
        transport_module.TransportLoss, "compare_target", lambda *a, **k: visits.append(1) or real(*a, **k)
    )
    options = {"costs": (None, "grid", "grid"), "graph_reg": 0, "max_iter": 4, "tol": 0}
    options["init"] = [rng.random((size, 2)) + 0.1 for size in X.shape]
    GWNTF(2, transport=TransportOptions(max_memory=0), **options).fit(X).transform(X)
    assert not visits
    GWNTF(2, **options).fit(X).transform(X)
    assert len(visits) == 4 * (STEPS - 1)
