"""The drawn flows of mass against literal plans and POT."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import ot
import pytest
from matplotlib.figure import Figure

from gwntf import GWNTF, NCP, SDNMF, InputError
from gwntf.plots import plot_components, plot_flow, plot_plan, plot_reconstructions
from tests import oracles

mpl.use("Agg")

IMAGES = np.random.default_rng(0).random((12, 5, 6))
TRANSPORT = {"max_iter": 5, "tol": 0, "graph_reg": 0, "reg": 0.05, "random_state": 0, "engine": "numpy"}


@pytest.fixture(scope="module")
def model():
    return GWNTF(4, costs=(None, "grid", "grid"), missing="ignore", **TRANSPORT).fit(IMAGES)


@pytest.fixture(scope="module")
def curves():
    return GWNTF(3, costs=(None, "grid"), missing="ignore", **TRANSPORT).fit(IMAGES.reshape(12, 30))


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(autouse=True)
def _no_figures_stay():
    yield
    plt.close("all")


def drawn(panel):
    """The array of an image, with NaN where it is masked."""
    return np.ma.filled(panel.images[0].get_array().astype(float), np.nan)


def sample_and_model(model, sample, observed=True):
    """One sample as the loss takes it, and its model, both divided by the norm of the sample."""
    sample = np.where(observed, sample, np.nan)
    rebuilt = model.inverse_transform(model.transform(sample[None]))[0].reshape(sample.shape)
    share = np.mean(np.broadcast_to(observed, sample.shape))
    norm = np.sqrt(np.nansum(sample**2) / share)
    return np.where(observed, sample, 0) / norm, np.where(observed, rebuilt, 0) / norm


def literal_plans(model, x, y, axis):
    """Plan of every fiber of an image along an axis, by literal scalings."""
    cost = np.abs(np.subtract.outer(np.arange(x.shape[axis]), np.arange(x.shape[axis]))) / (x.shape[axis] - 1)
    pairs = zip(np.moveaxis(x, axis, 1), np.moveaxis(y, axis, 1), strict=True)
    return [oracles.plan(a, b, cost, 1 / model.reg, 1.0, 1.0) for a, b in pairs]


def mean_move(plan, places):
    with np.errstate(invalid="ignore"):
        return plan @ places / plan.sum(axis=1) - places


def sparse_sample():
    sample = IMAGES[0].copy()
    sample[:, 1] = sample[3, 2] = 0
    return sample


@pytest.mark.parametrize("mode", [1, 2])
def test_the_plan_is_the_sum_of_the_plans_of_all_fibers(model, ax, mode):
    x, y = sample_and_model(model, sparse_sample())
    expected = sum(literal_plans(model, x, y, mode - 1))
    np.testing.assert_allclose(drawn(plot_plan(model, sparse_sample(), mode=mode, ax=ax)), expected, rtol=1e-5)


def test_the_plan_of_a_curve_equals_pot(curves, ax):
    sample = IMAGES[3].ravel()
    x, y = sample_and_model(curves, sample)
    cost = np.abs(np.subtract.outer(np.arange(30), np.arange(30))) / 29
    with pytest.warns(UserWarning, match="reg_type = entropy"):
        expected = ot.unbalanced.sinkhorn_unbalanced(
            x, y, cost + 0.05, 0.05, (1.0, 1.0), reg_type="entropy", numItermax=20_000, stopThr=1e-14
        )
    np.testing.assert_allclose(drawn(plot_plan(curves, sample, ax=ax)), expected, rtol=1e-4, atol=1e-12)


def arrows(ax):
    """Where arrows begin (rows and columns) and how far they go (down and across)."""
    quiver = next(one for one in ax.collections if hasattr(one, "U"))
    return np.stack([quiver.Y, quiver.X], axis=1), np.stack([quiver.V, quiver.U], axis=1)


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_arrows_go_to_the_mean_place_of_the_mass_of_their_pixel(model, ax, scale):
    x, y = sample_and_model(model, sparse_sample())
    down = np.stack([mean_move(plan, np.arange(5)) for plan in literal_plans(model, x, y, 0)], axis=1)
    across = np.stack([mean_move(plan, np.arange(6)) for plan in literal_plans(model, x, y, 1)])
    plot_flow(model, sparse_sample(), threshold=0, scale=scale, ax=ax)
    places, moves = arrows(ax)
    assert {tuple(place) for place in places} == {*zip(*np.nonzero(x), strict=True)}
    for (row, column), move in zip(places.astype(int), moves, strict=True):
        np.testing.assert_allclose(move, scale * np.array([down[row, column], across[row, column]]), atol=1e-4)
    np.testing.assert_allclose(drawn(ax), x)
    mean = np.nansum(x * np.hypot(down, across)) / x.sum()
    assert ax.get_title() == f"flow of mass: {mean:.2f} pixels on average"


def test_circles_have_areas_in_proportion_to_the_model(model, ax):
    _, y = sample_and_model(model, IMAGES[0])
    plot_flow(model, IMAGES[0], ax=ax)
    circles = next(one for one in ax.collections if not hasattr(one, "U"))
    areas = circles.get_widths() ** 2
    columns, rows = circles.get_offsets().astype(int).T
    np.testing.assert_allclose(areas / areas.max(), y[rows, columns] / y.max())


def test_faint_pixels_have_no_arrows(model, ax):
    plot_flow(model, IMAGES[0], threshold=0.5, ax=ax)
    places, _ = arrows(ax)
    expected = np.argwhere(IMAGES[0] >= 0.5 * IMAGES[0].max())
    np.testing.assert_array_equal(places, expected)


def test_unobserved_entries_neither_send_nor_receive_mass(model, ax):
    observed = np.ones((5, 6), bool)
    observed[1:3, 2] = False
    gappy = np.where(observed, IMAGES[0], np.nan)
    x, y = sample_and_model(model, IMAGES[0], observed)
    expected = sum(literal_plans(model, x, y, 0))
    np.testing.assert_allclose(drawn(plot_plan(model, gappy, mode=1, ax=ax)), expected, rtol=1e-5)
    places, _ = arrows(plot_flow(model, gappy, threshold=0, ax=Figure().subplots()))
    assert len(places) == 28


def test_an_empty_sample_has_no_arrows_and_no_plan(model):
    places, _ = arrows(plot_flow(model, np.zeros((5, 6))))
    assert len(places) == 0
    assert not drawn(plot_plan(model, np.zeros((5, 6)))).any()
    plot_reconstructions(model, np.zeros((1, 5, 6)))[0, 0].figure.canvas.draw()


def test_a_model_in_single_precision_is_drawn_too(ax):
    model = GWNTF(2, costs=(None, "grid", "grid"), **TRANSPORT).fit(IMAGES.astype(np.float32))
    x, y = sample_and_model(model, IMAGES[0])
    expected = sum(literal_plans(model, x, y, 0))
    np.testing.assert_allclose(drawn(plot_plan(model, IMAGES[0], ax=ax)), expected, rtol=1e-3)
    assert len(plot_components(model)) == 2


def test_a_mode_that_is_not_transported_moves_nothing(ax):
    model = GWNTF(3, costs=(None, "grid", None), **TRANSPORT).fit(IMAGES)
    _, moves = arrows(plot_flow(model, IMAGES[0], ax=ax))
    assert np.abs(moves[:, 0]).max() > 0
    assert np.abs(moves[:, 1]).max() == 0


def test_one_plan_between_all_pixels_gives_both_coordinates(ax):
    model = SDNMF(3, **TRANSPORT).fit(IMAGES)
    x, y = sample_and_model(model, IMAGES[0])
    rows, columns = np.divmod(np.arange(30), 6)
    cost = np.abs(np.subtract.outer(rows, rows)) + np.abs(np.subtract.outer(columns, columns))
    plan = oracles.plan(x.ravel(), y.ravel(), cost / 9, 20.0, 1.0, 1.0)
    _, moves = arrows(plot_flow(model, IMAGES[0], threshold=0, ax=ax))
    expected = np.stack([mean_move(plan, rows), mean_move(plan, columns)], axis=1)
    np.testing.assert_allclose(moves, expected, atol=1e-4)
    np.testing.assert_allclose(drawn(plot_plan(model, IMAGES[0])), plan, rtol=1e-4)


def test_arrows_of_stacked_images_are_means_weighted_by_mass(ax):
    data = np.random.default_rng(3).random((8, 4, 5, 2))
    model = GWNTF(2, costs=(None, "grid", "grid", None), **TRANSPORT).fit(data)
    x, y = sample_and_model(model, data[0])
    plans = [literal_plans(model, x[..., layer], y[..., layer], 0) for layer in range(2)]
    down = np.zeros((4, 5))
    for column in range(5):
        pair = [plans[layer][column] for layer in range(2)]
        mass = [plan.sum(axis=1) for plan in pair]
        moved = sum(m * mean_move(plan, np.arange(4)) for m, plan in zip(mass, pair, strict=True))
        down[:, column] = moved / sum(mass)
    _, moves = arrows(plot_flow(model, data[0], threshold=0, ax=ax))
    np.testing.assert_allclose(moves[:, 0].reshape(4, 5), down, atol=1e-4)
    _, turned = arrows(plot_flow(model, data[0], threshold=0, modes=(2, 1), ax=Figure().subplots()))
    np.testing.assert_allclose(turned[:, 1].reshape(5, 4).T, down, atol=1e-4)


def test_flows_need_transported_modes_of_images(curves):
    least = NCP(2, max_iter=2, tol=0, random_state=0).fit(IMAGES)
    for call in (plot_flow, plot_plan):
        with pytest.raises(InputError, match="model: got NCP, whose loss transports nothing"):
            call(least, IMAGES[0])
    with pytest.raises(InputError, match="sample: got one axis; expected an image"):
        plot_flow(curves, IMAGES[0].ravel())
    half = GWNTF(2, costs=(None, "grid", None), **TRANSPORT).fit(IMAGES)
    with pytest.raises(InputError, match=r"mode: got 2; expected a transported axis of X \(1\)"):
        plot_plan(half, IMAGES[0], mode=2)
    none = GWNTF(2, costs=("cosine", None, None), **TRANSPORT).fit(IMAGES)
    with pytest.raises(InputError, match=r"modes: got \(1, 2\); expected a transported axis of X \(this model"):
        plot_flow(none, IMAGES[0])
