"""The solver of unmixing: kernels, linear systems, objective and its bound, derivatives, plans. Oracles are dense."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from gwntf import GWNTF, AxisCost
from gwntf.backends.cpu import newton
from gwntf.backends.cpu.threads import Threads
from gwntf.unmixing import LineSolver, Solution, mean_displacements, moved_parts
from gwntf.unmixing.moves import FAR, _FarMass

RNG = np.random.default_rng(5)
POSITIONS = np.concatenate([np.linspace(-2.0, 3.0, 30, endpoint=False), np.linspace(3.0, 9.0, 25)])
SCALE = 6.0
EXACT = 1e-12
"""A gap at which derivatives can be compared with finite differences."""


def peaks(positions, centres, width):
    found = np.exp(-0.5 * ((positions[:, None] - centres) / width) ** 2)
    return found / found.sum(axis=0)


PARTS = 0.6 * peaks(POSITIONS, [0.0, 2.5, 6.0, 4.0], 0.5) + 0.4 * peaks(POSITIONS, [7.5, 5.0, 1.5, -1.0], 0.4)
SHARES = np.array([[0.5, 0.3, 0.2, 0.0], [0.1, 0.1, 0.7, 0.1], [0.0, 1.0, 0.0, 0.0]])


def drifted(shift):
    return 0.6 * peaks(POSITIONS, np.array([0.0, 2.5, 6.0, 4.0]) + shift, 0.5) + 0.4 * peaks(
        POSITIONS, np.array([7.5, 5.0, 1.5, -1.0]) + shift, 0.4
    )


ROWS = np.stack([SHARES[0] @ drifted(0.1).T, SHARES[1] @ drifted(-0.15).T, SHARES[2] @ drifted(0.0).T])
ROWS = ROWS + 0.001 * RNG.random(ROWS.shape)
ROWS /= ROWS.sum(axis=1, keepdims=True)
PRICES = np.array([2.0, 0.7, 0.3])


def solve(reg=0.05, gap=EXACT, rows=ROWS, prices=PRICES, parts=PARTS) -> Solution:
    return LineSolver(POSITIONS, SCALE, reg, gap).solve(rows, parts, prices, details=True)


def kernel(positions, drift):
    return np.exp(-np.abs(positions[:, None] - positions) / drift - 1)


class Literal(NamedTuple):
    """A dense transport between a row and a model."""

    value: float
    f: np.ndarray
    plan: np.ndarray


def transport(x, y, reg, price, scalings=20_000):
    """W(x, y) by scaling, one term of the objective at a time."""
    cost = np.abs(POSITIONS[:, None] - POSITIONS) / SCALE
    dense, power = np.exp(-cost / reg - 1), price / (price + reg)
    v = np.ones_like(x)
    for _ in range(scalings):
        u = (x / (dense @ v)) ** power
        new = (y / (u @ dense)) ** power
        if np.abs(np.log(new / v)).max() < 1e-15:
            break
        v = new
    u = (x / (dense @ v)) ** power
    plan = u[:, None] * dense * v
    kl = [
        (mass * np.log(mass / given)).sum() - mass.sum() + given.sum()
        for mass, given in ((plan.sum(1), x), (plan.sum(0), y))
    ]
    value = (cost * plan).sum() + reg * (plan * np.log(plan)).sum() + price * sum(kl)
    return Literal(value, reg * np.log(u), plan)


# --- kernels and linear systems -----------------------------------------------------------------------------


@st.composite
def lines(draw):
    """A line of uneven places, in units of the drift, and a generator for vectors."""
    gaps = draw(st.lists(st.floats(0.01, 20.0), min_size=2, max_size=25))
    seed = draw(st.integers(0, 2**20))
    return np.concatenate([[0.0], np.cumsum(gaps)]), np.random.default_rng(seed)


def filled(positions):
    steps = np.concatenate([[np.inf], np.diff(positions)])
    line = newton.Line(steps, *(np.zeros_like(steps) for _ in range(3)))
    newton.fill_line(line)
    return line


@given(lines())
def test_the_product_of_the_kernel_and_its_two_sides_equal_dense_ones(given_line):
    positions, rng = given_line
    line, values = filled(positions), rng.random(len(positions))
    dense, out = kernel(positions, 1.0), np.empty(len(positions))
    newton.multiply_kernel(values, line.decay, out)
    np.testing.assert_allclose(out, dense @ values, rtol=1e-12)
    left, right = np.empty_like(values), np.empty_like(values)
    newton.sum_sides(values, line.decay, left, right)
    np.testing.assert_allclose(left, np.e * np.tril(dense) @ values, rtol=1e-12)
    np.testing.assert_allclose(right, np.e * np.triu(dense) @ values, rtol=1e-12)


@given(lines())
def test_the_inverse_of_the_kernel_is_tridiagonal(given_line):
    positions, _ = given_line
    line = filled(positions)
    inverse = np.diag(line.diagonal) + np.diag(line.below[1:], -1) + np.diag(line.below[1:], 1)
    np.testing.assert_allclose(inverse @ kernel(positions, 1.0), np.eye(len(positions)), atol=1e-10)


@given(lines())
def test_mass_from_far_away_equals_that_of_the_dense_kernel(given_line):
    positions, rng = given_line
    drift = max(1.0, LineSolver.shortest(positions))
    values = rng.random(len(positions))
    far = np.where(
        (positions < (positions - FAR * drift)[:, None]) | (positions > (positions + FAR * drift)[:, None]),
        kernel(positions, drift),
        0.0,
    )
    found = _FarMass(LineSolver(positions, drift, 1.0)).of(values)
    np.testing.assert_allclose(found, far @ values, rtol=1e-10, atol=1e-300)


def empty_work(size, count):
    vectors = [np.zeros(size) for _ in range(11)]
    return newton.Work(
        *vectors,
        np.zeros((size, 2, count + 1)),
        np.zeros((size, 3)),
        np.zeros((size, count + 1)),
        np.zeros((count, count)),
        *(np.zeros(count) for _ in range(4)),
    )


@given(lines())
def test_the_block_tridiagonal_system_is_solved_as_the_dense_one(given_line):
    """Diagonals as in a Newton system: at least the marginals of the plan, so that the matrix is definite."""
    positions, rng = given_line
    size = len(positions)
    line, work, dense = filled(positions), empty_work(size, 2), kernel(positions, 1.0)
    u, v = rng.random(size) + 0.1, rng.random(size) + 0.1
    work.ku[:], work.kv[:] = dense @ u, dense @ v
    coupling = work.kv[:, None] * np.linalg.inv(dense) * work.ku
    norm = np.linalg.norm(coupling, 2)
    work.d1[:], work.d2[:] = norm * (1.1 + rng.random(size)), norm * (1.1 + rng.random(size))
    work.sides[:] = rng.random(work.sides.shape) - 0.5
    whole = np.block([[np.diag(work.d1), coupling], [coupling.T, np.diag(work.d2)]])
    wanted = np.linalg.solve(whole, np.concatenate([work.sides[:, 0], work.sides[:, 1]]))
    newton.solve_blocks(line, work)
    found = np.concatenate([work.sides[:, 0], work.sides[:, 1]])
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())


@given(st.integers(0, 2**20), st.integers(1, 6))
def test_bounded_quadratics_are_minimised_as_by_nonnegative_least_squares(seed, count):
    rng = np.random.default_rng(seed)
    matrix, side, lowest = rng.random((count + 4, count)), rng.normal(size=count + 4), -rng.random(count)
    found = np.zeros(count)
    newton.minimise_quadratic(matrix.T @ matrix, -matrix.T @ side, lowest, found)
    wanted = lowest + nnls(matrix, side - matrix @ lowest)[0]
    assert (found >= lowest).all()

    def loss(x):
        return 0.5 * np.sum((matrix @ x - side) ** 2)

    assert loss(found) <= loss(wanted) + 1e-6 * (1 + loss(wanted))


# --- objective, bound and shares ----------------------------------------------------------------------------


def test_shares_and_objective_are_those_of_a_literal_scaling_loop():
    found, reg = solve(), 0.05
    dense = np.exp(-np.abs(POSITIONS[:, None] - POSITIONS) / SCALE / reg - 1)
    for x, price, shares, value in zip(ROWS, PRICES, found.shares, found.objective, strict=True):
        power, w, u = price / (price + reg), np.ones(4), np.ones_like(x)
        for _ in range(20_000):
            y = found.parts @ w
            v = (y / (u @ dense)) ** power
            u = (x / (dense @ v)) ** power
            w = w * ((v * (u @ dense) / y) @ found.parts) / found.parts.sum(axis=0)
        np.testing.assert_allclose(shares, w, atol=1e-3 * w.max())
        assert value == pytest.approx(transport(x, found.parts @ shares, reg, price).value, rel=1e-9)
        assert value <= transport(x, found.parts @ w, reg, price).value + 1e-10


def test_the_minimum_is_that_of_the_loss_of_the_library():
    """A factorization with all components held has the same objective."""
    found = solve(reg=0.03, prices=np.full(3, 0.8))
    model = GWNTF(
        4,
        parts=PARTS.T,
        costs=(None, AxisCost(POSITIONS, SCALE)),
        reg=0.03,
        reg_m=0.8,
        graph_reg=0,
        sample_norm=None,
        max_iter=3000,
        tol=1e-9,
        random_state=0,
    ).fit(ROWS)
    assert found.objective.sum() == pytest.approx(model.objective_, rel=1e-5)
    np.testing.assert_allclose(found.shares, model.embedding_, atol=2e-3 * found.shares.max())


@pytest.mark.parametrize("reg", [0.004, 0.008, 0.05])
@pytest.mark.parametrize("gap", [1e-2, 1e-5, 1e-9])
def test_the_bound_is_below_the_minimum_and_the_gap_as_small_as_asked_for(reg, gap):
    exact, found = solve(reg), solve(reg, gap)
    assert (found.gap <= gap).all()
    assert (found.gap >= -1e-12).all()
    assert (found.bound <= exact.objective + 1e-13).all()
    assert (found.objective >= exact.bound - 1e-13).all()
    assert (found.objective - exact.objective <= gap * np.abs(found.objective) + 1e-13).all()


def test_shares_are_not_negative_and_vanish_for_an_absent_part():
    found = solve(0.008, 1e-9, rows=SHARES[:1] @ PARTS.T, prices=np.array([2.0]))
    assert (found.shares >= 0).all()
    assert found.shares[0, 3] < 0.02 * found.shares[0].sum()


def test_every_row_is_solved_as_if_alone_whatever_the_number_of_threads(monkeypatch):
    rows, prices = np.tile(ROWS, (40, 1)), np.tile(PRICES, 40)
    batch = solve(0.008, 1e-5, rows, prices)
    alone = [solve(0.008, 1e-5, row[None], np.array([price])) for row, price in zip(ROWS, PRICES, strict=True)]
    for name in ("shares", "objective", "bound", "n_iter"):
        expected = np.concatenate([getattr(one, name) for one in alone])
        np.testing.assert_array_equal(getattr(batch, name), np.concatenate([expected] * 40))
    monkeypatch.setattr(Threads, "count", lambda self: 4)
    np.testing.assert_array_equal(solve(0.008, 1e-5, rows, prices).shares, batch.shares)


def test_difficult_samples_are_solved_by_way_of_larger_values_of_reg():
    """Narrow peaks on a rough axis of almost the largest length: some samples need more than the first twenty steps."""
    rng, steps = np.random.default_rng(0), []
    for _ in range(120):
        positions = np.cumsum(rng.exponential(size=80))
        length = positions[-1] - positions[0]
        centres = rng.uniform(positions[0], positions[-1], (2, 4))
        parts, other = (np.exp(-0.5 * ((positions[:, None] - c) / (0.003 * length)) ** 2) + 1e-300 for c in centres)
        row = other @ rng.random(4)
        price = np.array([rng.choice([0.2, 1.0, 2.0, 10.0])])
        found = LineSolver(positions, length, 0.0021).solve((row / row.sum())[None], parts / parts.sum(axis=0), price)
        assert found.gap[0] <= 1e-5
        steps.append(found.n_iter[0])
    assert max(steps) > 30 > 20 > np.median(steps)


def test_zeros_in_a_row_have_no_mass():
    rows = np.where(np.arange(len(POSITIONS)) % 3 == 0, 0.0, ROWS)
    rows /= rows.sum(axis=1, keepdims=True)
    found = solve(0.02, 1e-9, rows)
    assert (found.details.u[:, ::3] == 0).all()
    assert np.isfinite(found.shares).all()
    assert (found.gap <= 1e-9).all()


# --- derivatives --------------------------------------------------------------------------------------------


def test_gradient_curvature_and_slopes_equal_finite_differences_of_the_literal_objective():
    reg, found, step = 0.05, solve(), 1e-4
    for row, (x, price) in enumerate(zip(ROWS, PRICES, strict=True)):
        w = np.maximum(found.shares[row], 0)
        middle = transport(x, found.parts @ w, reg, price)
        for k in range(4):
            change = step * np.eye(4)[k]
            up = transport(x, found.parts @ (w + change), reg, price)
            curvature = found.details.curvature[row]
            slope = (up.value - middle.value) / step - 0.5 * step * curvature[k, k]
            assert found.details.gradient[row, k] == pytest.approx(slope, abs=2e-5)
            if w[k] > 0.01:
                down = transport(x, found.parts @ (w - change), reg, price)
                second = (up.value - 2 * middle.value + down.value) / step**2
                assert curvature[k, k] == pytest.approx(second, rel=1e-3)
                np.testing.assert_allclose(found.details.slopes[row, k], (up.f - down.f) / (2 * step), atol=1e-4)


def test_the_curvature_is_symmetric_and_the_conditions_of_the_minimum_hold():
    details, shares = solve().details, solve().shares
    np.testing.assert_allclose(details.curvature, details.curvature.transpose(0, 2, 1), rtol=1e-6, atol=1e-9)
    assert (np.linalg.eigvalsh(details.curvature) > 0).all()
    assert (details.gradient >= -1e-6).all()
    assert np.abs(details.gradient * shares).max() < 1e-6


def test_derivatives_of_the_shares_in_the_sample_equal_finite_differences():
    """dw/dx = -A^-1 (df/dw)' diag(Phi / x), for a sample in which all shares are positive."""
    row, step = 1, 1e-5
    found = solve()
    details = found.details
    ratio = details.u[row] * details.kv[row] / ROWS[row]
    change = -np.linalg.solve(details.curvature[row], details.slopes[row] * ratio)
    assert found.shares[row].min() > 0.01
    for place in range(0, len(POSITIONS), 5):
        moved = np.stack([ROWS[row], ROWS[row]])
        moved[:, place] += [step * ROWS[row, place], -step * ROWS[row, place]]
        ends = solve(rows=moved, prices=PRICES[[row, row]]).shares
        wanted = (ends[0] - ends[1]) / (2 * step * ROWS[row, place])
        np.testing.assert_allclose(change[:, place], wanted, rtol=1e-3, atol=1e-3)


