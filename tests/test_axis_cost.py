"""Costs along an axis in its own units: every kernel against the stored matrix, fits, files, and error messages."""

from __future__ import annotations

import copy
import pickle
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from gwntf import (
    GWNTF,
    SDNMF,
    AxisCost,
    InputError,
    MiniBatchGWNTF,
    SeparableCost,
    TransportOptions,
    entropic_wasserstein_distance,
    load,
    wasserstein_distance,
)
from gwntf.backends import ExponentialForm, UnevenForm, get_backend
from gwntf.backends.numpy_backend import NumpyBackend
from gwntf.core import Relaxation
from gwntf.geometry import (
    BandKernel,
    CellKernel,
    CircleKernel,
    DenseKernel,
    LineKernel,
    build,
    build_kernel,
    costs,
    squared_kernels,
)
from gwntf.transport import TransportLimits
from tests.backends import OTHERS, REFERENCE, needs_torch, transport_tensor

BACKENDS = ["numpy", *OTHERS]
PPM = np.array([0.5, 0.52, 0.6, 0.61, 0.9, 1.0, 1.4, 1.42, 1.5, 2.2, 2.25, 3.0])


def oracle(positions, scale, power=1, period=None):
    """The cost of every pair, entry by entry."""
    matrix = np.empty((len(positions), len(positions)))
    for i, s in enumerate(positions):
        for j, t in enumerate(positions):
            distance = abs(s - t) if period is None else min(abs(s - t), period - abs(s - t))
            matrix[i, j] = (distance / scale) ** power
    return matrix


@pytest.fixture
def unstored(monkeypatch):
    """Use the kernels of long axes for short ones."""
    monkeypatch.setattr(NumpyBackend, "long_fibers", 2)
    if find_spec("torch") is not None:
        monkeypatch.setattr("gwntf.backends.torch.backend.TorchBackend.long_fibers", 2)


@settings(max_examples=25)
@given(st.integers(1, 30), st.sampled_from([1, 2]), st.sampled_from([None, 1.0, 1.3, 5.0]), st.integers(0, 2**31))
def test_matrices_have_their_closed_form(size, power, around, seed):
    rng = np.random.default_rng(seed)
    positions = np.unique(rng.normal(size=size) * 10)
    reach = np.ptp(positions) or 1.0
    period = None if around is None else around * reach
    scale = reach / 3
    cost = AxisCost(positions, scale, power, period)
    expected = oracle(positions, scale, power, period)
    np.testing.assert_allclose(cost.to_matrix(), expected, rtol=1e-12, atol=1e-12)


ARRAYS = ["numpy", pytest.param("torch", marks=needs_torch)]


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("period", [None, 1.0, 1.4])
@pytest.mark.parametrize("reg", [1e-4, 0.01, 1.0])
def test_products_on_lines_and_circles_equal_those_of_the_matrix(name, dtype, period, reg, unstored, rng):
    backend = get_backend(name)
    for size in (3, 4, 5, 8, 33, 64):
        positions = np.concatenate([[0.0], np.sort(rng.random(size - 2)), [1.0]])
        cost = AxisCost(positions, 0.4, 1, period)
        kernel = build_kernel(cost, reg, backend, dtype)
        assert isinstance(kernel, LineKernel if period is None else CircleKernel)
        check_products(kernel, cost, reg, backend, dtype, rng)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("period", [None, 10.0, 14.0])
@pytest.mark.parametrize("name", ARRAYS)
def test_products_of_narrow_squared_distances_equal_those_of_the_matrix(name, dtype, period, unstored, rng):
    backend, positions = get_backend(name), np.concatenate([[0.0], np.sort(rng.random(150)) * 10, [9.99]])
    cost = AxisCost(positions, 0.3, 2, period)
    kernel = build_kernel(cost, 0.01, backend, dtype)
    assert isinstance(kernel, BandKernel)
    check_products(kernel, cost, 0.01, backend, dtype, rng)


