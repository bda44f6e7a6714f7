"""The fused transports for GPUs under Triton's interpreter, and recorded steps without a recorder."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gwntf import GNCP, GWNTF, NCP, TransportOptions
from gwntf.core import Relaxation
from gwntf.data import as_data
from gwntf.estimators import context
from gwntf.geometry import build_kernel
from gwntf.losses import LeastSquares, Penalties, Penalty, Plain, transport_loss
from gwntf.solver import Problem, Stopping
from gwntf.transport import TransportLimits, scale
from tests.backends import REFERENCE, transport_tensor
from tests.problems import solve

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")

from gwntf.backends.torch.backend import TorchBackend  # noqa: E402
from gwntf.backends.torch.fused import can_be_recorded, fused_transport, launch  # noqa: E402
from gwntf.backends.torch.fused.rows import RowProduct  # noqa: E402

pytestmark = [
    pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU compiles the kernels"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # the interpreter computes with NumPy
]


class Interpreted(TorchBackend):
    """The torch backend on the CPU with the transports of a GPU; recorded functions are only run."""

    def __init__(self, exact=True):
        super().__init__("cpu")
        self.exact, self.replayed = exact, 0

    def stack_transport(self, form, length, columns):
        return fused_transport(form(), length, exact=self.exact, recording=self.recording)

    def recorded(self, function, kernels, entries):
        if not all(can_be_recorded(form(), length) for form, length in kernels):
            return None

        def replay(*arrays):
            self.replayed += 1
            with self._recording_mode():
                return function(*arrays)

        return replay


def costs(kind, size, rng):
    places = np.arange(size)
    return np.abs(places[:, None] - places) / (size - 1) if kind == "grid" else rng.random((size, size))


def columns_of(shape, rng):
    x = (rng.random(shape) * (rng.random(shape) > 0.3)).astype("float32")
    x[0, :, 0] = 0
    return x, rng.random(shape).astype("float32")


def assert_equals_reference(backend, cost, x, y, relaxation, limits, *, rtol, **options):
    """Marginals, scalings and terms against the reference in float64."""
    wide = {name: value.astype(float) if name == "log_u" else value for name, value in options.items()}
    expected = transport_tensor(REFERENCE, cost, x.astype(float), y.astype(float), 1, relaxation, limits, **wide)
    found = transport_tensor(backend, cost, x, y, 1, relaxation, limits, **options)
    assert np.linalg.norm(found[0] - expected[0]) <= rtol * np.linalg.norm(expected[0])
    some = np.isfinite(expected[1])
    np.testing.assert_array_equal(np.isfinite(found[1]), some)
    np.testing.assert_allclose(found[1][some], expected[1][some], rtol=1e-3 * rtol**0.5, atol=100 * rtol)
    for a, b in zip(found[2].sum(axis=1), expected[2].sum(axis=1), strict=True):
        assert abs(a - b) <= 10 * rtol * max(abs(b), x.sum())
    np.testing.assert_allclose(found[2].sum(axis=0), expected[2].sum(axis=0), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", ["grid", "any"])
@pytest.mark.parametrize("shape", [(3, 5, 7), (9, 32, 1), (2, 40, 3)])
@pytest.mark.parametrize(("warm", "tol", "alpha"), [(False, 0.0, 1.0), (True, 0.0, 0.5), (False, 1e-3, np.inf)])
def test_short_fibers_equal_the_reference(kind, shape, warm, tol, alpha, rng):
    x, y = columns_of(shape, rng)
    start = np.where(x > 0, rng.normal(size=shape), -np.inf).astype("float32")
    limits = TransportLimits(12, tol)
    relaxation = Relaxation(0.02, alpha, 1.0)
    options = {"share": 0.5, "start": 1.0, "log_u": start, "warm": warm}
    assert_equals_reference(Interpreted(), costs(kind, shape[1], rng), x, y, relaxation, limits, rtol=1e-6, **options)


@pytest.mark.parametrize(
    ("shape", "warm", "tol", "alpha"),
    [((2, 300, 3), False, 0.0, 1.0), ((3, 530, 1), True, 0.0, 0.5), ((9, 260, 1), False, 1e-2, np.inf)],
)
def test_fibers_of_many_chunks_equal_the_reference(shape, warm, tol, alpha, rng):
    x, y = columns_of(shape, rng)
    start = np.where(x > 0, rng.normal(size=shape), -np.inf).astype("float32")
    options = {"share": 0.5, "start": 1.0, "log_u": start, "warm": warm}
    limits = TransportLimits(7, tol)
    assert_equals_reference(
        Interpreted(),
        costs("grid", shape[1], rng),
        x,
        y,
        Relaxation(0.02, alpha, 1.0),
        limits,
        rtol=1e-6,
        **options,
    )


def test_programs_take_one_block_of_long_fibers_after_the_other(monkeypatch, rng):
    monkeypatch.setattr(launch, "_SCRATCH", 1)
    x, y = columns_of((3, 260, 3), rng)
    limits = TransportLimits(2, 0.0)
    assert_equals_reference(Interpreted(), costs("grid", 260, rng), x, y, Relaxation(0.02, 1.0, 1.0), limits, rtol=1e-6)


def test_long_columns_that_float32_does_not_hold_are_solved_in_float64(rng):
    x, y = hard_columns(rng, 260)
    backend, cost = Interpreted(), costs("grid", 260, rng)
    start = np.where(x > 0, 60 + 20 * rng.normal(size=x.shape), -np.inf).astype("float32")
    kernel = build_kernel(cost, 0.01, backend, "float32")
    assert can_be_recorded(kernel.form(), 260)
    options = {"log_u": start, "warm": True}
    with backend._recording_mode():
        assert_equals_reference(
            backend, cost, x, y, Relaxation(0.01, 1.0, 1.0), TransportLimits(2, 0.0), rtol=1e-6, **options
        )


@pytest.mark.parametrize("kind", ["grid", "any"])
def test_fewer_digits_only_where_asked_for(kind, rng):
    x, y = columns_of((4, 16, 2), rng)
    relaxation, limits = Relaxation(0.02, 1.0, 1.0), TransportLimits(10, 0.0)
    assert_equals_reference(Interpreted(exact=False), costs(kind, 16, rng), x, y, relaxation, limits, rtol=5e-4)


def hard_columns(rng, size=32):
    """Fibers whose masses lie far apart, with models that are almost zero at some entries."""
    x = np.zeros((12, size, 1), "float32")
    x[:, :3] = rng.random((12, 3, 1))
    x[6:, 5 * size // 8] = 1e-3 * rng.random((6, 1))
    y = (10.0 ** rng.uniform(-30, 0, size=x.shape)).astype("float32")
    y[:, : size // 2] *= 1e-6
    return x, y


@pytest.mark.parametrize("scalings", [1, 10])
def test_columns_that_float32_does_not_hold_are_solved_in_float64(scalings, rng):
    x, y = hard_columns(rng)
    backend, cost = Interpreted(), costs("grid", 32, rng)
    start = np.where(x > 0, 60 + 20 * rng.normal(size=x.shape), -np.inf).astype("float32")
    limits = TransportLimits(scalings, 0.0)
    options = {"log_u": start, "warm": True}
    assert_equals_reference(backend, cost, x, y, Relaxation(0.01, 1.0, 1.0), limits, rtol=1e-6, **options)


@pytest.mark.parametrize("kind", ["grid", "any"])
def test_products_too_large_to_be_inverted_are_not_held(kind, rng):
    x, y = (rng.random((1, 8, 120)).astype("float32") + 0.1 for _ in range(2))
    start = np.broadcast_to(np.linspace(50, 100, 120, dtype="float32"), x.shape)
    options = {"log_u": start, "warm": True}
    limits = TransportLimits(3, 0.0)
    cost = costs(kind, 8, rng)
    assert_equals_reference(Interpreted(), cost, x, y, Relaxation(0.01, 1.0, 1.0), limits, rtol=1e-6, **options)


def test_columns_beyond_float64_climb_to_logarithms_unless_nobody_can_look(rng):
    x, y = hard_columns(rng)
    backend, cost = Interpreted(), costs("grid", 32, rng)
    relaxation, limits = Relaxation(5e-4, 1.0, 1.0), TransportLimits(5, 0.0)
    assert_equals_reference(backend, cost, x, y, relaxation, limits, rtol=1e-5)
    with backend._recording_mode():
        found = transport_tensor(backend, cost, x, y, 1, relaxation, limits)
    assert np.isnan(found[2].sum(axis=0)).any()


@pytest.mark.parametrize(("tol", "warm"), [(0.0, False), (1e-2, False), (1e-2, True)])
def test_scaling_without_looking_changes_nothing(tol, warm, rng):
    points = rng.random((140, 6))
    cost = np.square(points[:, None] - points).sum(axis=2)
    x = rng.random((140, 90)) * (rng.random((140, 90)) > 0.5)
    x[:, 3] = 0
    y = rng.random((140, 90)) ** 4
    found = []
    backend = TorchBackend("cpu")
    kernel = build_kernel(cost, 0.02, backend, "float32")
    arrays = [torch.tensor(values, dtype=torch.float32) for values in (x, y)]
    start = torch.where(arrays[0] > 0, 0.0, -torch.inf) if warm else None
    for backend.recording in (False, True):
        solved = scale(backend, kernel, *arrays, Relaxation(0.02, 1.0, 1.0), log_u=start, max_iter=16, tol=tol)
        found.append([solved.log_u, solved.log_v, solved.data_marginal, solved.model_marginal])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


@pytest.fixture
def interpreted(monkeypatch):
    backend = Interpreted()
    monkeypatch.setattr(context, "get_backend", lambda name, **_: backend if name == "torch" else REFERENCE)
    return backend


def assert_fits_equal(model, X):
    expected = model.set_params(engine="numpy", dtype="float32").fit(X)
    arrays, curve = expected.factors_, expected.objective_curve_
    found = model.set_params(engine="torch").fit(X)
    for a, b in zip(found.factors_, arrays, strict=True):
        assert np.linalg.norm(a - b) <= 2e-4 * np.linalg.norm(b)
    np.testing.assert_allclose(found.objective_curve_, curve, rtol=1e-4, atol=1e-4 * abs(curve).max())


def start_of(rng, X, rank=3):
    """Given factors, from which a fit starts without a fit of an easier loss."""
    return [rng.random((size, rank)) + 0.1 for size in X.shape]


def test_recorded_fits_equal_the_reference(interpreted, rng):
    X = rng.random((8, 5, 4)) + 0.01
    model = GWNTF(3, costs=(None, "grid", "grid"), graph_reg=2.0, max_iter=3, tol=0, init=start_of(rng, X))
    model.set_params(transport=TransportOptions(3))
    assert_fits_equal(model, X)
    assert interpreted.replayed == 3


def test_recorded_fits_transport_long_modes_without_looking(interpreted, rng):
    X = rng.random((140, 2, 3)) * (rng.random((140, 2, 3)) > 0.2)
    X[5] = 0
    costs = ("cosine", None, "grid")
    model = GWNTF(
        3, costs=costs, graph_reg=1.0, max_iter=2, tol=0, init=start_of(rng, X), transport=TransportOptions(2, tol=0)
    )
    assert_fits_equal(model, X)
    assert interpreted.replayed == 2


def test_fibers_that_nobody_looked_at_bring_the_plain_step_back(interpreted, rng):
    X = rng.random((6, 16, 2)) * (rng.random((6, 16, 2)) > 0.5) + 1e-6
    options = {"graph_reg": 0, "max_iter": 3, "tol": 0, "init": start_of(rng, X, 2)}
    assert_fits_equal(GWNTF(2, costs=(None, "grid", None), reg=1e-3, **options), X)
    assert interpreted.replayed == 1


@pytest.mark.parametrize("model", [NCP(3), GNCP(3, graph_reg=2.0), GWNTF(3, costs=(None, None, None))])
def test_fits_without_transport_are_recorded_too(model, interpreted, rng):
    assert_fits_equal(model.set_params(max_iter=4, tol=0, random_state=0), rng.random((15, 4, 5)))
    assert interpreted.replayed == 4


def test_sparse_rows_are_multiplied_in_order(rng):
    matrix = sp.random_array((30, 40), density=0.1, format="csr", rng=np.random.default_rng(0))
    starts, places = (torch.tensor(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    product = RowProduct(starts, places, torch.tensor(matrix.data)[:, None])
    dense = rng.random((40, 70))
    np.testing.assert_allclose(product(torch.tensor(dense)), matrix @ dense, rtol=1e-14)
    assert product(torch.zeros((40, 0), dtype=torch.float64)).shape == (30, 0)


@pytest.mark.parametrize("update", ["mm", "multiplicative", "least squares"])
def test_steps_against_penalties_are_recorded_too(update, rng):
    X, start = rng.random((15, 4, 5)), [rng.random((size, 2)) + 0.1 for size in (15, 4, 5)]
    penalties = Penalties(Penalty(0.3, 0.7), Penalty(0.2, 2.0))
    loss = LeastSquares()
    if update != "least squares":
        loss = transport_loss((None,) * 3, Relaxation(0.1, 1.0, 1.0), TransportLimits(5, 0.0), plain=Plain(update))
    found, backend = [], Interpreted()
    for place in (REFERENCE, backend):
        problem = Problem(as_data(X, place), loss, penalties=penalties)
        found.append(solve(problem, 2, Stopping(4, 0), init=start, rng=np.random.RandomState(0)))
    assert backend.replayed == 4
    np.testing.assert_allclose(found[1].objective_curve, found[0].objective_curve, rtol=1e-12)
    assert found[1].terms.penalty == pytest.approx(found[0].terms.penalty, rel=1e-12)
