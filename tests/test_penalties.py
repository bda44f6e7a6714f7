"""L1 and L2 penalties on the factors: steps, objective, descent, stationary points and new samples."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.sparse import csr_array
from sklearn.decomposition import NMF

from gwntf.core import InputError, Relaxation
from gwntf.data import DataTensor
from gwntf.geometry import Ties, resolve_costs
from gwntf.io import read_document, write_document
from gwntf.losses import (
    GraphGradient,
    LeastSquares,
    ObjectiveTerms,
    Penalties,
    Penalty,
    Plain,
    l2_on_simplex,
    transport_loss,
)
from gwntf.losses.graph import mm_root, tied_root
from gwntf.solver import RECORDS, Problem, Stopping, evaluate, project
from tests.oracles import kruskal
from tests.oracles import objective as literal_objective
from tests.problems import TIGHT, fit, random_problem, solve, with_loss
from tests.schemes import arrived_at, steps_of_new_samples
from tests.test_monotone import CASES, largest_rise

BOTH = Penalties(Penalty(0.3, 0.7), Penalty(0.2, 2.0))


def literal_penalty(factors, penalties, l1_of_others=True):
    """A loop over all entries."""
    total = 0.0
    for mode, factor in enumerate(factors):
        weights = penalties.others if mode else penalties.samples
        for entry in factor.ravel():
            total += (weights.l1 * abs(entry) if l1_of_others or not mode else 0) + weights.l2 / 2 * entry**2
    return total


def least_squares(problem):
    return replace(problem, loss=LeastSquares())


def run(problem, factors, max_iter):
    rng = np.random.RandomState(0)
    return solve(problem, factors[0].shape[1], Stopping(max_iter, 0.0), init=factors, rng=rng)


# --- steps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [Penalty(0.4, 0), Penalty(0, 3.0), Penalty(0.4, 3.0)])
@pytest.mark.parametrize("tied", [True, False])
def test_roots_minimise_their_majorizers(rng, penalty, tied):
    a, w, s, d, b, m, mu = *rng.random((3, 4, 2)), rng.random((4, 1)), 1.7, np.array([1.0, 2.5]), 3.0
    gradient = GraphGradient(mu, s, d) if tied else None
    weight = mu if tied else 0.0
    rows, of_new = mm_root(np, a, w, b, gradient, penalty), tied_root(np, w, b, m, gradient, penalty)
    for i, r in np.ndindex(4, 2):

        def value(z, new, i=i, r=r):  # z = log a
            x, mass = np.exp(z), m[r] if new else 1.0
            drawn = s[i, r] * (x if new else a[i, r] * z)
            graph = weight * (d[i, 0] * x**2 / 2 - drawn)
            return b * (mass * x - w[i, r] * z) + graph + penalty.l1 * x + penalty.l2 / 2 * x**2

        for found, new in ((rows, False), (of_new, True)):
            best = minimize_scalar(value, args=(new,), bounds=(-15, 5), method="bounded", options={"xatol": 1e-12})
            np.testing.assert_allclose(found[i, r], np.exp(best.x), rtol=1e-6)


@pytest.mark.parametrize("l2", [1e-3, 0.5, 20.0, 1e4])
def test_step_on_the_simplex_minimises_every_column(rng, l2):
    c = rng.random((5, 3)) * [1.0, 10.0, 0.01]
    found = l2_on_simplex(np, c, l2)
    for own, column in zip(c.T, found.T, strict=True):
        value = lambda a, own=own: (l2 / 2 * (a**2).sum() - (own * np.log(a)).sum()) / (own.sum() + l2)  # noqa: E731
        constraint = {"type": "eq", "fun": lambda a: a.sum() - 1}
        options = {"bounds": [(1e-9, 1)] * 5, "options": {"ftol": 1e-15, "maxiter": 500}}
        best = minimize(value, np.full(5, 0.2), method="SLSQP", constraints=constraint, **options)
        np.testing.assert_allclose(column, best.x, atol=1e-4)
        assert value(column) <= best.fun + 1e-12


@given(st.integers(0, 10_000), st.integers(1, 200), st.floats(-12, 12), st.floats(0, 100))
def test_step_on_the_simplex_is_exact_over_all_magnitudes(seed, size, weight, spread):
    rng, l2 = np.random.default_rng(seed), 10.0**weight
    c = 10 ** (-spread * rng.random((size, 4)))
    c[rng.random(c.shape) < 0.3] = 0
    a = l2_on_simplex(np, c, l2)
    np.testing.assert_allclose(a.sum(axis=0), 1, rtol=1e-13)
    t = c.sum(axis=0) - l2 * (a**2).sum(axis=0)  # the multiplier that the conditions imply
    scale = l2 * a**2 + np.abs(t) * a + c + 0.01 * (c.sum(axis=0) + l2) * a
    assert (np.abs(l2 * a**2 + t * a - c) <= 1e-10 * scale).all()


def test_without_penalties_results_are_equal_to_the_bit(rng):
    a, w, s, d = *rng.random((3, 4, 2)), rng.random((4, 1))
    c = 1.3 * w + 0.7 * a * s
    before = 2 * c / (1.3 + np.sqrt(1.3 * 1.3 + 4 * 0.7 * d * c))
    np.testing.assert_array_equal(mm_root(np, a, w, 1.3, GraphGradient(0.7, s, d), Penalty()), before)
    problem, factors = random_problem((5, 4, 3))
    for plain in (problem, least_squares(problem)):
        with_none = replace(plain, penalties=Penalties(Penalty(0.0, 0.0), Penalty(0.0, 0.0)))
        one, other = run(plain, factors, 5), run(with_none, factors, 5)
        np.testing.assert_array_equal(one.objective_curve, other.objective_curve)
        assert one.terms.penalty == other.terms.penalty == 0


# --- the objective ---------------------------------------------------------------------------------------


def test_objective_equals_literal_loops():
    problem, factors = random_problem((4, 3, 2), modes=(0, 2), reg=0.2)
    penalized = replace(problem, penalties=BOTH)
    wanted = literal_penalty(factors, BOTH, l1_of_others=False)
    terms, graph = evaluate(penalized, factors), problem.graph.toarray()
    assert terms.penalty == pytest.approx(wanted, rel=1e-13)
    without = literal_objective(problem.X, factors, problem.costs, 5.0, 1.0, 1.0, graph, 5.0)
    assert terms.total == pytest.approx(without + wanted, rel=1e-9)
    free = evaluate(replace(least_squares(problem), penalties=BOTH, graph=None), factors)
    residual = ((problem.X - kruskal(factors)) ** 2).sum() / 2
    assert free.total == pytest.approx(residual + literal_penalty(factors, BOTH), rel=1e-12)


def test_terms_with_a_penalty_survive_a_file(tmp_path):
    terms = ObjectiveTerms((None, None), 1.0, 2.0, 0.25)
    write_document(tmp_path / "terms", "checkpoint", {"terms": terms}, RECORDS)
    assert read_document(tmp_path / "terms", "checkpoint", RECORDS)["terms"] == terms
    assert terms.total == 3.25


@settings(max_examples=25)
@given(
    case=st.sampled_from(CASES),
    seed=st.integers(0, 10_000),
    graph=st.booleans(),
    scheme=st.sampled_from([None, Plain(), Plain(row_steps=4)]),
    weights=st.lists(st.sampled_from([0.0, 0.1, 3.0, 100.0]), min_size=4, max_size=4),
)
def test_objective_never_rises(case, seed, graph, scheme, weights):
    problem, factors = random_problem(case[0], modes=case[1], seed=seed, graph=graph, beta=0.6)
    penalties = Penalties(Penalty(*weights[:2]), Penalty(*weights[2:]))
    problem = replace(problem, penalties=penalties)
    transported = fit(problem, factors, max_iter=8, plain=scheme)
    assert largest_rise(transported.objective_curve) <= 1e-9
    for factor in transported.factors[1:]:
        np.testing.assert_allclose(factor.sum(axis=0), 1)
    assert largest_rise(run(least_squares(problem), factors, 25).objective_curve) <= 1e-12


def slopes(problem, factors, mode, step=1e-6):
    """Derivatives of F in the entries of a factor, by central differences."""
    found = np.zeros_like(factors[mode])
    for place in np.ndindex(found.shape):
        ends = [[factor.copy() for factor in factors] for _ in range(2)]
        ends[0][mode][place] -= step
        ends[1][mode][place] += step
        below, above = (evaluate(problem, end).total for end in ends)
        found[place] = (above - below) / (2 * step)
    return found


@pytest.mark.parametrize("update", ["mm", "multiplicative"])
@pytest.mark.parametrize("modes", [(), (1,)], ids=["KL", "transport"])
def test_fixed_points_on_the_simplex_are_stationary(modes, update):
    problem, factors = random_problem((5, 4), rank=2, modes=modes, seed=1, reg=0.3, beta=0.6, graph_reg=2.0, zeros=0)
    problem = with_loss(replace(problem, penalties=BOTH), plain=Plain(update, 2))
    found = run(problem, factors, 2000).factors
    raised = [factor + 1e-5 for factor in found]  # differences need room below
    samples, parts = (slopes(problem, raised, mode) for mode in (0, 1))
    np.testing.assert_allclose(np.minimum(samples, found[0]), 0, atol=2e-3)
    multiplier = (parts * found[1]).sum(axis=0)
    np.testing.assert_allclose(np.minimum(parts - multiplier, found[1]), 0, atol=2e-3)


def test_fixed_points_of_least_squares_are_stationary_and_those_of_literal_ratios():
    problem, (a, h) = random_problem((5, 4), rank=2, seed=2, graph_reg=0.2, zeros=0)
    problem = replace(problem, loss=LeastSquares(), penalties=Penalties(Penalty(0.05, 0.1), Penalty(0.02, 0.2)))
    found = run(problem, [a, h], 3000)
    X, V = problem.X, problem.graph.toarray()
    a, h, D = a * h.sum(axis=0), h / h.sum(axis=0), V.sum(axis=1)[:, None]
    for _ in range(3000):
        h = h * (X.T @ a) / (h @ (a.T @ a) + 0.02 + 0.2 * h)
        a = a * (X @ h + 0.2 * V @ a) / (a @ (h.T @ h) + 0.2 * D * a + 0.05 + 0.1 * a)
    assert evaluate(problem, [a, h]).total == pytest.approx(found.objective, rel=1e-9)
    for mode, factor in enumerate((a, h)):
        derivative = slopes(problem, [a + 1e-7, h + 1e-7], mode, 1e-7)
        np.testing.assert_allclose(np.minimum(derivative, factor), 0, atol=1e-4)


def test_least_squares_of_a_matrix_reaches_the_objective_of_scikit_learn(rng):
    X = rng.random((20, 4)) @ rng.random((4, 12)) + 0.05 * rng.random((20, 12))
    W, H = rng.random((20, 3)) + 0.1, rng.random((3, 12)) + 0.1
    H /= H.sum(axis=1, keepdims=True)
    alphas, share = (0.01, 0.02), 0.4
    scales = (alphas[0] * 12, alphas[1] * 20)  # scikit-learn multiplies by the numbers of features and samples
    penalties = Penalties(*(Penalty(scale * share, scale * (1 - share)) for scale in scales))
    peer = NMF(3, init="custom", solver="cd", alpha_W=alphas[0], alpha_H=alphas[1], l1_ratio=share, tol=1e-9)
    peer.set_params(max_iter=5000)
    embedding = peer.fit_transform(X, W=W.copy(), H=H.copy())
    wanted = ((X - embedding @ peer.components_) ** 2).sum() / 2
    wanted += literal_penalty([embedding, peer.components_], penalties)
    found = run(Problem(DataTensor.of_array(X), LeastSquares(), penalties=penalties), [W, H.T], 5000)
    assert found.objective == pytest.approx(wanted, rel=0.01)
    assert found.terms.penalty > 0.05 * wanted


# --- where it is refused, and new samples -----------------------------------------------------------------


def test_bad_penalties_are_refused():
    for weights in ((-1.0, 0.0), (0.0, np.nan), (np.inf, 0.0)):
        with pytest.raises(InputError, match="nonnegative"):
            Penalty(*weights)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("modes", [None, (), (1,), (1, 2)], ids=["least squares", "KL", "one mode", "two modes"])
def test_no_step_raises_the_objective_of_any_new_sample(rng, modes, tied):
    X = rng.random((3, 4, 3))
    specs = [None, *("grid" if mode in (modes or ()) else None for mode in (1, 2))]
    costs = resolve_costs(specs, DataTensor.of_array(X))
    loss = LeastSquares() if modes is None else transport_loss(costs, Relaxation(0.1, 1.0, 0.7), TIGHT)
    components = [rng.random((size, 2)) for size in (4, 3)]
    components = [factor / factor.sum(axis=0) for factor in components]
    weights, training, penalty = rng.random((3, 6)), 4 * rng.random((6, 2)), Penalty(0.3, 2.0)
    ties = Ties(csr_array(weights), training, 0.8) if tied else None

    def values(a):
        """Of every sample by itself."""
        found = []
        for x, row, own in zip(X, a, weights, strict=True):
            alone = evaluate(Problem(DataTensor.of_array(x[None]), loss), [row[None], *components]).total
            apart = 0.4 * sum(own[j] * ((row - training[j]) ** 2).sum() for j in range(6)) if tied else 0.0
            found.append(alone + apart + sum(0.3 * entry + entry**2 for entry in row))
        return np.array(found)

    def after(steps, tol=0.0):
        return project(DataTensor.of_array(X), loss, components, Stopping(steps, tol), ties, penalty)[0]

    steps = steps_of_new_samples(DataTensor.of_array(X), loss, components, 60, ties, penalty)
    curve = np.array(steps[-1].curve)
    assert (np.diff(curve, axis=0) <= 0).all()
    for going, value in zip(steps, curve, strict=True):  # the result of a step is not worse than where it began
        assert (values(going.past) <= value + 1e-9 * np.abs(value)).all()
    best = after(400)
    for place, factor in itertools.product(range(2), (0.99, 1.01)):  # a minimum along every coordinate
        moved = best.copy()
        moved[:, place] *= factor
        assert (values(moved) >= values(best) - 1e-7).all()
    arrived, early = np.array([arrived_at(going, 1e-2) for going in steps]), after(400, 1e-2)
    for sample, step in enumerate(np.argmax(arrived, axis=0)):
        assert arrived[step, sample]
        np.testing.assert_allclose(early[sample], steps[step].past[sample], rtol=1e-9)
