"""What the figures show, read back from matplotlib and compared with independent computations."""

from __future__ import annotations

import importlib.util
import math

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.decomposition import PCA

from gwntf import GWNTF, NCP, NMF, InputError, TensorClustering, Unmixer, datasets, plots
from gwntf.core import MissingLibraryError
from gwntf.plots import (
    flatten_embedding,
    plot_bars,
    plot_components,
    plot_curves,
    plot_embedding,
    plot_flow,
    plot_images,
    plot_objective,
    plot_plan,
    plot_reconstructions,
    principal_plane,
)
from gwntf.plots.samples import MISSING

mpl.use("Agg")

IMAGES = np.random.default_rng(0).random((12, 5, 6))
TRANSPORT = {"max_iter": 5, "tol": 0, "graph_reg": 0, "reg": 0.05, "random_state": 0, "engine": "numpy"}


def patchy(model):
    """The same fitted model with components of very different mass, in an order that is not that of mass."""
    weights = np.array([1.0, 10.0, 0.1, 3.0])
    model.embedding_ = model.factors_[0] = model.embedding_ / model.embedding_.sum(axis=0) * weights
    return model


@pytest.fixture(scope="module")
def model():
    costs = (None, "grid", "grid")
    return patchy(GWNTF(4, costs=costs, missing="ignore", **TRANSPORT).fit(IMAGES))


@pytest.fixture(scope="module")
def curves():
    return GWNTF(3, costs=(None, "grid"), missing="ignore", **TRANSPORT).fit(IMAGES.reshape(12, 30))


@pytest.fixture(scope="module")
def stacks():
    return NCP(3, max_iter=5, tol=0, random_state=0).fit(np.random.default_rng(1).random((9, 4, 5, 2)))


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


def titles(panels):
    return [panel.get_title() for panel in np.ravel(panels)]


# --- components -----------------------------------------------------------------------------------------------


def test_components_are_drawn_by_mass_with_their_index_and_share(model, ax):
    panels = plot_components(model, ax=ax)
    assert titles(panels) == ["1: 71%", "3: 21%", "0: 7.1%", "2: 0.7%"]
    for panel, index in zip(panels, [1, 3, 0, 2], strict=True):
        component = np.outer(model.factors_[1][:, index], model.factors_[2][:, index])
        np.testing.assert_allclose(drawn(panel), component, rtol=1e-12)
        assert panel.images[0].get_clim() == pytest.approx((0, component.max()))


def test_mass_does_not_depend_on_how_a_model_scales_its_factors(rng, ax):
    model = NMF(3, max_iter=5, tol=0, random_state=0).fit(rng.random((8, 10)))
    total = model.embedding_ @ model.components_
    shares = [np.outer(model.embedding_[:, r], model.components_[r]).sum() / total.sum() for r in range(3)]
    order = sorted(range(3), key=lambda r: -shares[r])
    found = titles(plot_components(model, ax=ax))
    assert [int(title.split(":")[0]) for title in found] == order
    assert [float(title.split(":")[1].rstrip("%")) for title in found] == pytest.approx(
        [100 * shares[r] for r in order], abs=0.51
    )


@pytest.mark.parametrize(("components", "expected"), [(2, [1, 3]), ([0, 1], [1, 0]), (np.array([2]), [2])])
def test_components_can_be_chosen_by_number_or_by_index(model, ax, components, expected):
    found = titles(plot_components(model, components, ax=ax))
    assert [int(title.split(":")[0]) for title in found] == expected


def test_components_of_one_axis_are_curves(curves, ax):
    panels = plot_components(curves, ax=ax)
    order = np.argsort(-curves.embedding_.sum(axis=0))
    for panel, index in zip(panels, order, strict=True):
        np.testing.assert_allclose(panel.lines[0].get_ydata(), curves.components_[index])


def test_components_of_colour_images_are_coloured(rng, ax):
    model = NMF(2, max_iter=5, tol=0, random_state=0).fit(rng.random((6, 4, 5, 3)))
    panels = plot_components(model, [1], ax=ax)
    component = model.components_[1].reshape(4, 5, 3)
    np.testing.assert_allclose(panels[0].images[0].get_array(), component / component.max())


def test_components_of_higher_order_are_drawn_along_every_axis(stacks, ax):
    panels = plot_components(stacks, ax=ax)
    assert panels.shape == (3, 3)
    for row in panels:
        index = int(row[0].get_title().split(":")[0])
        for mode, panel in enumerate(row):
            column = stacks.factors_[mode + 1][:, index]
            np.testing.assert_allclose(panel.lines[0].get_ydata(), column / column.sum(), rtol=1e-10)