def check_products(kernel, cost, reg, backend, dtype, rng):
    """Compare both products with those of exp(-C / reg - 1), entry by entry."""
    log_kernel = -oracle(cost.positions, cost.scale, cost.power, cost.period) / reg - 1
    v = (rng.random((cost.size, 3)) + 0.1).astype(dtype)
    v[rng.random(v.shape) < 0.5] = 0
    v[:, 2] = 0
    v[0, 2] = 1  # the row of the first place
    rtol, tiny = (2e-5 if dtype == "float32" else 1e-11), float(np.finfo(dtype).smallest_normal)
    for transposed in (False, True):
        found = backend.to_numpy(kernel.matmul(backend.asarray(v), transposed=transposed))
        with np.errstate(under="ignore"):
            expected = np.exp(log_kernel + kernel.shift) @ v.astype(float)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=0 if kernel.all_normal else 10 * tiny)
        with np.errstate(divide="ignore"):
            logs, wide = np.log(v), np.log(v.astype(float))
        found = backend.to_numpy(kernel.log_matmul(backend.asarray(logs), transposed=transposed))
        expected = np.logaddexp.reduce(log_kernel[:, :, None] + wide[None], axis=1)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("period", [None, 2.5])
@pytest.mark.parametrize("power", [1, 2])
def test_transports_on_every_backend_equal_those_of_the_matrix(name, dtype, period, power, rng):
    cost, relaxation = AxisCost(PPM, 0.5, power, period), Relaxation(0.02, 1.0, 0.7)
    x, y = rng.random((2, 20, 12)).astype(dtype) * (rng.random((2, 20, 12)) > 0.4)
    limits = TransportLimits(9, 0.0)
    expected = transport_tensor(REFERENCE, oracle(PPM, 0.5, power, period), *(a.astype(float) for a in (x, y)), 1,
                                relaxation, limits)  # fmt: skip
    for backend in (REFERENCE, get_backend(name)):
        found = transport_tensor(backend, cost, x.astype(dtype), y.astype(dtype), 1, relaxation, limits)
        tol = 2e-4 if dtype == "float32" else 1e-9
        np.testing.assert_allclose(found[0], expected[0], rtol=tol, atol=tol * expected[0].max())
        np.testing.assert_allclose(found[2], expected[2], rtol=tol, atol=tol * np.abs(expected[2]).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BACKENDS)
def test_extreme_spacings_are_exact(name, dtype, unstored, rng):
    """Steps whose decay underflows, and steps so small that the decay rounds to one."""
    positions = np.cumsum([0, 1e-9, 1e-9, 1.0, 30.0, 1e-7, 0.4, 0.4, 2e-3, 150.0, 1e-10, 5.0])
    relaxation, limits = Relaxation(0.1, 1.0, 1.0), TransportLimits(6, 0.0)
    x, y = rng.random((2, 6, 12)) + 0.01
    x[0, 1:] = y[0, :-1] = 0  # everything moves from one end to the other
    expected = transport_tensor(REFERENCE, oracle(positions, 1.0), x, y, 1, relaxation, limits)
    found = transport_tensor(get_backend(name), AxisCost(positions, 1.0), x.astype(dtype), y.astype(dtype), 1,
                             relaxation, limits)  # fmt: skip
    tol = 1e-4 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(found[0], expected[0], rtol=tol, atol=1e-30)
    np.testing.assert_allclose(found[2], expected[2], rtol=tol, atol=tol)


def test_unequal_steps_are_a_recursion_in_compiled_code_and_separable_with_others(rng):
    pytest.importorskip("numba")
    backend = get_backend("cpu")
    cost = AxisCost(PPM, 0.5)
    assert isinstance(build_kernel(cost, 0.1, backend, "float32").form(), UnevenForm)
    even = AxisCost(np.linspace(0.5, 9.5, 3001), 0.05)
    assert isinstance(build_kernel(even, 0.01, backend, "float32").form(), ExponentialForm)
    joint = SeparableCost([cost, AxisCost([0, 1, 2, 3], 3), AxisCost([0.0], 1.0)])
    assert joint.size == 48
    np.testing.assert_allclose(
        joint.to_matrix(), SeparableCost([oracle(PPM, 0.5), oracle(range(4), 3), [[0.0]]]).to_matrix()
    )
    for axes in ([cost, AxisCost([0, 1, 2, 3], 3)], [cost, AxisCost([0, 1, 2, 3], 2, 2, 4)]):
        joint = SeparableCost(axes)
        x, y = rng.random((2, 9, 48))
        arguments = x, y, 1, Relaxation(0.05, 1.0, 1.0), TransportLimits(5, 0.0)
        expected = transport_tensor(REFERENCE, joint.to_matrix(), *arguments)
        for engine in (REFERENCE, backend):
            for a, b in zip(transport_tensor(engine, joint, *arguments), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "power"), [("grid", 1), ("grid2", 2)])
