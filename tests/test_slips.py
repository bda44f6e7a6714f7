"""The slips of the paper, one test each; `docs/mathematics.md` refers to these by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from gwntf import GWNTF
from gwntf.backends import get_backend
from gwntf.core import Status
from gwntf.data import DataTensor
from gwntf.geometry import cut_graph
from gwntf.losses.graph import classic_ratio, mm_root, penalty, pull_of
from gwntf.transport import TransportLimits
from tests import oracles
from tests.problems import fit, random_graph, random_problem

NUMPY = get_backend("numpy")


def placed_graph(graph, weight):
    """The graph of all samples as a fit has it."""
    graphs, _ = cut_graph(graph, weight, [slice(0, graph.shape[0])], np.float64)
    return graphs[0].on(NUMPY)


def test_slip_1_printed_graph_gradient_climbs_the_penalty():
    """V and D exchanged: the printed sample update raises the objective at once and without end."""
    problem, factors = random_problem((8, 4, 3), seed=1, graph_reg=50.0)
    printed = fit(problem, factors, max_iter=10, update="paper")
    corrected = fit(problem, factors, max_iter=10)
    assert printed.objective_curve[5] > 100 * printed.objective_curve[0]
    assert corrected.objective < corrected.objective_curve[0]


def test_slip_1_on_six_objects_of_coil20(coil20):
    """mu = 1e4 as printed: the objective grows by orders of magnitude within five iterations."""
    images, labels = coil20
    model = GWNTF(6, costs=(None, "grid", "grid"), update="paper", max_iter=5, tol=0, random_state=0)
    with np.errstate(all="ignore"):
        model.fit(images[labels < 6])
    assert model.objective_curve_[-1] > 1e4 * model.objective_curve_[0]


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
    limits = TransportLimits(500, 1e-12)
    printed = fit(problem, factors, max_iter=150, update="paper", limits=limits).objective_curve
    joint = fit(problem, factors, max_iter=150, limits=limits).objective_curve
    assert printed[-1] > 1.03 * printed.min()
    assert np.diff(joint).max() <= 1e-9
    assert joint[-1] < printed.min()


def test_slip_3_ratio_is_no_mm_step_beside_a_kl_term():
    """An entry that the data pull up and the graph holds down: the ratio overshoots, the root does not."""
    graph = placed_graph(csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])), 1e3)
    a, w, b = np.array([[1e-6], [1e-6]]), np.array([[1.0], [1e-6]]), 1.0

    def value(z):
        return b * (z.sum() - (w * np.log(z)).sum()) + oracles.graph_penalty(z, graph.matrix.toarray(), 1e3)

    pull = pull_of(NUMPY, a, graph, ())
    assert value(classic_ratio(np, a, w, b, pull)) > 10 * value(a)
    assert value(mm_root(np, a, w, b, pull)) < value(a)


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
    """Away from the slips the printed rule is the classic KL multiplicative update and falls."""
    problem, factors = random_problem((6, 5, 4), modes=(), graph=False, seed=3)
    result = fit(problem, factors, max_iter=20, update="paper")
    assert np.diff(result.objective_curve).max() < 0


def test_a_diverging_fit_keeps_the_last_finite_factors():
    problem, factors = random_problem((8, 4, 3), seed=1, graph_reg=1e8, zeros=0.0)
    single = replace(problem, data=DataTensor.of_array(problem.X.astype(np.float32)))
    result = fit(single, factors, max_iter=200, update="paper")
    assert result.status is Status.DIVERGED
    assert all(np.isfinite(factor).all() for factor in result.factors)
    assert np.isfinite(result.objective)