def test_an_image_can_be_drawn_along_its_axes(model, ax):
    panels = plot_components(model, 1, kind="modes", ax=ax)
    np.testing.assert_allclose(panels[0, 1].lines[0].get_ydata(), model.factors_[2][:, 1])


# --- reconstructions ------------------------------------------------------------------------------------------


def test_reconstructions_are_below_their_samples_on_one_scale_with_their_error(model, ax):
    few = 7 * IMAGES[:3]
    panels = plot_reconstructions(model, few, columns=2, ax=ax)
    assert panels.shape == (2, 3)
    for place, (sample, made) in enumerate(zip(few, model.reconstruct(few), strict=True)):
        above, below = panels[:, place]
        np.testing.assert_array_equal(drawn(above), sample)
        np.testing.assert_allclose(drawn(below), made)
        assert above.images[0].get_clim() == below.images[0].get_clim() == (0, max(sample.max(), made.max()))
        error = math.sqrt(((sample - made) ** 2).sum() / (sample**2).sum())
        assert below.get_title() == f"error {error:.2f}"
    places = [panel.get_position() for panel in (panels[0, 0], panels[1, 0], panels[0, 2])]
    assert places[0].y0 > places[1].y0 > places[2].y0
    assert places[0].x0 == places[2].x0


def test_missing_entries_are_marked_and_do_not_count_in_the_error(model, ax):
    gappy = IMAGES[:2].copy()
    gappy[0, 1:3, 2] = np.nan
    panels = plot_reconstructions(model, gappy, ax=ax)
    np.testing.assert_array_equal(drawn(panels[0, 0]), gappy[0])
    bad = panels[0, 0].images[0].get_cmap().get_bad()
    assert tuple(bad) == mpl.colors.to_rgba(MISSING)
    made = model.reconstruct(gappy)[0]
    seen = ~np.isnan(gappy[0])
    error = np.linalg.norm((gappy[0] - made)[seen]) / np.linalg.norm(gappy[0][seen])
    assert panels[1, 0].get_title() == f"error {error:.2f}"
    assert np.isfinite(drawn(panels[1, 0])).all()


def test_curves_have_axes(curves, ax):
    samples = curves.components_[:3] * 100
    for panels in (plot_components(curves, ax=ax), plot_reconstructions(curves, samples, ax=ax).ravel()):
        for panel in panels:
            low, high = panel.get_xlim()
            places = [place for place in panel.get_xticks() if low <= place <= high]
            assert len(places) >= 2
            assert all(place == int(place) for place in places)
            low, high = panel.get_ylim()
            values = [value for value in panel.get_yticks() if low <= value <= high]
            assert 0 in values
            assert len(values) >= 2
            assert [float(panel.yaxis.get_major_formatter()(value)) for value in values] == pytest.approx(values)
        assert panels[0].get_ylabel() == "value"
        assert panels[-1].get_xlabel() == "feature"


def test_missing_entries_of_curves_are_shaded(curves, ax):
    gappy = IMAGES.reshape(12, 30)[:1].copy()
    gappy[0, [4, 9]] = np.nan
    panel = plot_reconstructions(curves, gappy, ax=ax)[0, 0]
    np.testing.assert_array_equal(panel.lines[0].get_ydata(), gappy[0])
    middles = [patch.get_x() + patch.get_width() / 2 for patch in panel.patches]
    assert middles == pytest.approx([4, 9])


def test_samples_of_higher_order_are_means_over_their_further_axes(stacks, ax):
    X = np.random.default_rng(2).random((2, 4, 5, 2))
    panels = plot_reconstructions(stacks, X, ax=ax)
    np.testing.assert_allclose(drawn(panels[0, 1]), X[1].mean(axis=2))
    np.testing.assert_allclose(drawn(panels[1, 1]), stacks.reconstruct(X)[1].mean(axis=2))


def test_rows_and_folded_samples_are_drawn_alike():
    model = GWNTF(2, costs=(None, "grid", "grid"), sample_shape=(5, 6), **TRANSPORT)
    model.fit(IMAGES.reshape(12, 30))
    flat, folded = (plot_reconstructions(model, X) for X in (IMAGES[:2].reshape(2, 30), IMAGES[:2]))
    np.testing.assert_array_equal(drawn(flat[0, 1]), IMAGES[1])
    np.testing.assert_array_equal(drawn(flat[1, 1]), drawn(folded[1, 1]))
    np.testing.assert_array_equal(drawn(plot_plan(model, IMAGES[0])), drawn(plot_plan(model, IMAGES[0].ravel())))


