"""Stopping, starts, restarts, callbacks and statuses of the outer loop."""

from __future__ import annotations

import logging
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits

from gwntf import GNCP, GWNTF, MiniBatchGWNTF
from gwntf.backends import to_host
from gwntf.core import InputError, Status
from gwntf.data import DataTensor, KruskalRows, rank_one, reconstruct
from gwntf.losses import Plain
from gwntf.solver import ProgressBar, Steps, Stopping, following
from gwntf.solver.start import start_factors
from gwntf.transport import TransportLimits
from tests.backends import OTHERS
from tests.problems import fit, random_problem, solve, with_loss


def start(problem, **options):
    defaults = {"init": "random", "n_init": 1, "rng": np.random.RandomState(0)}
    quick = with_loss(problem, limits=TransportLimits(50, 1e-8))
    return solve(quick, 3, Stopping(max_iter=6, tol=0.0), **{**defaults, **options})


def test_stops_by_the_rule_of_the_objective():
    problem, factors = random_problem((6, 5, 4), seed=0)
    tol = 1e-3
    result = fit(problem, factors, max_iter=500, tol=tol)
    assert result.status is Status.CONVERGED
    curve, mass = result.objective_curve, problem.X.sum()

    def arrived(k):
        first, second = curve[k // 4] - curve[k // 2], curve[k // 2] - curve[k]
        small = tol * max(abs(curve[k]), mass)
        return first + second <= 0.1 * small or (first > second and second**2 / (first - second) <= small)

    last = len(curve) - 1
    assert arrived(last)
    assert not any(map(arrived, range(8, last)))
    much_longer = fit(problem, factors, max_iter=20 * last)
    assert curve[-1] - much_longer.objective <= 3 * tol * mass


def test_a_plateau_does_not_count_as_convergence():
    """F decreases slowly, then faster: there is no prediction."""
    falls = np.concatenate([[5.0], np.full(7, 1e-6), np.geomspace(1e-5, 1, 8)])
    curve = 100 - np.cumsum(falls)
    assert math.isinf(Stopping(tol=1e-6).remaining(curve, 1.0))
    slow = 1 + 1 / np.arange(1, 200)
    assert Stopping(tol=1e-6).remaining(slow, 1.0) == pytest.approx(1 / 199, rel=0.1)
    assert Stopping(tol=1e-6).remaining(np.ones(20), 1.0) == 0


def test_zero_tolerance_runs_every_iteration():
    problem, factors = random_problem((4, 3), seed=0)
    result = fit(problem, factors, max_iter=7)
    assert result.n_iter == 7
    assert len(result.objective_curve) == 8
    assert result.status is Status.MAX_ITER


def test_a_rising_objective_is_a_status_of_its_own():
    """The ratio overshoots where the data raise an entry whose neighbour stays small."""
    problem, factors = random_problem((2, 3), rank=1, modes=(), seed=1, graph_reg=1e3, zeros=0.0)
    X = problem.X * np.array([[1.0], [1e-6]])
    uneven = replace(problem, data=DataTensor.of_array(X), graph=csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])))
    start = [1e-6 * factors[0], factors[1]]
    result = fit(uneven, start, max_iter=50, tol=1e-4, plain=Plain("multiplicative"))
    assert result.status is Status.ROSE
    assert result.objective_curve[-1] > result.objective_curve[-2]


def test_a_diverging_fit_keeps_the_last_finite_factors():
    """A graph weight at the end of the number type."""
    problem, factors = random_problem((8, 4, 3), seed=1, graph_reg=1e38, zeros=0.0)
    single = replace(problem, data=DataTensor.of_array(problem.X.astype(np.float32)))
    result = fit(single, factors, max_iter=200)
    assert result.status is Status.DIVERGED
    assert all(np.isfinite(factor).all() for factor in result.factors)
    assert np.isfinite(result.objective)