def test_grids_are_costs_on_an_axis(name, power, rng):
    X = rng.random((10, 14))
    fits = [
        GWNTF(2, costs=(None, cost), graph_reg=0, max_iter=3, tol=0, random_state=0).fit(X)
        for cost in (name, costs.grid_cost(14, power))
    ]
    assert fits[0].costs_[1] == AxisCost(np.arange(14), 13, power)
    np.testing.assert_allclose(fits[0].factors_[1], fits[1].factors_[1], rtol=1e-8, atol=1e-12)


def test_seventy_thousand_places_need_no_matrix(rng):
    """A matrix would take 39 GB."""
    ppm = np.cumsum(rng.random(70_000) + 0.1)
    cost = AxisCost(ppm, ppm[-1] / 50)
    peaks = np.exp(-(((ppm - ppm[[20_000, 50_000]][:, None]) / (ppm[-1] / 40)) ** 2))
    X = np.array([[1, 2], [2, 1], [1, 1]]) @ peaks
    options = {"graph_reg": 0, "max_iter": 1, "tol": 0, "transport": TransportOptions(max_iter=2), "random_state": 0}
    model = GWNTF(2, costs=(None, cost), **options)
    assert np.isfinite(model.fit(X).objective_)
    assert len(repr(model)) < 400
    assert GWNTF(2, costs=(None, "grid"), **options).fit(X).costs_[1].size == 70_000


def test_a_squared_distance_over_seventy_thousand_places_needs_no_matrix(rng):
    kernel = build_kernel(AxisCost(np.arange(70_000), 69_999, 2), 0.01, REFERENCE, "float32")
    assert isinstance(kernel, CellKernel)
    v, rows = rng.random((70_000, 1)).astype("float32"), np.array([0, 9_999, 69_999])
    costs = ((rows[:, None] - np.arange(70_000)) / 69_999) ** 2
    np.testing.assert_allclose(kernel.matmul(v)[rows], np.exp(kernel.shift - 1 - costs / 0.01) @ v, rtol=1e-5)