# --- embedding and objective ----------------------------------------------------------------------------------


def test_the_embedding_is_drawn_in_its_principal_plane(model, ax):
    plot_embedding(model, ax=ax)
    rows = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    expected = PCA(2).fit_transform(rows)
    found = ax.collections[0].get_offsets()
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-10)
    assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()


def test_points_are_coloured_by_their_class_and_named(rng, ax):
    Z, labels = rng.random((6, 3)), np.array(["b", "a", "b", "c", "a", "b"])
    plot_embedding(Z, labels, ax=ax)
    np.testing.assert_array_equal(ax.collections[0].get_array(), [1, 0, 1, 2, 0, 1])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c"]
    colours = [handle.get_markerfacecolor() for handle in ax.get_legend().legend_handles]
    figure_colours = ax.collections[0].to_rgba([0, 1, 2])
    for shown, expected in zip(colours, figure_colours, strict=True):
        np.testing.assert_allclose(mpl.colors.to_rgba(shown), expected)


@pytest.fixture(scope="module")
def clusterer():
    return TensorClustering(3, max_iter=2, engine="numpy", random_state=0).fit(IMAGES)


def test_a_clusterer_is_drawn_with_the_embedding_of_its_model_and_its_labels(clusterer, ax):
    plot_embedding(clusterer, projection=lambda Z: Z[:, :2], ax=ax)
    points = ax.collections[0]
    np.testing.assert_allclose(points.get_offsets(), clusterer.model_.embedding_[:, :2])
    np.testing.assert_array_equal(points.get_array(), clusterer.labels_)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2"]
    other = plot_embedding(clusterer, np.arange(12) % 2, ax=Figure().subplots())
    np.testing.assert_array_equal(other.collections[0].get_array(), np.arange(12) % 2)


def test_many_classes_have_no_legend(rng, ax):
    assert plot_embedding(rng.random((25, 3)), np.arange(25), ax=ax).get_legend() is None


class Halved:
    def fit_transform(self, Z):
        return Z[:, :2] / 2


@pytest.mark.parametrize("projection", [lambda Z: Z[:, :2] / 2, Halved()])
def test_any_projection_to_the_plane_can_be_given(rng, ax, projection):
    Z = rng.random((6, 3))
    plot_embedding(Z, projection=projection, ax=ax)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), Z[:, :2] / 2)


def test_one_component_or_one_sample_has_no_principal_components():
    assert principal_plane(np.ones((4, 1))).tolist() == [[0, 0]] * 4
    assert principal_plane(np.ones((1, 3))).tolist() == [[0, 0]]


def test_t_sne_is_a_projection_to_the_plane(rng, ax):
    plot_embedding(rng.random((12, 3)), projection=flatten_embedding, ax=ax)
    assert np.ptp(ax.collections[0].get_offsets(), axis=0).min() > 0


def test_the_objective_is_drawn_against_the_iteration(model, ax):
    assert plot_objective(model, ax=ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.objective_curve_)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.arange(6))


def test_images_are_laid_out_in_rows(rng, ax):
    images = rng.random((5, 2, 3)) + 0.5
    plot_images(images, columns=3, ax=ax)
    canvas = ax.images[-1].get_array().filled(np.nan)
    assert canvas.shape == (2 * 3 - 1, 3 * 4 - 1)
    np.testing.assert_allclose(canvas[3:5, 4:7], images[4] / images[4].max())


# --- what all have in common ----------------------------------------------------------------------------------

CALLS = {
    "components": lambda model, **options: plot_components(model, **options),
    "modes": lambda model, **options: plot_components(model, kind="modes", **options),
    "reconstructions": lambda model, **options: plot_reconstructions(model, IMAGES[:2], **options),
    "flow": lambda model, **options: plot_flow(model, IMAGES[0], **options),
    "plan": lambda model, **options: plot_plan(model, IMAGES[0], **options),
    "embedding": lambda model, **options: plot_embedding(model, np.arange(12) % 3, **options),
    "objective": lambda model, **options: plot_objective(model, **options),
    "images": lambda model, **options: plot_images(IMAGES, **options),
    "bars": lambda model, **options: plot_bars({"a": 1.0}, **options),
    "curves": lambda model, **options: plot_curves({"a": [(0, 1), (1, 2)]}, x_label="x", y_label="y", **options),
}


