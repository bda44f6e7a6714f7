"""Every loss gives the same fit on every kind of data and every backend as on dense data in memory with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from gwntf import GNCP, GNMF, GWNTF, NCP, NMF, SDNMF, InputError, KNNGraph, TransportOptions
from gwntf.data import DataTensor, sources
from gwntf.losses import Entrywise, Penalties, Penalty
from gwntf.solver import Problem, Stopping, loop
from tests.backends import needs_torch
from tests.problems import solve
from tests.schemes import plain

sparse = pytest.importorskip("sparse")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::gwntf.core.GraphNotExtendedWarning")

SHAPE = (23, 6, 5)
FEW = {"max_iter": 4, "tol": 0, "random_state": 0}
GRID = [None, "grid", "grid"]


class CauchyLoss(Entrywise):
    """log(x^ + 1) - x / (x^ + 1): a custom loss that must see zeros."""

    def value(self, xp, x, model):
        return xp.log(model + 1) + (x + 1) / (model + 1)

    def attraction(self, xp, x, model):
        return (x + 1) / (model + 1) ** 2

    def repulsion(self, xp, x, model):
        return 1 / (model + 1)


class Cauchy(GNCP):
    loss = CauchyLoss()


class CauchyNMF(NMF):
    loss = CauchyLoss()


PARTS = [np.random.default_rng(7).random((size, 2)) + 0.1 for size in SHAPE[1:]]

LOSSES = {
    "held parts, transport": GWNTF(3, parts=PARTS, costs=GRID, graph_reg=1.0, **FEW),
    "held parts, least squares": NCP(3, parts=PARTS, **FEW),
    "held parts, a custom loss": Cauchy(3, parts=PARTS, graph_reg=0, **FEW),
    "transport of every mode, a graph": GWNTF(3, costs=["cosine", "grid", "grid"], graph_reg=1.0, **FEW),
    "transport without the samples": GWNTF(3, costs=GRID, graph_reg=2.0, transport=TransportOptions(7), **FEW),
    "transport of the samples alone": GWNTF(3, costs=["cosine", None, None], graph_reg=0, **FEW),
    "adaptive scalings": plain(GWNTF(3, **FEW), "multiplicative"),
    "transport over all entries": SDNMF(3, **FEW),
    "KL": GWNTF(3, costs=[None] * 3, graph_reg=1.0, **FEW),
    "least squares": NCP(3, init="nndsvd", **FEW),
    "least squares, a graph": GNCP(3, graph=KNNGraph(weight="cosine"), **FEW),
    "least squares of a matrix": GNMF(3, **FEW),
    "custom, a graph": Cauchy(3, graph_reg=1.0, **FEW),
    "custom, a matrix": CauchyNMF(3, **FEW),
    "transport of every mode, penalties": GWNTF(
        3, costs=["cosine", "grid", "grid"], graph_reg=1.0, alpha=(0.5, 0.05), l1_ratio=0.3, **FEW
    ),
    "multiplicative, penalties": plain(GWNTF(3, alpha=0.05, l1_ratio=0.3, **FEW), "multiplicative", 2),
    "KL, penalties": GWNTF(3, costs=[None] * 3, alpha=(0.5, 0.05), l1_ratio=0.3, **FEW),
    "least squares, a graph, penalties": GNCP(3, alpha=0.002, l1_ratio=0.3, **FEW),
    "custom, penalties": Cauchy(3, alpha=0.02, l1_ratio=0.3, **FEW),
}


def samples():
    rng = np.random.default_rng(0)
    return rng.random(SHAPE) * (rng.random(SHAPE) < 0.5) + 0.05 * (np.arange(SHAPE[-1]) == 0)


def as_memmap(X, folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


KINDS = {
    "dense": lambda X, folder: X,
    "sparse": lambda X, folder: sparse.COO(X),
    "memmap": as_memmap,
    "dask": lambda X, folder: da.from_array(X, chunks=((5, 9, 9), 4, -1)),
    "dask of sparse chunks": lambda X, folder: da.from_array(sparse.COO(X), chunks=(9, 6, 5), asarray=False),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Seven samples of thirty float64 numbers."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 7 * 30 * 8)
    monkeypatch.setattr(sources, "MAX_IN_MEMORY_BYTES", 0)


@pytest.fixture(autouse=True)
def short_starts(monkeypatch):
    """Few iterations of KL before a fit with transport: on a cluster they take as long as those of the fit."""
    monkeypatch.setattr(loop, "_PER_ITERATION", 1)


@pytest.fixture(scope="module")
def reference():
    """Fits in memory; of kinds that are not, with a ready graph: neither extends it to new samples."""
    found = {}

    def fitted(name, kind):
        key = name, kind in ("dense", "sparse")
        if key not in found:
            model = clone(LOSSES[name]).set_params(engine="numpy")
            if not key[1] and getattr(model, "graph_reg", 0):
                rule = KNNGraph() if model.graph == "knn" else model.graph
                model.graph = rule.build(samples())
            found[key] = model.fit(samples())
        return found[key]

    return fitted


@pytest.fixture(scope="module")
def client():
    """Two workers that are threads of this process."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.Client(processes=False, set_as_default=False, **options) as client:
        yield client