def test_a_long_circle_equals_its_matrix(rng):
    hours = np.sort(rng.random(1500)) * 24
    cost = AxisCost(hours, 2.0, period=24)
    kernel = build_kernel(cost, 0.05, REFERENCE, "float64")
    assert isinstance(kernel, CircleKernel)
    v = rng.random((1500, 2))
    np.testing.assert_allclose(kernel.matmul(v), np.exp(kernel.shift - 1 - cost.to_matrix() / 0.05) @ v, rtol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reg", [2e-4, 0.003, 0.01, 1.0])
@pytest.mark.parametrize("name", ARRAYS)
def test_products_of_wide_squared_distances_equal_those_of_the_matrix(name, dtype, reg, unstored, rng, monkeypatch):
    positions = np.sort(np.concatenate([rng.random(60) ** 3, [0.0, 0.9, 0.90001, 1.0]]))
    backend, cost = get_backend(name), AxisCost(positions, 1.0, 2)
    for entries in (2**22, 200):  # all columns at a time, or one
        monkeypatch.setattr(squared_kernels, "_BLOCK_ENTRIES", entries)
        check_products(CellKernel(backend, cost, reg, dtype), cost, reg, backend, dtype, rng)


def test_kernels_of_squared_distances_are_stored_only_where_they_are_narrow(monkeypatch):
    positions = np.arange(3000)

    def kind(scale, period=None):
        return type(build_kernel(AxisCost(positions, scale, 2, period), 0.01, REFERENCE, "float64"))

    assert kind(10) is kind(10, 3000) is kind(10, 7000) is BandKernel
    assert kind(2999) is kind(1000) is CellKernel
    assert kind(1500, 3000) is DenseKernel
    monkeypatch.setattr(build, "_LONGEST_DENSE", 2000)
    with pytest.raises(InputError, match=r"power: got 2 for 3000 places on a circle.*a smaller scale"):
        kind(1500, 3000)


def test_transports_with_a_band_solve_distant_mass_like_the_matrix(unstored, rng, monkeypatch):
    monkeypatch.setattr(squared_kernels, "_BLOCK_ENTRIES", 500)
    positions = np.arange(60.0)
    cost = AxisCost(positions, 0.7, 2)
    assert isinstance(build_kernel(cost, 0.05, REFERENCE, "float64"), BandKernel)
    x, y = rng.random((2, 3, 60))
    x[0, 5:] = y[0, :-5] = 0  # the mass is further apart than the band is wide
    arguments = x, y, 1, Relaxation(0.05, 1.0, 1.0), TransportLimits(5, 0.0)
    expected = transport_tensor(REFERENCE, cost.to_matrix(), *arguments)
    for a, b in zip(transport_tensor(REFERENCE, cost, *arguments), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-30)


def spectra(rng):
    return np.exp(-0.5 * ((PPM - rng.choice([0.6, 1.4, 2.2], 9)[:, None]) / 0.1) ** 2) + 0.01


OPTIONS = {"graph_reg": 0, "max_iter": 4, "tol": 0, "random_state": 0}


@pytest.mark.parametrize("power", [1, 2])
def test_a_saved_model_has_the_same_cost_and_results(power, rng, tmp_path):
    X = spectra(rng)
    model = GWNTF(2, costs=[None, AxisCost(PPM, 0.4, power, 3.0)], **OPTIONS).fit(X)
    model.save(tmp_path / "model.gwntf")
    again = load(tmp_path / "model.gwntf")
    assert again.costs_ == model.costs_
    assert again.costs == model.costs
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    pixels = SDNMF(2, cost=SeparableCost([AxisCost([0, 1, 3], 2), AxisCost([0, 1, 2, 5], 4)]), **OPTIONS).fit(X)
    pixels.save(tmp_path / "pixels.gwntf")
    np.testing.assert_array_equal(load(tmp_path / "pixels.gwntf").transform(X), pixels.transform(X))


@pytest.mark.parametrize("labels", [list(PPM), [str(s) for s in PPM]])
def test_positions_are_the_column_names_of_a_data_frame(labels, rng, tmp_path):
    pandas = pytest.importorskip("pandas")
    X = spectra(rng)
    frame = pandas.DataFrame(X, columns=labels)
    expected = GWNTF(2, costs=[None, AxisCost(PPM, 0.4)], **OPTIONS).fit(X)
    model = GWNTF(2, costs=[None, AxisCost("columns", 0.4)], **OPTIONS).fit(frame)
    assert model.costs_[1] == AxisCost(PPM, 0.4)
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)
    model.save(tmp_path / "model.gwntf")
    assert load(tmp_path / "model.gwntf").get_params()["costs"][1] == AxisCost("columns", 0.4)
    pixels = SDNMF(2, cost=AxisCost("columns", 0.4), **OPTIONS).fit(frame)
    assert pixels.costs_[1] == AxisCost(PPM, 0.4)
    batches = MiniBatchGWNTF(2, costs=[None, AxisCost("columns", 0.4)], random_state=0)
    assert batches.partial_fit(frame).partial_fit(frame).costs_[1] == AxisCost(PPM, 0.4)