@pytest.mark.parametrize("name", ["components", "modes", "reconstructions", "flow", "plan", "embedding", "objective"])
def test_models_of_tensors_are_drawn_too(name):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    data = torch.from_numpy(np.asarray(IMAGES, dtype=np.float32))
    model = GWNTF(3, max_iter=3, tol=0, random_state=0).fit(data)
    assert np.ravel(CALLS[name](model))[0].has_data()


def test_masked_samples_are_drawn_like_samples_with_nan():
    gaps = np.ma.masked_array(IMAGES, mask=False)
    gaps[:, 0, 0] = np.ma.masked
    model = GWNTF(3, max_iter=3, tol=0, random_state=0, missing="ignore").fit(gaps)
    panels = plot_reconstructions(model, gaps[:2])
    assert np.isnan(drawn(panels[0, 0])[0, 0])


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_figures_are_drawn_on_the_given_axes_only(model, call):
    figure = Figure(figsize=(8, 3))
    left, right = figure.subplots(1, 2)
    before, numbers = dict(mpl.rcParams), plt.get_fignums()
    found = call(model, ax=left)
    figure.canvas.draw()
    assert dict(mpl.rcParams) == before
    assert plt.get_fignums() == numbers
    assert figure.axes == [left, right]
    assert not right.has_data()
    if isinstance(found, np.ndarray):
        assert set(found.ravel()) <= set(left.child_axes)
        frame = left.get_window_extent()
        for panel in found.ravel():
            box = panel.get_window_extent()
            assert frame.x0 <= box.x0 < box.x1 <= frame.x1
            assert frame.y0 <= box.y0 < box.y1 <= frame.y1
    else:
        assert found is left


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_new_axes_are_made_where_none_are_given(model, call, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("a window was shown"))
    found = np.ravel(call(model))
    assert found[0].figure.number in plt.get_fignums()
    found[0].figure.canvas.draw()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_without_matplotlib_an_error_says_what_to_install(model, call, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'gwntf\[plots\]'"):
        call(model)


def test_importing_plots_does_not_load_matplotlib():
    import subprocess
    import sys

    code = "import sys, gwntf.plots; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


OF_MODELS = {name: call for name, call in CALLS.items() if name not in {"images", "bars", "curves"}}


@pytest.mark.parametrize("call", OF_MODELS.values(), ids=OF_MODELS)
def test_a_model_that_is_not_fitted_is_refused(call):
    with pytest.raises(InputError, match="model: got GWNTF, which is not fitted"):
        call(GWNTF(2))


def test_a_clusterer_that_is_not_fitted_is_refused():
    with pytest.raises(InputError, match="model_or_Z: got a TensorClustering that is not fitted"):
        plot_embedding(TensorClustering(3))


@pytest.mark.parametrize("name", sorted(set(OF_MODELS) - {"embedding"}))
def test_plots_of_a_factorization_say_which_one_a_clusterer_has(name, clusterer):
    with pytest.raises(InputError, match="model: got a TensorClustering; expected a fitted factorization, such as its"):
        OF_MODELS[name](clusterer)
    assert np.ravel(OF_MODELS[name](clusterer.model_))[0].has_data()


BAD = [
    (lambda model: plot_components(model, 5), "components: got 5; expected a number from 1 to 4"),
    (lambda model: plot_components(model, 0), "components: got 0"),
    (
        lambda model: plot_components(model, [0, 4]),
        "components: got the index 4; expected indices from 0 to 3",
    ),
    (lambda model: plot_components(model, [-1]), "components: got the index -1"),
    (lambda model: plot_components(model, [0.5]), r"components: got \[0.5\]"),
    (lambda model: plot_components(model, []), r"components: got \[\]"),
    (
        lambda model: plot_components(model, kind="curve"),
        "kind: got 'curve'; expected one of 'image', 'modes'",
    ),
    (lambda model: plot_components(model, columns=0), "columns: got 0"),
    (
        lambda model: plot_components(model, ax=plt.subplots(2)[1]),
        "ax: got ndarray; expected one matplotlib axes",
    ),
    (lambda model: plot_embedding(model, ax=Figure()), "ax: got Figure"),
    (lambda model: plot_flow(model, IMAGES[0], ax=[]), "ax: got list"),
    (lambda model: plot_reconstructions(model, IMAGES, ax=[]), "ax: got list"),
    (lambda model: plot_reconstructions(model, IMAGES[0]), r"X: got shape \(5, 6\)"),
    (lambda model: plot_reconstructions(model, IMAGES[:0]), r"X: got shape \(0, 5, 6\)"),
    (lambda model: plot_reconstructions(model, IMAGES[:, :4]), r"X: got shape \(12, 4, 6\)"),
    (lambda model: plot_reconstructions(model, IMAGES, kind="rgb"), "kind: got 'rgb'"),
    (lambda model: plot_flow(model, IMAGES), r"sample: got shape \(12, 5, 6\); expected one sample"),
    (lambda model: plot_flow(model, IMAGES[0], modes=(0, 1)), r"modes: got \(0, 1\)"),
    (lambda model: plot_flow(model, IMAGES[0], modes=(1, 1)), r"modes: got \(1, 1\)"),
    (lambda model: plot_flow(model, IMAGES[0], modes=1), "modes: got 1"),
    (lambda model: plot_flow(model, IMAGES[0], threshold=2), "threshold: got 2"),
    (lambda model: plot_flow(model, IMAGES[0], scale=0), "scale: got 0"),
    (lambda model: plot_plan(model, IMAGES[0], mode=0), "mode: got 0; expected an axis of X from 1 to 2"),
    (lambda model: plot_plan(model, IMAGES[0], mode=3), "mode: got 3"),
    (lambda model: plot_plan(model, IMAGES[0], mode="1"), "mode: got '1'"),
    (lambda model: plot_embedding(np.ones(3)), r"model_or_Z: got shape \(3,\)"),
    (lambda model: plot_embedding([["a"]]), "model_or_Z: got entries of type"),
    (lambda model: plot_embedding([[np.nan, 1]]), "model_or_Z: got entries that are not finite"),
    (
        lambda model: plot_embedding(model, [1, 2]),
        r"labels: got shape \(2,\); expected one label for each of the 12",
    ),
    (lambda model: plot_embedding(model, projection=3), "projection: got 3"),
    (
        lambda model: plot_embedding(model, projection=lambda Z: Z),
        r"projection: got a projection that returns shape",
    ),
    (lambda model: plot_images(IMAGES[0]), r"images: got shape \(5, 6\)"),
    (lambda model: plot_images(IMAGES, columns=-1), "columns: got -1"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named_before_any_work(model, call, message, monkeypatch):
    for method in ("transform", "reconstruct"):
        monkeypatch.setattr(model, method, lambda X: pytest.fail("work has started"), raising=False)
    with pytest.raises(InputError, match=message):
        call(model)


def test_negative_samples_are_refused(model):
    with pytest.raises(InputError, match="sample: got 30 negative entries"):
        plot_flow(model, -IMAGES[0])


def test_models_whose_output_is_a_data_frame_are_drawn():
    pytest.importorskip("pandas")
    model = GWNTF(2, costs=(None, "grid", "grid"), sample_shape=(5, 6), **TRANSPORT).fit(IMAGES.reshape(12, 30))
    model.set_output(transform="pandas")
    axes = plot_reconstructions(model, IMAGES.reshape(12, 30)[:3], ax=Figure().subplots())
    assert axes.shape == (2, 3)
    plot_flow(model, IMAGES.reshape(12, 30)[0], ax=Figure().subplots())


def test_unmixing_is_drawn_in_the_direction_and_with_the_names_of_the_user():
    data = datasets.load_example_spectra()
    result = Unmixer(data.references, positions=data.ppm).fit().unmix(data.mixtures)
    ax = Figure().subplots()
    top, bottom = plots.plot_unmixing(result, 3, axis="$ppm", descending=True, ax=ax)
    assert top.get_xlim()[0] > top.get_xlim()[1]
    assert bottom.get_xlim() == top.get_xlim()
    assert bottom.get_xlabel() == "\\$ppm"
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["mixture", "before moving", *result.names, "not explained"]
    black = top.lines[0].get_ydata()
    np.testing.assert_allclose(black, 100 * result.mixtures[3] / result.mixtures[3].max())
    bars = plots.plot_shares(result, 3, ax=Figure().subplots()).patches
    np.testing.assert_allclose([bar.get_width() for bar in bars], 100 * result.shares[3])
    for draw in (plots.plot_unmixing, plots.plot_shares):
        for wrong in (12, -1, 0.5):
            with pytest.raises(InputError, match="sample"):
                draw(result, wrong)
        with pytest.raises(InputError, match="result"):
            draw(result.shares)