def test_every_status_says_what_to_change():
    messages = [status.message for status in Status]
    assert len(set(messages)) == len(Status)
    assert "max_iter" in Status.MAX_ITER.message
    assert "TransportOptions" in Status.ROSE.message


def test_more_inner_steps_fall_faster():
    problem, factors = random_problem((10, 4, 3), seed=3, graph_reg=1e3)
    one = fit(problem, factors, max_iter=5, plain=Plain())
    ten = fit(problem, factors, max_iter=5, plain=Plain(row_steps=10))
    assert ten.objective < one.objective


def test_restarts_keep_the_best_objective_and_draw_anew():
    problem, _ = random_problem((8, 5, 4), seed=3)
    seen: dict[int, float] = {}

    def note(news):
        seen[news.restart] = news.objective

    best = start(problem, n_init=4, callbacks=[note])
    assert len(set(seen.values())) == 4
    assert best.objective == min(seen.values())
    first = start(problem)
    assert first.objective == seen[0]


def test_a_restart_knows_nothing_of_the_one_before():
    problem, _ = random_problem((8, 5, 4), seed=3)
    few = with_loss(problem, limits=TransportLimits(2, 0.0), plain=Plain())
    curves: dict[int, list[float]] = {0: [], 1: []}
    stopping = Stopping(max_iter=4, tol=0.0)
    rng = np.random.RandomState(0)
    solve(
        few,
        3,
        stopping,
        n_init=2,
        rng=rng,
        callbacks=[lambda n: curves[n.restart].append(n.objective)],
    )
    again = np.random.RandomState(0)
    second = [start_factors(problem.data, 3, "random", again) for _ in range(2)][1]
    alone = fit(few, second, max_iter=4, limits=TransportLimits(2, 0.0))
    np.testing.assert_allclose(curves[1], alone.objective_curve[1:], rtol=1e-12)


def test_stopping_ends_all_restarts():
    problem, _ = random_problem((8, 5, 4), seed=3)
    seen = []
    start(problem, n_init=4, callbacks=[lambda news: seen.append(news.restart) or True])
    assert seen == [0]


def test_restarts_share_kernels_and_graph(monkeypatch):
    from gwntf.losses import transport as transport_module

    calls = []
    original = transport_module.build_kernel
    monkeypatch.setattr(transport_module, "build_kernel", lambda *a: calls.append(1) or original(*a))
    problem, _ = random_problem((8, 5, 4), seed=3)
    start(problem, n_init=3)
    assert len(calls) == 3  # one per mode, not per restart


def test_callbacks_see_every_iteration_and_can_stop():
    problem, factors = random_problem((6, 5), seed=0)
    seen = []

    def watch(news):
        seen.append((news.iteration, news.objective, news.terms.total, len(news.factors)))
        return news.iteration == 3

    result = fit(problem, factors, max_iter=10, callbacks=[watch, lambda news: None])
    assert [entry[0] for entry in seen] == [1, 2, 3]
    assert result.status is Status.STOPPED
    np.testing.assert_array_equal([entry[1] for entry in seen], result.objective_curve[1:])
    assert all(entry[1] == entry[2] and entry[3] == 2 for entry in seen)


@pytest.mark.parametrize("engine", ["numpy", *OTHERS])
@pytest.mark.parametrize("kind", [GWNTF, GNCP, MiniBatchGWNTF])
def test_what_a_callback_does_to_the_factors_does_not_change_the_fit(kind, engine):
    X = np.random.default_rng(0).random((12, 5, 4))
    model = kind(3, tol=0, random_state=0, engine=engine, dtype="float64")
    model.set_params(**({"max_epochs": 2, "batch_size": 5} if kind is MiniBatchGWNTF else {"max_iter": 5}))
    wanted, seen = clone(model).fit(X), []

    def spoil(news):
        seen.append([to_host(factor).copy() for factor in news.factors])
        for factor in news.factors:
            factor[...] = 7.0

    found = clone(model).set_params(callbacks=[spoil]).fit(X)
    assert np.array_equal(found.objective_curve_, wanted.objective_curve_)
    for one, other in zip(found.factors_, wanted.factors_, strict=True):
        np.testing.assert_array_equal(one, other)
    if kind is not MiniBatchGWNTF:  # whose last iteration is a batch
        for one, other in zip(seen[-1], wanted.factors_, strict=True):
            np.testing.assert_array_equal(one, other)