# --- plans --------------------------------------------------------------------------------------------------


def test_displacements_and_moved_parts_are_those_of_the_dense_plan():
    solver = LineSolver(POSITIONS, SCALE, 0.02, 1e-8)
    found = solver.solve(ROWS, PARTS, PRICES, details=True)
    displacements, moved = mean_displacements(solver, found), moved_parts(solver, ROWS, found)
    drift = SCALE * 0.02
    distances = POSITIONS[:, None] - POSITIONS
    near = np.abs(distances) <= FAR * drift
    for row, (u, v) in enumerate(zip(found.details.u, found.details.v, strict=True)):
        plan = u[:, None] * kernel(POSITIONS, drift) * v
        owned = found.parts * found.shares[row]
        owned /= owned.sum(axis=1, keepdims=True)
        for k in range(4):
            share = plan * owned[:, k]
            assert displacements[row, k] == pytest.approx((share * distances).sum() / share.sum(), abs=1e-10)
            whole = plan.sum(axis=1)
            np.testing.assert_allclose(moved[row, k], ROWS[row] * (share * near).sum(axis=1) / whole, atol=1e-13)
        np.testing.assert_allclose(plan.sum(axis=0), v * found.details.ku[row], rtol=1e-12)
    assert (moved.sum(axis=1) <= ROWS + 1e-15).all()


def test_an_axis_much_longer_than_the_drift_is_refused():
    with pytest.raises(ValueError, match=r"drift: got 0.01; expected at least 0.022, a 500th of the axis"):
        LineSolver(POSITIONS, 1.0, 0.01)