def assert_same(found, wanted, given):
    np.testing.assert_allclose(found.objective_curve_, wanted.objective_curve_, rtol=1e-9)
    for one, other in zip(found.factors_, wanted.factors_, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert found.reconstruction_err_ == pytest.approx(wanted.reconstruction_err_, rel=1e-9)
    np.testing.assert_allclose(found.transform(given), wanted.transform(samples()), rtol=1e-9, atol=1e-12)
    assert found.score(given) == pytest.approx(wanted.score(samples()), rel=1e-9)


@pytest.mark.parametrize("engine", ["numpy", "cpu", pytest.param("torch", marks=needs_torch)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_on_every_kind_and_backend(name, kind, engine, reference, tmp_path):
    given = KINDS[kind](samples(), tmp_path)
    found = clone(LOSSES[name]).set_params(engine=engine, dtype="float64").fit(given)
    assert_same(found, reference(name, kind), given)


ON_CLUSTER = ["dask", "dask of sparse chunks"]


@pytest.mark.parametrize("kind", ON_CLUSTER)
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_on_a_cluster(name, kind, reference, client, tmp_path):
    given = KINDS[kind](samples(), tmp_path)
    with client.as_current():
        assert_same(clone(LOSSES[name]).fit(given), reference(name, kind), given)


ON_TORCH = ["transport of every mode, a graph", "KL", "least squares, a graph", "held parts, a custom loss"]


@needs_torch
@pytest.mark.parametrize("kind", ON_CLUSTER)
@pytest.mark.parametrize("name", ON_TORCH)
def test_every_loss_on_a_cluster_whose_workers_use_torch(name, kind, reference, client, tmp_path):
    given = KINDS[kind](samples(), tmp_path)
    with client.as_current():
        model = clone(LOSSES[name]).set_params(device="cpu", dtype="float64")
        assert_same(model.fit(given), reference(name, kind), given)


def test_custom_loss_is_the_objective_also_of_clones():
    """The objective of a fit is the sum of the loss over all entries, which least squares is not."""
    X = samples()
    model = clone(Cauchy(3, sample_norm=None, graph=None, **FEW)).fit(X)
    fitted = np.einsum("ir,jr,kr->ijk", *model.factors_)
    assert model.objective_ == pytest.approx((np.log(fitted + 1) + (X + 1) / (fitted + 1)).sum())
    assert model.get_params() == clone(model).get_params()


def test_models_with_custom_losses_are_not_written_to_files(tmp_path):
    path = tmp_path / "model.gwntf"
    with pytest.raises(InputError, match=r"model: got a Cauchy; expected one of .*GNCP"):
        Cauchy(3, **FEW).fit(samples()).save(path)
    assert not path.exists()


def test_penalties_are_below_the_ratios_of_custom_losses():
    rng = np.random.default_rng(0)
    penalties = Penalties(Penalty(0.3, 0.7), Penalty(0.2, 2.0))
    X, a, h = rng.random((7, 5)), rng.random((7, 2)) + 0.1, rng.random((5, 2)) + 0.1
    problem = Problem(DataTensor.of_array(X), CauchyLoss(), penalties=penalties)
    result = solve(problem, 2, Stopping(1, 0), init=[a, h], rng=np.random.RandomState(0))
    a, h = a * h.sum(axis=0), h / h.sum(axis=0)
    up, down = (X + 1) / (a @ h.T + 1) ** 2, 1 / (a @ h.T + 1)
    h = h * (up.T @ a) / (down.T @ a + 0.2 + 2.0 * h)
    up, down = (X + 1) / (a @ h.T + 1) ** 2, 1 / (a @ h.T + 1)
    a = a * (up @ h) / (down @ h + 0.3 + 0.7 * a)
    np.testing.assert_allclose(result.factors[0] @ result.factors[1].T, a @ h.T, rtol=1e-12)