def test_progress_bar_counts_iterations(capsys):
    problem, factors = random_problem((6, 5), seed=0)
    with following([ProgressBar()], 4) as callbacks:
        fit(problem, factors, max_iter=4, callbacks=callbacks)
    assert "4/4" in capsys.readouterr().err


def test_callbacks_are_notified_of_the_begin_and_the_end_of_a_fit():
    """Also where the fit or a later callback fails; only callbacks that have begun are ended."""

    class Recorder:
        def __init__(self, fail=False):
            self.calls, self.fail = [], fail

        def on_fit_begin(self, iterations):
            self.calls.append(iterations)
            if self.fail:
                raise OSError("no terminal")

        def on_fit_end(self):
            self.calls.append("end")

    first, failing = Recorder(), Recorder(fail=True)
    with following([first, print], 4) as callbacks:
        assert callbacks == [first, print]
    assert first.calls == [4, "end"]
    with pytest.raises(ZeroDivisionError), following([first], 5):
        raise ZeroDivisionError
    assert first.calls[2:] == [5, "end"]
    with pytest.raises(OSError, match="no terminal"), following([first, failing], 7):
        pass
    assert first.calls[4:] == [7, "end"]
    assert failing.calls == [7]


def test_progress_is_logged(caplog):
    problem, factors = random_problem((6, 5), seed=0)
    with caplog.at_level(logging.DEBUG, logger="gwntf"):
        fit(problem, factors, max_iter=2)
    text = caplog.text
    assert "iteration 2" in text
    assert "max_iter after 2 iterations" in text


def test_random_starts_have_the_mass_of_the_data_and_lie_on_the_simplex():
    problem, _ = random_problem((6, 5, 4), seed=0)
    for init in ("random", "nndsvd"):
        factors = start_factors(problem.data, 3, init, np.random.RandomState(0))
        assert math.isclose(reconstruct(factors).sum(), problem.X.sum(), rel_tol=1e-10)
        assert all(np.allclose(factor.sum(axis=0), 1) for factor in factors[1:])
        assert min(factor.min() for factor in factors) > 0


def test_holed_starts_have_the_mass_of_the_observed_entries(rng):
    observed = rng.random((6, 5, 4)) < 0.6
    tensor = DataTensor.of_array(np.where(observed, rng.random((6, 5, 4)), 0), observed)
    factors = start_factors(tensor, 3, "random", np.random.RandomState(0))
    assert math.isclose((reconstruct(factors) * observed).sum(), tensor.dense_block.values.sum(), rel_tol=1e-10)


def test_nndsvd_recovers_a_rank_one_tensor(rng):
    vectors = [rng.random(size) + 0.1 for size in (6, 5, 4)]
    tensor = DataTensor.of_array(np.einsum("i,j,k->ijk", *vectors))
    factors = start_factors(tensor, 1, "nndsvd", np.random.RandomState(0))
    np.testing.assert_allclose(reconstruct(factors), tensor.dense_block.values, rtol=1e-8)


def test_nndsvd_starts_closer_than_random():
    images = load_digits().images[:200]
    tensor = DataTensor.of_array(images)
    errors = {
        init: tensor.relative_error(KruskalRows(start_factors(tensor, 10, init, np.random.RandomState(0))))
        for init in ("random", "nndsvd")
    }
    assert errors["nndsvd"] < 0.9 * errors["random"]