def test_column_names_that_are_no_positions_raise_errors(rng):
    pandas = pytest.importorskip("pandas")
    model = GWNTF(2, costs=[None, AxisCost("columns", 0.4)], **OPTIONS)
    X = spectra(rng)
    for data, message in [
        (X, r"costs\[1\]: got AxisCost\('columns'\) for an axis of X without column names"),
        (pandas.DataFrame(X, columns=[*"abcdefghijkl"]), r"X\.columns: got 'a' at index 0; expected .*numbers"),
        (pandas.DataFrame(X, columns=PPM[::-1]), r"X\.columns: got 2\.25 at index 1 after 3 at index 0"),
        (pandas.DataFrame(X, columns=PPM / 10), r"scale: got 0\.4; expected at most the range"),
    ]:
        with pytest.raises(InputError, match=message):
            model.fit(data)
    folded = GWNTF(2, costs=[None, None, AxisCost("columns", 0.4)], sample_shape=(3, 4), **OPTIONS)
    with pytest.raises(InputError, match=r"costs\[2\]: got AxisCost\('columns'\)"):
        folded.fit(pandas.DataFrame(X, columns=PPM))
    with pytest.raises(InputError, match=r"axes\[0\]: got AxisCost\('columns'"):
        SeparableCost([AxisCost("columns", 1.0)])
    with pytest.raises(InputError, match="positions: got 'columns'"):
        AxisCost("columns", 1.0).to_matrix()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 2, 1], 1.0), "positions: got 1 at index 2 after 2 at index 1; expected strictly increasing"),
        (([0, 1, 1], 1.0), "positions: got 1 at index 2 after 1 at index 1"),
        (([0, np.nan, 1], 1.0), "positions: got nan at index 1"),
        (([0, 1, np.inf], 1.0), "positions: got inf at index 2"),
        (([], 1.0), "positions: got no position"),
        (([[0, 1]], 1.0), r"positions: got 2 dimension\(s\)"),
        ((["a", "b"], 1.0), "positions: got entries of type"),
        (("names", 1.0), "positions: got entries of type .*'columns'"),
        (([0, 1], 0), "scale: got 0; expected a positive finite number"),
        (([0, 1], -1.0), "scale: got -1"),
        (([0, 1], np.inf), "scale: got inf"),
        (([0, 1], np.nan), "scale: got nan"),
        (([0, 1], "1"), "scale: got '1'"),
        (([0, 1], True), "scale: got True"),
        (([0, 1], 1.5), "scale: got 1.5; expected at most the range of the positions, 1"),
        (([0, 1], 2.5, 1, 4), "scale: got 2.5; expected at most half the period, 2"),
        (([0, 1], 1e-10), "scale: got 1e-10; expected at least 1e-09"),
        (([0, 1], 1, 3), "power: got 3; expected 1 or 2"),
        (([0, 1], 1, True), "power: got True"),
        (([0, 1], 1, "1"), "power: got '1'"),
        (([0, 1], 1, 1, 0), "period: got 0; expected a positive finite number"),
        (([0, 1, 3], 1, 1, 2.9), "period: got 2.9; expected at least the range of the positions, 3"),
    ],
)
def test_invalid_arguments_raise_errors_that_say_what_is_allowed(arguments, message):
    with pytest.raises(InputError, match=message):
        AxisCost(*arguments)


def test_another_number_of_positions_than_entries_raises_an_error(rng):
    model = GWNTF(2, costs=[None, AxisCost([0, 1, 2], 1)], **OPTIONS)
    with pytest.raises(InputError, match=r"costs\[1\]: got an AxisCost with 3 positions; expected 12"):
        model.fit(spectra(rng))
    with pytest.raises(InputError, match="cost: got an AxisCost with 3 positions; expected 2"):
        wasserstein_distance([1, 0], [0, 1], AxisCost([0, 1, 2], 1))


def test_costs_are_values():
    cost = AxisCost([0, 1, 5], 2.0, 2, 6.0)
    assert repr(cost) == "AxisCost([0.0, 1.0, 5.0], scale=2, power=2, period=6)"
    assert repr(AxisCost(np.arange(70_000), 12.0)) == "AxisCost(70000 positions from 0 to 69999, scale=12)"
    assert repr(AxisCost("columns", 0.05)) == "AxisCost('columns', scale=0.05)"
    unpickled = pickle.loads(pickle.dumps(cost))  # noqa: S301
    for same in (copy.deepcopy(cost), unpickled, AxisCost((0, 1, 5), 2, 2, 6)):
        assert same == cost
        assert hash(same) == hash(cost)
        assert not same.positions.flags.writeable
    for other in (AxisCost([0, 1, 5], 2.0, 2), AxisCost([0, 1, 5], 2.0, 1, 6.0), AxisCost([0, 2, 5], 2.0, 2, 6.0), 3):
        assert other != cost
    with pytest.raises(AttributeError):
        cost.scale = 3.0
    model = GWNTF(2, costs=[None, cost])
    assert clone(model).get_params()["costs"] == [None, cost]


def test_distances_take_costs_on_an_axis():
    cost = AxisCost([0.0, 1.0, 4.0], 2.0)
    assert wasserstein_distance([1, 0, 0], [0, 0, 1], cost) == pytest.approx(2.0)
    assert wasserstein_distance([1, 0, 0], [0, 0, 1], AxisCost([0, 1, 4], 2, 2)) == pytest.approx(4.0)
    assert wasserstein_distance([1, 0, 0], [0, 0, 1], AxisCost([0, 1, 4], 2, 1, 5)) == pytest.approx(0.5)
    entropic = [entropic_wasserstein_distance([1, 2, 0], [0, 1, 2], c, reg=0.1) for c in (cost, cost.to_matrix())]
    assert entropic[0] == pytest.approx(entropic[1], rel=1e-9)
