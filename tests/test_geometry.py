"""Costs and graphs against closed forms, scikit-learn and literal loops."""

from __future__ import annotations

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph

from gwntf.core import InputError
from gwntf.data import DataTensor
from gwntf.geometry import GRAPH_METRICS, check_costs, check_graph, grid_cost, neighbor_graph, resolve_costs
from gwntf.geometry.features import sample_features


def resolve(name, tensor, mode):
    specs = [None] * tensor.ndim
    specs[mode] = name
    return resolve_costs(specs, tensor)[mode]


def test_grid_costs_have_their_closed_form():
    expected = np.array([[0, 0.5, 1], [0.5, 0, 0.5], [1, 0.5, 0]])
    np.testing.assert_allclose(grid_cost(3), expected)
    np.testing.assert_allclose(grid_cost(3, power=2), expected**2)
    np.testing.assert_allclose(grid_cost(1), [[0]])


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_data_costs_compare_slices(metric, mode, rng):
    X = rng.random((5, 4, 3))
    slices = np.moveaxis(X, mode, 0).reshape(X.shape[mode], -1)
    expected = cdist(slices, slices, metric)
    if metric == "euclidean":
        expected = expected / expected.max()
    found = resolve(metric, DataTensor.of_array(X), mode)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    assert found.max() <= 1
    assert found.min() >= 0


@pytest.mark.parametrize("name", ["grid", "grid2", "cosine", "euclidean"])
def test_one_element_modes_cost_nothing(name, rng):
    np.testing.assert_array_equal(resolve(name, DataTensor.of_array(rng.random((1, 4))), 0), [[0]])


@pytest.mark.parametrize("holes", [False, True])
def test_identical_slices_cost_nothing(holes, rng):
    """Rounding errors of equal rows are not blown up by the scaling."""
    rows = np.tile(rng.random(64), (5, 1))
    tensor = DataTensor.of_array(rows, np.ones_like(rows, bool) if holes else None)
    assert resolve("euclidean", tensor, 0).max() == 0
    assert resolve("cosine", tensor, 0).max() < 1e-12


@pytest.mark.parametrize("name", ["cosine", "euclidean"])
def test_nothing_is_away_from_itself(name, rng):
    X = rng.random((5, 6))
    X[2] = 0
    np.testing.assert_array_equal(np.diag(resolve(name, DataTensor.of_array(X), 0)), 0)