def test_nndsvd_beyond_the_available_rank_is_random_and_positive():
    problem, _ = random_problem((4, 3, 2), seed=0)
    factors = start_factors(problem.data, 9, "nndsvd", np.random.RandomState(0))
    assert factors[0].shape == (4, 9)
    assert np.linalg.matrix_rank(factors[0]) == 4
    assert all(np.isfinite(factor).all() and (factor > 0).all() for factor in factors)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_nndsvd_does_not_depend_on_the_scale_of_the_data(scale, rng):
    matrix = rng.random((4, 2)) @ rng.random((2, 3))
    usual = start_factors(DataTensor.of_array(matrix), 5, "nndsvd", np.random.RandomState(0))
    scaled = start_factors(DataTensor.of_array(scale * matrix), 5, "nndsvd", np.random.RandomState(0))
    np.testing.assert_allclose(scaled[0], scale * usual[0], rtol=1e-6)
    assert scaled[0].sum(axis=0).min() > 1e-3 * scaled[0].sum()


def test_best_rank_one_tensor_is_nonnegative_and_stationary(rng):
    tensor = rng.random((4, 3, 5))
    vectors, weight = rank_one(tensor)
    assert all((vector >= 0).all() for vector in vectors)
    image = np.einsum("ijk,j,k->i", tensor, vectors[1], vectors[2])
    np.testing.assert_allclose(image, weight * vectors[0], rtol=1e-8)


def test_given_factors_are_the_first_point_of_the_curve():
    from gwntf.solver import evaluate

    problem, factors = random_problem((5, 4), seed=0, graph=False)
    result = fit(problem, factors, max_iter=1)
    expected = evaluate(problem, factors).total
    assert math.isclose(result.objective_curve[0], expected, rel_tol=1e-9)


def test_warm_starts_reach_solved_transports_that_cold_ones_do_not():
    """Few scalings per step: kept from step to step, they end near the solved problem."""
    problem, factors = random_problem((8, 6, 5), seed=4, reg=0.01, graph=False)
    few = TransportLimits(3, 0.0)
    exact = fit(problem, factors, max_iter=40).objective
    warm = abs(fit(problem, factors, max_iter=40, limits=few).objective - exact)
    cold = abs(fit(problem, factors, max_iter=40, limits=few, warm_limit=0).objective - exact)
    assert warm < 0.2 * cold


def test_dead_components_stay_finite():
    problem, factors = random_problem((5, 4, 3), seed=0)
    factors[0][:, 1] = 1e-320  # squares to nothing: the component dies in the first step
    factors[1][:, 1] *= 1e-5
    result = fit(problem, factors, max_iter=5)
    assert all(np.isfinite(factor).all() for factor in result.factors)
    steps = Steps(random_problem((5, 4), seed=0)[0])
    at, _ = steps.first([np.zeros((5, 1)), np.full((4, 1), 0.25)])
    np.testing.assert_array_equal(at.sums["product"][0], np.zeros((4, 1)))
    (dead,) = steps.loss.moved_rest(steps.blocks, at)
    np.testing.assert_array_equal(dead, np.full((4, 1), 0.25))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"init": "zeros"}, "init: got 'zeros'"),
        ({"init": "nndsvd", "n_init": 2}, "n_init: got 2"),
        ({"init": [np.ones((6, 3))]}, "init: got 1 factors; expected a sequence of 3 factors"),
        ({"init": [np.ones((6, 3)), np.ones((5, 2)), np.ones((4, 3))]}, r"init\[1\]: got shape \(5, 2\)"),
        ({"init": [np.ones((6, 3)), -np.ones((5, 3)), np.ones((4, 3))]}, r"init\[1\]: got negative"),
        ({"init": [np.ones((6, 3)), np.ones((5, 3)), np.zeros((4, 3))]}, r"init\[2\]: got only zeros"),
    ],
)
def test_bad_starts_are_told(options, message):
    problem, _ = random_problem((6, 5, 4), seed=0)
    with pytest.raises(InputError, match=message):
        start(problem, **options)
