"""The errors of the paper, one test each; `docs/mathematics.md` refers to these by name."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from gwntf import GWNTF, KNNGraph
from gwntf.backends import get_backend
from gwntf.experiments.printed import printed_algorithm
from gwntf.geometry import grid_cost, split_graph
from gwntf.losses.graph import classic_ratio, gradient_of, mm_root, penalty
from gwntf.transport import TransportLimits
from tests import oracles
from tests.problems import fit, random_graph, random_problem

NUMPY = get_backend("numpy")


def placed_graph(graph, weight):
    """The graph of all samples as a fit has it."""
    graphs, _ = split_graph(graph, weight, [slice(0, graph.shape[0])], np.float64)
    return graphs[0].on(NUMPY)


def printed_curve(problem, factors, **options):
    """Objective of the printed algorithm on a small problem."""
    relaxation = problem.options.relaxation
    _, curve = printed_algorithm(
        problem.X, factors, problem.costs, relaxation.reg, graph=problem.graph, graph_reg=problem.graph_reg, **options
    )
    return np.array(curve)


@pytest.mark.parametrize("modes", [(0, 1, 2), (1,), ()])
def test_the_printed_algorithm_is_that_of_literal_loops(modes):
    """Two iterations, entry by entry; reg = 0.1, alpha = 0.7, beta = 0.4."""
    problem, factors = random_problem((5, 4, 3), rank=2, modes=modes, seed=2, graph_reg=3.0)
    X, graph, lam, alpha, beta = problem.X, problem.graph.toarray(), 10.0, 0.7, 0.4
    b = beta if modes else 1.0
    A = [factor.copy() for factor in factors]
    curve = [oracles.objective(X, A, problem.costs, lam, alpha, beta, graph, 3.0)]
    for _ in range(2):
        for mode in (1, 2, 0):
            model = oracles.kruskal(A)
            psi = X.copy()
            if problem.costs[mode] is not None:
                for index in oracles.fibers(X.shape, mode):
                    plan = oracles.plan(X[index], model[index], problem.costs[mode], lam, alpha, beta)
                    psi[index] = plan.sum(axis=0)
            up, down = np.zeros_like(A[mode]), np.zeros_like(A[mode])
            for index in np.ndindex(*X.shape):
                others = np.prod([A[n][i] for n, i in enumerate(index) if n != mode], axis=0)
                up[index[mode]] += b * psi[index] / model[index] * others
                down[index[mode]] += b * others
            if mode == 0:
                up += 3.0 * graph.sum(axis=1)[:, None] * A[0]
                down += 3.0 * graph @ A[0]
            A[mode] = A[mode] * up / down
        curve.append(oracles.objective(X, A, problem.costs, lam, alpha, beta, graph, 3.0))
    options = {"reg_m_data": alpha, "reg_m_model": beta, "graph": graph, "graph_reg": 3.0}
    found, objective = printed_algorithm(X, factors, problem.costs, 0.1, n_iter=2, n_scalings=500, **options)
    for mine, expected in zip(found, A, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-9)
    np.testing.assert_allclose(objective, curve, rtol=1e-9)


def test_slip_1_printed_graph_gradient_climbs_the_penalty():
    """V and D exchanged: the printed sample update raises the objective at once and without bound."""
    problem, factors = random_problem((8, 4, 3), seed=1, graph_reg=50.0)
    printed = printed_curve(problem, factors, n_iter=5)
    corrected = fit(problem, factors, max_iter=10)
    assert printed[5] > 100 * printed[0]
    assert corrected.objective < corrected.objective_curve[0]


def test_slip_1_on_six_objects_of_coil20(coil20, rng):
    """mu = 1e4 as printed: the objective grows by orders of magnitude within four iterations."""
    images, labels = coil20
    X = images[labels < 6].astype(np.float64)
    X /= np.linalg.norm(X, axis=(1, 2), keepdims=True)
    factors = [rng.random((size, 6)) for size in X.shape]
    factors = [factor / factor.sum(axis=0) for factor in factors]
    factors[0] *= X.sum() / 6
    costs = (None, grid_cost(X.shape[1]), grid_cost(X.shape[2]))
    _, curve = printed_algorithm(X, factors, costs, 0.01, graph=KNNGraph().build(X), graph_reg=1e4, n_iter=4)
    assert np.diff(curve).min() > 0
    assert curve[-1] > 1e4 * curve[0]


def test_slip_1_gradient_of_the_printed_term_has_a_factor_four(rng):
    """The gradient of sum_ij V_ij |a_i - a_j|^2 is 4 L A; with the factor 1/4 it is mu L A."""
    graph, a = random_graph(6, rng), rng.random((6, 2))
    printed = sum(graph[i, j] * ((a[i] - a[j]) ** 2).sum() for i in range(6) for j in range(6))
    laplacian = np.diag(graph.sum(axis=1)) - graph
    placed = placed_graph(csr_array(graph), 3.0)
    assert np.isclose(penalty(NUMPY, a, placed), oracles.graph_penalty(a, graph, 3.0))
    moved = a.copy()
    moved[2, 1] += 1e-6
    slope = (penalty(NUMPY, moved, placed) - penalty(NUMPY, a, placed)) / 1e-6
    assert np.isclose(slope, 3.0 * (laplacian @ a)[2, 1], rtol=1e-4)
    assert np.isclose(printed, 4 * penalty(NUMPY, a, placed) / 3.0)


def test_slip_2_psi_n_alone_raises_the_objective():
    """Without a graph, so that only Psi_n alone is at work: F turns upwards; the joint rule falls."""
    problem, factors = random_problem((6, 5, 4), rank=4, graph=False, seed=1, zeros=0.6)
    printed = printed_curve(problem, factors, n_iter=150, n_scalings=150)
    joint = fit(problem, factors, max_iter=150, limits=TransportLimits(500, 1e-12)).objective_curve
    assert printed[-1] > 1.03 * printed.min()
    assert np.diff(joint).max() <= 1e-9
    assert joint[-1] < printed.min()


def test_slip_3_ratio_is_no_mm_step_beside_a_kl_term():
    """An entry that the data pull up and the graph holds down: the ratio overshoots, the root does not."""
    graph = placed_graph(csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])), 1e3)
    a, w, b = np.array([[1e-6], [1e-6]]), np.array([[1.0], [1e-6]]), 1.0

    def value(z):
        return b * (z.sum() - (w * np.log(z)).sum()) + oracles.graph_penalty(z, graph.matrix.toarray(), 1e3)

    gradient = gradient_of(NUMPY, a, graph, ())
    assert value(classic_ratio(np, a, w, b, gradient)) > 10 * value(a)
    assert value(mm_root(np, a, w, b, gradient)) < value(a)


def test_slip_4_tensor_distance_sums_transport_costs_not_inner_products(rng):
    """<C_n, T_n>, not <X_(n), Y_(n)>: a tensor is at distance zero from itself, and moving it costs the way."""
    from gwntf import wasserstein_tensor_distance

    X = rng.random((3, 4, 2))
    assert wasserstein_tensor_distance(X, X, reg=0) == pytest.approx(0, abs=1e-12)
    turned = X[:, ::-1]
    by_hand = np.abs(np.cumsum(X - turned, axis=1)).sum() / 3  # closed form on a line of four points
    assert wasserstein_tensor_distance(X, turned, (None, "grid", None), reg=0) == pytest.approx(by_hand)


def test_slip_5_without_the_simplex_the_graph_term_can_be_emptied(rng):
    """CP's scale freedom: moving scale from the samples elsewhere keeps the model and shrinks the penalty."""
    problem, factors = random_problem((6, 5, 4), seed=0)
    shrunk = [factors[0] / 100, factors[1] * 100, factors[2]]
    graph = placed_graph(problem.graph, 5.0)
    assert penalty(NUMPY, shrunk[0], graph) < 1e-3 * penalty(NUMPY, factors[0], graph)
    np.testing.assert_allclose(oracles.kruskal(shrunk), oracles.kruskal(factors))


def test_slip_5_normalised_samples_make_the_answer_independent_of_scale(rng):
    X = rng.random((8, 4, 3))
    settings = {"n_components": 2, "max_iter": 20, "tol": 0, "random_state": 0, "init": "nndsvd"}
    for sample_norm, same in (("l2", True), (None, False)):
        small, large = (GWNTF(sample_norm=sample_norm, **settings).fit(s * X).factors_[1] for s in (1.0, 1e3))
        assert np.allclose(small, large, rtol=1e-6) is same


def test_printed_rule_with_nothing_transported_is_plain_kl_factorization():
    """Where the errors have no effect the printed rule is the classic KL multiplicative update and decreases F."""
    problem, factors = random_problem((6, 5, 4), modes=(), graph=False, seed=3)
    assert np.diff(printed_curve(problem, factors, n_iter=20)).max() < 0
