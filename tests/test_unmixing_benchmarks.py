"""The methods and figures of the benchmarks of unmixing."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.unmixing_accuracy import behind, isotope_right, mean_auc, molar_error
from benchmarks.unmixing_data import GammaCase, add_neighbours, thinned, with_gain
from benchmarks.unmixing_magnetstein import VARIABLE, run_magnetstein
from benchmarks.unmixing_methods import (
    blurred,
    kullback_leibler,
    least_squares,
    our_method,
    over_shifts,
    problem,
    proportions,
    shifted_parts,
    unmix_all,
)

from gwntf.datasets import make_drifting_spectra


@pytest.fixture(scope="module")
def exact():
    """Return spectra without drift or noise, and with it the problem and the shares."""
    data = make_drifting_spectra(4, 3, 64, drift="none", counts=None, random_state=0)
    return problem(data.positions, data.references), data.spectra, data.shares


def test_every_method_finds_exact_shares(exact):
    case, spectra, shares = exact
    for name, found in unmix_all(case, spectra, None).items():
        np.testing.assert_allclose(found, shares, atol=0.05, err_msg=name)
    for method in (least_squares, kullback_leibler):
        np.testing.assert_allclose(proportions(method(spectra, case.references)), shares, atol=1e-3)


def test_a_grid_of_shifts_finds_a_shift():
    data = make_drifting_spectra(6, 3, 128, drift="shift", amount=0.04, counts=None, random_state=1)
    case = problem(data.positions, data.references)
    moved = shifted_parts(case, our_method(case, None))
    errors = [np.abs(proportions(w) - data.shares).mean() for w in over_shifts(data.spectra, moved)]
    plain = np.abs(proportions(least_squares(data.spectra, case.references)) - data.shares).mean()
    assert max(errors) < 0.3 * plain


def test_a_blur_keeps_sums_and_is_as_wide_as_said():
    positions = np.linspace(0, 10, 2001)
    peak = np.zeros((1, 2001))
    peak[0, 1000] = 2.0
    found = blurred(peak, positions, 0.5)
    assert found.sum() == pytest.approx(2.0)
    assert found[0, 1100] / found[0, 1000] == pytest.approx(np.exp(-1), rel=1e-6)


def test_a_gain_moves_counts_and_thinning_removes_them():
    spectra = np.zeros((2, 100))
    spectra[:, 50] = [3000, 100]
    assert with_gain(spectra, 1.0) == pytest.approx(spectra)
    assert with_gain(spectra, 1.25).argmax(axis=1).tolist() == [40, 40]
    assert with_gain(spectra, (1.0, 1.0)) == pytest.approx(spectra)
    fewer = thinned(spectra, 200, np.random.default_rng(0))
    assert 150 < fewer[0].sum() < 250
    assert fewer[1].sum() == 100


def test_spectra_are_added_within_a_measurement_and_a_label():
    spectra = np.arange(6.0)[:, None] * np.ones(3)
    present = np.array([[True], [True], [False], [True], [False], [True]])
    source = np.array(["a", "a", "a", "b", "a", "b"])
    sums, labels = add_neighbours(spectra, present, source, 2)
    assert sorted(zip(sums[:, 0], labels[:, 0], strict=True)) == [(1, True), (6, False), (8, True)]


def test_figures_of_the_tables():
    present = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]], bool)
    shares = np.array([[0.5, 0.1, 0, 0], [0.4, 0.3, 0, 0], [0, 0, 0.4, 0.4], [0, 0, 0, 0.9], [0, 0, 0, 0.1]])
    case = GammaCase(np.ones((5, 8)), present, np.ones((5, 8)), np.arange(8.0))
    assert isotope_right(shares, case) == pytest.approx(200 / 3)
    assert mean_auc(shares, present) == 1
    assert molar_error(np.array([2.0, 6.0]), np.array([1, 3]), np.array([0.4, 0.6])) == pytest.approx(
        (0.25 + 1 / 6) / 2
    )
    table = {"a": {"x": 1.0, "y": 5.0}, "b": {"x": 3.0, "y": 4.0}, "c": {"x": 9.0, "y": 9.0}}
    assert behind(table, "a", ["c"]) == 2


def test_magnetstein_is_skipped_with_a_reason(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert VARIABLE in run_magnetstein.__wrapped__()
