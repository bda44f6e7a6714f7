"""Unmixing: shares of known parts under drift, the automatic choices, calibration, intervals and displacements."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from gwntf import Unmixer, load
from gwntf.datasets import load_example_spectra, load_gamma_spectra, load_nmr_mixtures, make_drifting_spectra
from gwntf.unmixing import Calibration, LineSolver, cell_edges, effective_counts, extent, price_of_counts
from gwntf.unmixing.intervals import neighbor_products
from tests.backends import needs_torch
from tests.conftest import load_or_skip

KINDS = [("none", 0.01), ("shift", 0.02), ("gain", 0.03), ("peaks", 0.02), ("smooth", 0.03)]
DRIFTS = KINDS[1:]


def spectra(drift, amount, counts, seed=11, samples=60, **options):
    return make_drifting_spectra(samples, 5, drift=drift, amount=amount, counts=counts, random_state=seed, **options)


def unmixer(data, **options):
    return Unmixer(data.references, positions=data.positions, **options).fit()


def kl_shares(data, steps=1000):
    """Maximum likelihood of Poisson counts by the EM algorithm."""
    X, H = data.spectra / data.spectra.sum(axis=1, keepdims=True), data.references
    shares = np.full((len(X), len(H)), 1 / len(H))
    for _ in range(steps):
        shares = shares * ((X / np.maximum(shares @ H, 1e-300)) @ H.T) / H.sum(axis=1)
    return shares / shares.sum(axis=1, keepdims=True)


def error(shares, data):
    return 0.5 * np.abs(shares - data.shares).sum(axis=1).mean()


# --- rules --------------------------------------------------------------------------------------------------


def test_the_extent_of_a_uniform_part_is_99_percent_of_its_length():
    positions = np.linspace(0, 100, 100_001)
    part = ((positions >= 20) & (positions <= 60)).astype(float)
    assert extent(positions, part[:, None] / part.sum()) == pytest.approx(0.99 * 40, abs=0.01)


def test_the_extent_does_not_depend_on_empty_places_at_the_ends(rng):
    positions, parts = np.arange(50.0), rng.random((50, 3))
    parts /= parts.sum(axis=0)
    padded = np.pad(parts, ((30, 70), (0, 0)))
    assert extent(np.arange(-30.0, 120.0), padded) == pytest.approx(extent(positions, parts), rel=1e-12)


@pytest.mark.parametrize("counts", [300, 3000, 30_000, 100_000_000])
def test_effective_counts_are_the_counts_of_poisson_data_in_any_unit(counts):
    """Above about 100,000 counts the curvature of peaks of a few channels looks like noise: many channels there."""
    data = spectra("none", 0.01, counts, n_channels=256 if counts < 1e6 else 20_000, background=0.3)
    found = effective_counts(data.spectra)
    assert counts / 2 < np.median(found) < counts * 2
    np.testing.assert_allclose(effective_counts(1e-7 * data.spectra), found, rtol=1e-9)


def test_rows_without_noise_have_infinite_counts():
    assert effective_counts(np.ones((1, 20))) == np.inf
    assert effective_counts(np.zeros((1, 20))) == np.inf


def test_the_price_grows_as_the_root_of_the_counts_between_its_limits():
    found = price_of_counts(np.array([0.0, 1.0, 144.0, 3600.0, 14_400.0, 1e9, np.inf]))
    np.testing.assert_allclose(found, [0.2, 0.2, 0.2, 1, 2, 2, 2])


# --- shares -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("drift", "amount"), DRIFTS, ids=[drift for drift, _ in DRIFTS])
@pytest.mark.parametrize("counts", [2000, 20_000])
def test_with_drift_the_error_is_below_that_of_kl(drift, amount, counts):
    data = spectra(drift, amount, counts)
    assert error(unmixer(data).transform(data.spectra), data) < 0.85 * error(kl_shares(data), data)


@pytest.mark.parametrize(("counts", "most"), [(200, 0.09), (2000, 0.04), (20_000, 0.016), (None, 0.016)])
def test_without_drift_the_error_is_bounded(counts, most):
    data = spectra("none", 0.01, counts)
    assert error(unmixer(data).transform(data.spectra), data) < most


def test_shares_depend_neither_on_units_nor_on_the_direction_of_the_axis():
    data = spectra("peaks", 0.02, 5000, samples=10)
    found = unmixer(data).transform(data.spectra)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    other = Unmixer(1e5 * data.references, positions=7 - 0.001 * data.positions).fit()
    np.testing.assert_allclose(other.transform(1e-3 * data.spectra), found, atol=1e-4)
    turned = Unmixer(data.references[:, ::-1], positions=data.positions[::-1]).fit()
    np.testing.assert_allclose(turned.transform(data.spectra[:, ::-1]), found, rtol=1e-8, atol=1e-12)
    there, back = (m.unmix(x) for m, x in ((unmixer(data), data.spectra), (turned, data.spectra[:, ::-1])))
    for name in ("positions", "lower", "upper", "displacement", "moved_parts", "missing", "model"):
        np.testing.assert_allclose(getattr(there, name), getattr(back, name), rtol=1e-7, atol=1e-10)


def test_samples_do_not_influence_each_other():
    data = spectra("shift", 0.02, 2000, samples=8)
    model = unmixer(data, calibration="shift")
    whole = model.transform(data.spectra)
    for k in range(8):
        np.testing.assert_array_equal(model.transform(data.spectra[k : k + 1])[0], whole[k])


def test_shares_are_divided_by_the_signal():
    data = spectra("none", 0.01, None, samples=5)
    signal = np.array([1.0, 2.0, 3.0, 6.0, 9.0])
    mass = unmixer(data).transform(data.spectra)
    amounts = mass / signal
    found = unmixer(data, signal=signal)
    np.testing.assert_allclose(found.transform(data.spectra), amounts / amounts.sum(axis=1, keepdims=True))
    unmixed = found.unmix(data.spectra)
    assert (unmixed.lower <= unmixed.shares).all()
    assert (unmixed.shares <= unmixed.upper).all()


def test_the_drift_and_the_price_can_be_given():
    data = spectra("shift", 0.03, None, samples=20)
    length = data.positions[-1]
    still = error(unmixer(data, drift=length / 500, reg_m=0.2).transform(data.spectra), data)
    free = error(unmixer(data, drift=0.01 * length, reg_m=2.0).transform(data.spectra), data)
    assert free < 0.8 * still
    assert unmixer(data, drift=3.5).drift_ == 3.5


def test_a_planted_background_is_found():
    data = spectra("shift", 0.003, 50_000, samples=40, background=0.3)
    model = Unmixer(data.references, positions=data.positions, n_free=1, random_state=0).fit(data.spectra)
    assert model.names_[-1] == "free 1"
    background = data.background[0] / data.background[0].sum()
    distance = np.abs(np.cumsum(background) - np.cumsum(model.references_[:, -1])).max()
    found = model.transform(data.spectra)
    known = found[:, :-1] / found[:, :-1].sum(axis=1, keepdims=True)
    truth = data.shares / data.shares.sum(axis=1, keepdims=True)
    assert distance < 0.05
    assert np.abs(found[:, -1] - 0.3).mean() < 0.03
    without = unmixer(data).transform(data.spectra)
    assert np.abs(known - truth).mean() < np.abs(without - truth).mean()


def test_predict_names_the_largest_share():
    data = spectra("shift", 0.01, 5000, samples=30, concentration=0.05)
    found = unmixer(data).predict(data.spectra)
    wanted = np.array([f"part {k + 1}" for k in data.shares.argmax(axis=1)])
    assert (found == wanted).mean() >= 0.95


# --- calibration --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "drift"), [("shift", "shift"), ("stretch", "gain")])
def test_calibration_finds_the_displacement_within_one_step_of_its_grid(kind, drift):
    data = spectra(drift, 0.03, 20_000)
    model = unmixer(data, calibration=kind)
    found = model.unmix(data.spectra)
    amounts = data.displacement[:, -1] / (1 if kind == "shift" else data.positions[-1])
    step = np.diff(model._calibration.amounts)[0]
    used = found.calibration != 0
    assert used.mean() > 0.6
    assert np.abs(found.calibration - amounts)[used].max() < 1.01 * step
    assert np.abs(amounts)[~used].max() < 3 * step
    plain = unmixer(data)
    assert error(found.shares, data) < 0.7 * error(plain.transform(data.spectra), data)
    weights, centres = found.shares > 0.1, data.references @ data.positions
    wanted = amounts[:, None] * (np.ones(5) if kind == "shift" else centres)
    largest = step * (1 if kind == "shift" else data.positions[-1])
    assert np.sqrt(np.mean((found.displacement - wanted)[weights] ** 2)) < largest


@pytest.mark.parametrize("kind", ["shift", "stretch"])
@pytest.mark.parametrize("counts", [200, 20_000, None])
def test_calibration_leaves_spectra_without_drift_as_they_are(kind, counts):
    data = spectra("none", 0.01, counts)
    model = unmixer(data, calibration=kind)
    assert (model.unmix(data.spectra).calibration == 0).all()
    np.testing.assert_array_equal(model.transform(data.spectra), unmixer(data).transform(data.spectra))


def test_parts_that_leave_the_axis_do_no_harm():
    """The largest shift moves the first part off the axis; it has no displacement then."""
    positions = np.arange(100.0)
    parts = np.exp(-0.5 * ((positions - np.array([[5.0], [40.0], [60.0]])) / 1.5) ** 2) * (np.arange(100) < 70)
    parts *= parts > 1e-3
    model = Unmixer(parts, calibration="shift", reach=30.0).fit()
    sample = np.roll(parts[1] + parts[2], -30)
    found = model.unmix(sample[None])
    assert found.calibration == pytest.approx(-30)
    assert found.shares[0, 1:] == pytest.approx([0.5, 0.5], abs=0.02)
    assert found.displacement[0, 1:] == pytest.approx([-30, -30], abs=0.5)
    assert np.isfinite(found.upper).all()


@pytest.mark.parametrize("kind", ["shift", "stretch"])
def test_parts_are_displaced_by_the_stated_amounts_and_keep_their_mass(kind):
    positions = np.concatenate([np.linspace(1, 5, 300, endpoint=False), np.linspace(5, 12, 400)])
    edges = cell_edges(positions)
    assert ((edges[:-1] < positions) & (positions < edges[1:])).all()
    parts = np.exp(-0.5 * ((positions[:, None] - [4.0, 7.0]) / 0.4) ** 2) * np.diff(edges)[:, None]
    parts /= parts.sum(axis=0)
    grid = Calibration(kind, positions, parts, 8.0, None)
    middle = len(grid.amounts) // 2
    assert grid.amounts[middle] == 0
    np.testing.assert_array_equal(grid.moved[middle], parts)
    np.testing.assert_allclose(grid.moved.sum(axis=1), 1, atol=1e-6)
    moves = grid.amounts[:, None] * (np.ones(2) if kind == "shift" else positions @ parts)
    np.testing.assert_allclose(positions @ grid.moved, positions @ parts + moves, atol=2e-3)
    assert Calibration(kind, positions, parts, 8.0, 0.1).amounts[[0, -1]] == pytest.approx([-0.1, 0.1])


def test_misfits_are_those_of_nonnegative_least_squares():
    data = spectra("shift", 0.02, 2000, samples=4)
    rows = data.spectra / data.spectra.sum(axis=1, keepdims=True)
    grid = Calibration("shift", data.positions, data.references.T, 150.0)
    found = grid.misfits(rows)
    for x, values in zip(rows, found, strict=True):
        for parts, value in zip(grid.moved[::6], values[::6], strict=True):
            y = parts @ nnls(parts, x)[0]
            total = x + y
            wanted = ((x - y) ** 2)[total > 0] / total[total > 0]
            assert value == pytest.approx(wanted.sum(), rel=1e-5)


# --- intervals ----------------------------------------------------------------------------------------------


def test_intervals_of_nominal_90_percent_have_about_that_coverage():
    """Pooled over kinds of drift and counts, and at least 85 percent for each."""
    covered = []
    for drift, amount in [("none", 0.01), *[(drift, amount) for drift, _ in DRIFTS for amount in (0.01, 0.03)]]:
        for counts in (200, 2000, 20_000):
            inside = []
            for seed in (21, 22, 23):
                data = spectra(drift, amount, counts, seed, 30)
                found = unmixer(data).unmix(data.spectra)
                inside.append((found.lower <= data.shares) & (data.shares <= found.upper))
            covered.append(np.mean(inside))
    assert 0.85 < np.mean(covered) < 0.96, covered
    assert min(covered) > 0.85, covered


@pytest.mark.parametrize("width", [1, 2, 7, 20])
def test_products_of_neighbours_equal_literal_loops(rng, width):
    rows = rng.normal(size=(3, 20))
    wanted = np.zeros(3)
    for i, j in np.ndindex(20, 20):
        wanted += max(0.0, 1 - abs(i - j) / width) * rows[:, i] * rows[:, j]
    np.testing.assert_allclose(neighbor_products(rows, width), wanted, rtol=1e-12, atol=1e-12)


def test_intervals_contain_the_share_and_widen_with_the_level():
    data = spectra("peaks", 0.02, 2000, samples=20)
    model = unmixer(data)
    widths = []
    for level in (0.5, 0.8, 0.99):
        found = model.unmix(data.spectra, level)
        assert found.level == level
        assert (found.lower >= 0).all()
        assert (found.lower <= found.shares).all()
        assert (found.shares <= found.upper).all()
        assert (found.upper <= 1).all()
        np.testing.assert_array_equal(model.interval(data.spectra, level)[..., 0], found.lower)
        np.testing.assert_array_equal(model.interval(data.spectra, level)[..., 1], found.upper)
        widths.append(found.upper - found.lower)
    assert (widths[0] <= widths[1]).all()
    assert (widths[1] <= widths[2]).all()
    assert widths[0].mean() < 0.7 * widths[2].mean()


def test_more_counts_give_narrower_intervals():
    widths = []
    for counts in (200, 2000, 20_000):
        data = spectra("none", 0.01, counts)
        ends = unmixer(data).interval(data.spectra)
        widths.append(np.mean(ends[..., 1] - ends[..., 0]))
    assert widths[0] > 1.5 * widths[1] > 2 * widths[2]


# --- what the plans say -------------------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", [None, "shift"])
def test_moved_parts_and_what_is_missing_are_the_mixture(calibration):
    data = spectra("shift", 0.02, 3000, samples=10, background=0.1)
    model = unmixer(data, calibration=calibration)
    found = model.unmix(data.spectra)
    np.testing.assert_allclose(found.mixtures, data.spectra / data.spectra.sum(axis=1, keepdims=True), rtol=1e-13)
    np.testing.assert_allclose(found.moved_parts.sum(axis=1) + found.missing, found.mixtures, atol=1e-12)
    np.testing.assert_allclose(found.model.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(found.model, found.shares @ data.references, atol=1e-6)
    np.testing.assert_array_equal(model.unexplained(data.spectra), found.missing.sum(axis=1))
    assert (found.goodness <= 1).all()
    assert (found.gap <= 1e-5).all()


def test_displacements_follow_those_of_the_peaks():
    data = spectra("shift", 0.015, 50_000)
    model = unmixer(data)
    found = model.displacement(data.spectra)
    large = data.shares > 0.15
    truth = np.broadcast_to(data.displacement[:, :1], found.shape)
    assert np.corrcoef(found[large], truth[large])[0, 1] > 0.9
    assert np.sqrt(np.mean((found - truth)[large] ** 2)) < 0.5 * truth[large].std()


def test_a_substance_that_is_no_part_is_unexplained():
    """A quarter of the sample is a peak far from the only peaks of the parts."""
    positions = np.linspace(0, 100, 400)
    peaks = np.exp(-0.5 * ((positions[:, None] - [20.0, 30.0, 80.0]) / 1.0) ** 2)
    peaks /= peaks.sum(axis=0)
    model = Unmixer(peaks[:, :2].T, positions=positions, costs="auto", drift=0.5, reg_m=0.5).fit()
    sample = peaks @ [0.45, 0.3, 0.25]
    assert model.unexplained(sample[None]) == pytest.approx([0.25], abs=0.02)
    assert model.unexplained((peaks[:, :2] @ [0.6, 0.4])[None]) == pytest.approx([0.0], abs=0.01)


# --- data ---------------------------------------------------------------------------------------------------


def test_the_example_of_the_package_is_unmixed_with_an_error_of_a_few_percent():
    example = load_example_spectra()
    model = Unmixer(example.references, positions=example.ppm).fit()
    found = model.transform(example.mixtures)
    assert np.abs(found - example.shares).mean() < 0.03
    baseline = np.array([nnls(example.references.T, x)[0] for x in example.mixtures])
    baseline /= baseline.sum(axis=1, keepdims=True)
    assert np.abs(found - example.shares).mean() < 0.5 * np.abs(baseline - example.shares).mean()


def test_measured_nmr_mixtures():
    errors = []
    for case in load_or_skip(load_nmr_mixtures):
        model = Unmixer(np.maximum(case.references, 0), positions=case.ppm, signal=case.protons, negative="clip").fit()
        found = model.transform(case.mixture[None])[0]
        errors.append(np.mean(np.abs(found - case.truth_molar) / case.truth_molar))
    assert np.mean(errors) <= 0.055


def test_measured_gamma_spectra_at_a_changed_gain():
    """Spectra of one isotope, rebinned; the background is the last part."""
    data = load_or_skip(load_gamma_spectra)
    positions, edges = np.log(np.arange(256) + 3.5), np.arange(257.0)
    keep = np.flatnonzero((data.source != "background_20240124") & (data.labels[:, :4].sum(axis=1) == 1))[::20]
    truth = np.array(data.names)[data.labels[keep][:, :4].argmax(axis=1)]
    model = Unmixer(data.references, positions=positions, calibration="shift").fit()
    names = np.array(data.names[:4])
    for gain in (0.9, 1.0, 1.1):
        total = np.hstack([np.zeros((len(keep), 1)), np.cumsum(data.spectra[keep].astype(float), axis=1)])
        moved = np.stack([np.diff(np.interp(edges, edges * gain, c)) for c in total])
        found = model.transform(moved)[:, :4].argmax(axis=1)
        assert np.mean(names[found] == truth) >= 0.99


def test_an_axis_too_long_for_the_drift_is_refused_before_work():
    data = spectra("none", 0.01, None, samples=2)
    with pytest.raises(ValueError, match=r"drift: got 0\.1; expected at least 0\.51, a 500th of the axis"):
        unmixer(data, drift=0.1)
    assert LineSolver.shortest(data.positions) == pytest.approx(0.51)


@needs_torch
def test_tensors_in_and_out():
    import torch

    data = make_drifting_spectra(5, 3, drift="shift", amount=0.01, counts=2000, random_state=0)
    unmixer = Unmixer(data.references, positions=data.positions).fit()
    shares = unmixer.transform(torch.as_tensor(data.spectra))
    assert isinstance(shares, torch.Tensor)
    np.testing.assert_array_equal(shares.numpy(), unmixer.transform(data.spectra))
    assert (unmixer.predict(torch.as_tensor(data.spectra)) == unmixer.predict(data.spectra)).all()


@pytest.mark.parametrize("options", [{}, {"calibration": "shift", "signal": [1.0, 2.0, 3.0]}, {"n_free": 1}])
def test_a_saved_unmixer_gives_the_same_shares(options, tmp_path):
    data = make_drifting_spectra(6, 3, drift="shift", amount=0.01, counts=2000, background=0.2, random_state=0)
    unmixer = Unmixer(data.references, positions=data.positions, random_state=0, **options).fit(data.spectra)
    unmixer.save(tmp_path / "unmixer.gwntf")
    again = load(tmp_path / "unmixer.gwntf")
    np.testing.assert_array_equal(again.transform(data.spectra), unmixer.transform(data.spectra))
    assert list(again.get_feature_names_out()) == list(unmixer.get_feature_names_out())
    assert again.get_params()["calibration"] == unmixer.calibration