def test_slices_that_share_no_entry_are_far_apart():
    X = np.array([[1.0, 2.0, 0, 0], [0, 0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])
    observed = X > 0
    for name in ("cosine", "euclidean"):
        cost = resolve(name, DataTensor.of_array(X, observed), 0)
        assert cost[0, 1] == cost.max() == 1


def test_arrays_are_never_rescaled(rng):
    cost = 7 * rng.random((3, 3))
    specs = check_costs([None, cost], (2, 3))
    np.testing.assert_array_equal(resolve_costs(specs, DataTensor.of_array(np.ones((2, 3))))[1], cost)


def test_auto_leaves_the_samples_out():
    assert check_costs("auto", (10, 4, 3)) == (None, "grid", "grid")


def test_costs_with_missing_entries_use_what_both_slices_have(rng):
    X = rng.random((4, 6))
    observed = np.ones((4, 6), bool)
    observed[0, :3], observed[1, 5], observed[2, 0] = False, False, False
    tensor = DataTensor.of_array(np.where(observed, X, 0), observed)
    found = resolve("cosine", tensor, 0)
    for i in range(4):
        for j in range(4):
            both = observed[i] & observed[j]
            cosine = X[i, both] @ X[j, both] / np.linalg.norm(X[i, both]) / np.linalg.norm(X[j, both])
            assert np.isclose(found[i, j], 1 - cosine, atol=1e-12)
    assert np.isfinite(resolve("euclidean", tensor, 1)).all()


def test_binary_graph_equals_scikit_learn(rng):
    X = rng.random((40, 3, 4))
    found = neighbor_graph(DataTensor.of_array(X), 5)
    directed = csr_array(kneighbors_graph(X.reshape(40, -1), 5, metric="cosine"))
    assert abs(found - directed.maximum(directed.T)).sum() == 0
    assert found.format == "csr"
    assert found.indices.dtype == np.int32


def test_euclidean_graph_equals_scikit_learn(rng):
    X = rng.random((40, 12)) * rng.random((40, 1))
    found = neighbor_graph(DataTensor.of_array(X), 4, metric="euclidean")
    directed = csr_array(kneighbors_graph(X, 4))
    assert abs(found - directed.maximum(directed.T)).sum() == 0


@given(seed=st.integers(0, 1000), size=st.integers(2, 25), neighbors=st.integers(1, 12))
def test_weights_have_their_closed_form(seed, size, neighbors):
    X = np.random.default_rng(seed).random((size, 6)) + 0.01
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    distance = cdist(unit, unit)
    np.fill_diagonal(distance, np.inf)
    order = np.sort(distance, axis=1)
    scale = order[:, min(7, size - 1) - 1]
    near = distance <= order[:, [min(neighbors, size - 1) - 1]]
    near = near | near.T
    with np.errstate(over="ignore"):
        weights = {
            "binary": np.ones_like(distance),
            "cosine": unit @ unit.T,
            "self-tuning": np.exp(-(distance**2) / np.outer(scale, scale)),
        }
    for name, expected in weights.items():
        found = neighbor_graph(DataTensor.of_array(X), neighbors, weight=name).toarray()
        np.testing.assert_allclose(found, np.where(near, expected, 0), atol=1e-6)
        np.testing.assert_array_equal(found, found.T)


def test_cosine_weights_on_a_euclidean_graph(rng):
    X = rng.random((20, 6))
    found = neighbor_graph(DataTensor.of_array(X), 3, weight="cosine", metric="euclidean").toarray()
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(found[found > 0], (unit @ unit.T)[found > 0])


def test_graph_of_holed_data_without_holes_is_the_plain_graph(rng):
    X = rng.random((30, 8))
    for metric in ("cosine", "euclidean"):
        for weight in ("binary", "cosine", "self-tuning"):
            plain = neighbor_graph(DataTensor.of_array(X), 4, weight=weight, metric=metric)
            seen = neighbor_graph(DataTensor.of_array(X, np.ones_like(X, bool)), 4, weight=weight, metric=metric)
            np.testing.assert_allclose(seen.toarray(), plain.toarray(), atol=1e-6)


def test_graph_ignores_entries_that_one_of_the_two_lacks():
    """Two samples that differ only where one was not observed are each other's neighbours."""
    rng = np.random.default_rng(0)
    X = rng.random((6, 10))
    X[1] = X[0]
    X[1, :4] = 0
    observed = np.ones_like(X, bool)
    observed[1, :4] = False
    graph = neighbor_graph(DataTensor.of_array(X, observed), 1).toarray()
    assert graph[0, 1] == 1


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("holes", [False, True])
def test_equal_samples_have_self_tuning_weight_one(metric, holes, rng):
    rows = np.repeat(rng.random((6, 50)), 10, axis=0)
    tensor = DataTensor.of_array(rows, np.ones_like(rows, bool) if holes else None)
    graph = neighbor_graph(tensor, 5, weight="self-tuning", metric=metric)
    assert set(graph.data) == {1.0}


def test_duplicates_zero_samples_and_single_samples_are_harmless():
    X = np.ones((12, 4))
    X[10:] = 0
    for weight in ("binary", "cosine", "self-tuning"):
        graph = neighbor_graph(DataTensor.of_array(X), 5, weight=weight)
        assert np.isfinite(graph.data).all()
        assert graph.diagonal().sum() == 0
    assert neighbor_graph(DataTensor.of_array(np.ones((1, 4)))).nnz == 0


def test_ready_graph_is_taken_without_loops():
    graph = np.array([[3.0, 1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(check_graph(graph, 2).toarray(), [[0, 1], [1, 0]])


def neighbours_of(graph):
    return [set(graph.indices[graph.indptr[i] : graph.indptr[i + 1]]) for i in range(graph.shape[0])]


def test_wasserstein_metric_is_the_transport_distance_of_the_fibers(rng):
    """On samples with one axis it is the exact distance of POT between histograms, for the cost |i - j|."""
    X = rng.random((12, 7))
    cost = np.abs(np.subtract.outer(np.arange(7.0), np.arange(7.0))) / 6
    scaled = X / X.sum(axis=1, keepdims=True)
    features, compared = sample_features(DataTensor.of_array(X), "wasserstein")
    assert compared == "manhattan"
    for i, j in [(0, 1), (3, 8), (10, 11)]:
        expected = ot.emd2(scaled[i], scaled[j], cost)
        np.testing.assert_allclose(np.abs(features[i] - features[j]).sum(), expected, atol=1e-12)


def test_wasserstein_metric_sums_over_axes(rng):
    X = rng.random((5, 4, 3))
    features, _ = sample_features(DataTensor.of_array(X), "wasserstein")
    mass = X / X.sum(axis=(1, 2), keepdims=True)
    expected = sum(
        np.abs(np.cumsum(mass[0] - mass[3], axis=axis)).sum() / (mass.shape[axis + 1] - 1) for axis in (0, 1)
    )
    np.testing.assert_allclose(np.abs(features[0] - features[3]).sum(), expected)


def test_gradient_metric_does_not_see_the_light(rng):
    """Two patterns under lights from all sides: gradients join the patterns, cosines join the lights."""
    patterns = rng.random((2, 12, 12))
    ramp = np.linspace(0, 1, 12)
    lights = [10 * (a * ramp[:, None] + b * ramp[None]) for a, b in rng.uniform(0, 1, (10, 2))]
    X = np.array([pattern + light for pattern in patterns for light in lights])
    graph = neighbor_graph(DataTensor.of_array(X), 3, metric="gradient")
    assert all({j // 10 for j in near} == {i // 10} for i, near in enumerate(neighbours_of(graph)))
    other = neighbor_graph(DataTensor.of_array(X), 3, metric="cosine")
    assert not all({j // 10 for j in near} == {i // 10} for i, near in enumerate(neighbours_of(other)))


def test_gradient_is_that_of_loops(rng):
    X = rng.random((3, 5, 6))
    features, _ = sample_features(DataTensor.of_array(X), "gradient")
    smooth = np.array([gaussian_filter(sample, 0.7) for sample in X])
    edges = np.sqrt(sum(np.gradient(smooth[1], axis=axis) ** 2 for axis in (0, 1))).ravel()
    np.testing.assert_allclose(features[1], edges / np.linalg.norm(edges))


def test_a_callable_metric_returns_rows(rng):
    X = rng.random((20, 3, 4))
    found = neighbor_graph(DataTensor.of_array(X), 4, metric=lambda samples: samples.sum(axis=2))
    expected = neighbor_graph(DataTensor.of_array(X.sum(axis=2)), 4, metric="euclidean")
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
    with pytest.raises(InputError, match="20 rows"):
        neighbor_graph(DataTensor.of_array(X), 4, metric=lambda samples: samples[:3].sum(axis=2))


def literal_orientations(sample, widths, blur):
    """Edges of eight directions, pooled by literal sums over all pixels with reflected copies of the image."""
    smooth = gaussian_filter(sample, blur)
    down, right = np.gradient(smooth, axis=0), np.gradient(smooth, axis=1)
    channels = np.zeros((8, *sample.shape))
    for i, j in np.ndindex(sample.shape):
        length, angle = (
            np.hypot(down[i, j], right[i, j]),
            np.degrees(np.arctan2(down[i, j], right[i, j])) % 360,
        )
        first, share = int(angle // 45), (angle % 45) / 45
        channels[first % 8, i, j] += (1 - share) * length
        channels[(first + 1) % 8, i, j] += share * length
    steps = [max(1, round(width)) for width in widths]
    weights = [gaussian_weights(size, width) for size, width in zip(sample.shape, widths, strict=True)]
    pooled = np.einsum("ai,bj,dij->dab", *weights, channels)
    kept = pooled[:, steps[0] // 2 :: steps[0], steps[1] // 2 :: steps[1]]
    row = np.sqrt(kept).ravel()
    return row / np.linalg.norm(row)


def gaussian_weights(size, width):
    """Matrix of a Gaussian cut off after four widths, on an image that its edges mirror."""
    reach = int(4 * width + 0.5)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    matrix = np.zeros((size, size))
    for i in range(size):
        for offset, weight in zip(range(-reach, reach + 1), kernel / kernel.sum(), strict=True):
            place = (i + offset) % (2 * size)
            matrix[i, place if place < size else 2 * size - 1 - place] += weight
    return matrix


@pytest.mark.parametrize(
    ("metric", "widths", "blur"),
    [
        ("orientation", (36 / 16, 28 / 16), 0.7),
        ("orientation-coarse", (36 / 8, 28 / 8), 0.7),
        ("orientation-fine", (0.35, 0.35), 0.35),
    ],
)
def test_orientations_are_those_of_literal_loops(metric, widths, blur, rng):
    X = rng.random((3, 36, 28))
    features, compared = sample_features(DataTensor.of_array(X), metric)
    assert compared == "euclidean"
    np.testing.assert_allclose(features[1], literal_orientations(X[1], widths, blur), atol=2e-6)


def test_orientations_of_small_images_are_pooled_over_half_a_pixel(rng):
    X = rng.random((2, 5, 6))
    features, _ = sample_features(DataTensor.of_array(X), "orientation")
    np.testing.assert_allclose(features[0], literal_orientations(X[0], (0.5, 0.5), 0.7), atol=2e-6)


@pytest.mark.parametrize("metric", ["orientation", "orientation-coarse", "orientation-fine"])
def test_orientations_do_not_see_brightness_and_contrast(metric, rng):
    X = rng.random((4, 12, 12))
    features, _ = sample_features(DataTensor.of_array(X), metric)
    other, _ = sample_features(DataTensor.of_array(3 * X + 2), metric)
    np.testing.assert_allclose(other, features, atol=1e-5)


def test_coarse_orientations_stand_a_shift_that_pixels_do_not(rng):
    """Three patterns, each moved by up to two pixels either way."""
    patterns = gaussian_filter(rng.random((3, 32, 32)), (0, 3, 3), mode="wrap") - 0.4
    shifts = [(0, 0), (2, 0), (0, 2), (-2, 1), (1, -2)]
    X = np.array([np.roll(pattern, shift, (0, 1)) for pattern in patterns for shift in shifts])
    for metric, stands in (("orientation-coarse", True), ("cosine", False)):
        near = neighbours_of(neighbor_graph(DataTensor.of_array(X), 4, metric=metric))
        assert all({j // 5 for j in others} == {i // 5} for i, others in enumerate(near)) == stands


def test_orientations_treat_further_axes_as_channels(rng):
    X = rng.random((3, 10, 11, 2))
    whole, _ = sample_features(DataTensor.of_array(X), "orientation")
    parts = [sample_features(DataTensor.of_array(X[..., c]), "orientation")[0] for c in (0, 1)]
    distance = [np.square(rows[0] - rows[1]).sum() for rows in (whole, *parts)]
    assert min(distance[1:]) <= distance[0] <= max(distance[1:])
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("metric", GRAPH_METRICS)
def test_features_are_the_same_batch_by_batch(metric, empty, monkeypatch, rng):
    X = rng.random((7, 9, 8))
    X[5] *= not empty
    whole, _ = sample_features(DataTensor.of_array(X), metric)
    monkeypatch.setattr("gwntf.data.dense._WIDE_ENTRIES", 2 * 72)
    np.testing.assert_array_equal(sample_features(DataTensor.of_array(X), metric)[0], whole)


@pytest.mark.parametrize("shape", [(4, 7), (4, 1, 7), (4, 1, 1), (4, 2, 2)])
def test_orientations_exist_for_samples_of_any_shape(shape, rng):
    features, _ = sample_features(DataTensor.of_array(rng.random(shape)), "orientation")
    assert np.isfinite(features).all()
    assert len(features) == 4


@pytest.mark.parametrize("metric", ["gradient", "orientation", "wasserstein"])
def test_metrics_that_need_all_entries_say_so(metric, rng):
    X = rng.random((6, 4, 4))
    with pytest.raises(InputError, match="missing entries"):
        neighbor_graph(DataTensor.of_array(X, rng.random(X.shape) < 0.9), 2, metric=metric)
