"""A fit of a Dask array on a cluster equals the fit in memory, also when workers are lost; little is sent."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.base import clone

from gwntf import GNCP, GNMF, GWNTF, NCP, SWIFT, Checkpoint, InputError, KNNGraph, TransportOptions
from gwntf.core import GraphNotExtendedWarning
from gwntf.data import sources
from gwntf.data.dense import DenseBlock

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
sparse = pytest.importorskip("sparse")

import gwntf.estimators.base as base  # noqa: E402
from gwntf.data.dask.blocks import OnDask  # noqa: E402
from gwntf.data.dask.tasks import Tasks, assign_workers  # noqa: E402
from gwntf.solver import loop, steps  # noqa: E402
from tests.backends import needs_torch  # noqa: E402
from tests.schemes import plain  # noqa: E402

SHAPE = (23, 6, 5)
GRID = [None, "grid", "grid"]
ALL_MODES = ["cosine", "grid", "grid"]
FEW = {"max_iter": 5, "tol": 0, "random_state": 0}
FEWER = {**FEW, "max_iter": 2}  # where rounding grows most


def samples(shape=SHAPE, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random(shape) * (rng.random(shape) < 0.8) + 0.01


def holed(shape=SHAPE):
    X = samples(shape)
    X[np.random.default_rng(1).random(shape) < 0.1] = np.nan
    return X


def ready_graph():
    """A graph of data with missing entries, which only data in memory can have built."""
    return KNNGraph().build(holed(), missing="ignore")


@pytest.fixture(autouse=True)
def short_starts(monkeypatch):
    """Few iterations of KL before a fit with transport: on a cluster they take as long as those of the fit."""
    monkeypatch.setattr(loop, "_PER_ITERATION", 1)


@pytest.fixture(scope="module")
def client():
    """Two workers of one thread each in separate processes; not the default client.

    A local cluster gives a lost worker up unless it is there 15 seconds later, when another test may have killed it.
    """
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def current(client):
    """The same client as the current one, with all of its workers."""
    client.wait_for_workers(2, timeout=60)
    with client.as_current():
        yield client


def assert_equal_fits(model, wanted, tol=1e-9):
    """Every fitted attribute of one is that of the other."""
    names, others = (
        {name for name in vars(one) if name.endswith("_") and not name.startswith("_")} - {"components_"}
        for one in (wanted, model)
    )
    assert names == others
    assert {"factors_", "objective_curve_", "embedding_", "reconstruction_err_"} <= names
    for name in sorted(names):
        assert_close(getattr(model, name), getattr(wanted, name), tol, name)
    np.testing.assert_allclose(model.components_, wanted.components_, rtol=tol, atol=tol)


def assert_embeddings_agree(found, wanted):
    """Up to a part of the tolerance of the embedding: rounding decides which of its last steps are accepted."""
    distance = np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert distance.max() < 1e-4
    assert np.median(distance) < 1e-7


def assert_close(found, wanted, tol, name):
    if isinstance(wanted, list | tuple) and name != "objective_terms_":
        assert len(found) == len(wanted), name
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other, tol, name)
    elif issparse(wanted):
        assert abs(found - wanted).max() == 0, name
    elif name == "objective_terms_":
        assert_close(_numbers(found), _numbers(wanted), tol, "numbers")
    elif isinstance(wanted, np.ndarray | float):
        np.testing.assert_allclose(found, wanted, rtol=tol, atol=tol, err_msg=name)
    else:
        assert found == wanted, name


def _numbers(terms):
    plans = [part for mode in terms.modes if mode is not None for part in (mode.transport, mode.data, mode.model)]
    return np.array([*plans, terms.misfit, terms.graph])


def as_dask(X):
    """Chunks that are split along two axes; the cluster makes two blocks of them."""
    return da.from_array(X, chunks=((4, 3, 9, len(X) - 16), 4, -1), asarray=not isinstance(X, sparse.SparseArray))


CASES = {
    "every mode and a graph": (
        GWNTF(3, costs=ALL_MODES, transport=TransportOptions(7), graph_reg=5, **FEW),
        samples(),
    ),
    "without the samples": (
        plain(GWNTF(3, costs=GRID, graph_reg=5, **FEW), "multiplicative"),
        samples(),
    ),
    "the samples alone": (GWNTF(3, costs=["cosine", None, None], graph_reg=0, **FEW), samples()),
    "scalings that adapt": (GWNTF(3, transport=TransportOptions("auto"), costs=GRID, **FEW), samples()),
    "cold scalings": (
        GWNTF(3, transport=TransportOptions(max_memory=0), costs=GRID, graph_reg=5, **FEW),
        samples(),
    ),
    "exact data marginal": (GWNTF(3, reg_m=(np.inf, 1.0), reg=0.05, graph_reg=0, **FEWER), samples()),
    "KL": (GWNTF(3, costs=[None] * 3, graph_reg=0, n_init=2, **FEW), samples()),
    "SWIFT": (SWIFT(3, **FEW), samples()),
    "a matrix": (GNMF(3, **FEW), samples()),
    "GNCP": (GNCP(3, init="nndsvd", graph=KNNGraph(4, weight="cosine"), **FEW), samples()),
    "a start from the graph": (GNCP(3, init="graph", **FEW), samples()),
    "missing entries": (GWNTF(3, missing="ignore", graph=ready_graph(), graph_reg=5, **FEW), holed()),
    "missing entries, least squares": (GNCP(3, missing="ignore", graph=ready_graph(), **FEW), holed()),
    "float32": (GWNTF(3, costs=[None] * 3, graph_reg=5, **FEW), samples().astype(np.float32)),
}


@pytest.mark.parametrize("name", CASES)
def test_fit_equals_the_fit_in_memory(name, current, monkeypatch):
    monkeypatch.setattr(steps, "DETACH_EVERY", 2)
    model, X = CASES[name]
    wanted = clone(model).fit(X)
    with distributed.get_task_stream(current) as stream:
        found = clone(model).fit(as_dask(X))
    assert any(str(task["key"]).startswith("gwntf-") for task in stream.data)
    assert_equal_fits(found, wanted, 1e-4 if name == "float32" else 1e-9)


def from_array(X, folder):
    return as_dask(X)


def persisted(X, folder):
    return as_dask(X).persist()


def from_memmap(X, folder):
    np.save(folder / "x.npy", X)
    return as_dask(np.load(folder / "x.npy", mmap_mode="r"))


def from_zarr(X, folder):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(str(folder / "x.zarr"), shape=X.shape, dtype=X.dtype, chunks=(4, 3, 5))
    array[...] = X
    return da.from_zarr(str(folder / "x.zarr"))


def from_sparse(X, folder):
    return as_dask(sparse.COO(X))


@pytest.mark.parametrize("make", [from_array, persisted, from_memmap, from_zarr, from_sparse], ids=lambda f: f.__name__)
def test_workers_fit_embed_and_score_every_kind_of_dask_array(make, current, tmp_path):
    X = samples()
    wanted = GWNTF(3, graph_reg=5, **FEW).fit(X)
    given = make(X, tmp_path)
    model = clone(wanted).fit(given)
    assert_equal_fits(model, wanted)
    ready = clone(wanted).set_params(graph=wanted.graph_).fit(X)  # which is not extended either
    with pytest.warns(GraphNotExtendedWarning):
        assert_embeddings_agree(model.transform(given), ready.transform(X))
    assert model.score(given) == pytest.approx(ready.score(X))


def must_not_be_called(*args, **kwargs):
    raise AssertionError("called")


def test_a_current_client_decides_whether_a_dask_array_is_streamed_or_sent_to_workers(client, monkeypatch):
    """The same array both ways; without a client blocks are read here, with one they are not."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 7 * 30 * 8)
    monkeypatch.setattr(sources, "MAX_IN_MEMORY_BYTES", 0)
    X, model = as_dask(samples()), GNCP(3, **FEW)
    wanted = clone(model).fit(samples())
    monkeypatch.setattr(Tasks, "submit", must_not_be_called)
    with pytest.raises(ValueError, match="No global client"):
        distributed.get_client()
    assert_equal_fits(clone(model).fit(X), wanted)
    monkeypatch.undo()
    monkeypatch.setattr("gwntf.data.stream.Streamed.__init__", must_not_be_called)
    client.wait_for_workers(2, timeout=60)
    with client.as_current():
        assert_equal_fits(clone(model).fit(X), wanted)


def test_other_arrays_stay_in_this_process_while_a_client_is_current(current, monkeypatch, tmp_path):
    monkeypatch.setattr(Tasks, "submit", must_not_be_called)
    np.save(tmp_path / "x.npy", samples())
    wanted = GNCP(3, **FEW).fit(samples())
    for given in (samples(), sparse.COO(samples()), np.load(tmp_path / "x.npy", mmap_mode="r")):
        np.testing.assert_allclose(GNCP(3, **FEW).fit(given).embedding_, wanted.embedding_, rtol=1e-9)


def test_persisted_data_stay_on_the_cluster(current):
    X = da.from_array(samples(), chunks=(12, -1, -1)).persist()
    GNCP(2, **FEW).fit(X)
    assert not wait_until_empty(current)
    assert {future.status for future in distributed.futures_of(X)} == {"finished"}
    np.testing.assert_array_equal(X.compute(), samples())


def test_entries_are_checked_by_the_workers(current):
    X = samples()
    X[20, 1, 1] = -1
    with pytest.raises(InputError, match="1 negative entry"):
        GWNTF(3).fit(as_dask(X))
    with pytest.raises(InputError, match="30 NaN entries"):
        GWNTF(3).fit(as_dask(np.where(np.arange(23)[:, None, None] == 7, np.nan, samples())))


class Kill:
    """Kills one worker in the middle of a fit."""

    def __init__(self, client, iteration):
        self.client, self.iteration, self.killed = client, iteration, None

    def __call__(self, news):
        if news.iteration == self.iteration and self.killed is None:
            self.killed = next(iter(self.client.run(os.getpid).values()))
            os.kill(self.killed, signal.SIGKILL)


@pytest.mark.parametrize(
    ("model", "every"),
    [
        (GWNTF(3, transport=TransportOptions(7), graph_reg=5, **FEW), 2),
        (GWNTF(3, costs=GRID, graph_reg=5, **FEW), 20),
        (GNCP(3, **FEW), 20),
    ],
    ids=["history detached", "whole history", "least squares"],
)
def test_lost_worker_changes_nothing(model, every, current, monkeypatch):
    monkeypatch.setattr(steps, "DETACH_EVERY", every)
    wanted = clone(model).fit(samples())
    kill = Kill(current, 3)
    found = clone(model).set_params(callbacks=[kill]).fit(as_dask(samples()))
    assert kill.killed not in current.run(os.getpid).values()
    assert_equal_fits(found, wanted)


def test_the_only_worker_may_be_lost():
    """Its tasks wait until it is back under another address."""
    model, X = GNCP(3, **FEW), samples()
    wanted = clone(model).fit(X)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        client.as_current(),
    ):
        found = clone(model).set_params(callbacks=[Kill(client, 3)]).fit(as_dask(X))
        assert_equal_fits(found, wanted)


def passes_of(client, model, X):
    """Number of passes over a block in a fit on a cluster."""
    with distributed.get_task_stream(client) as stream:
        model.fit(as_dask(X))
    return sum("gwntf-visit" in str(task["key"]) for task in stream.data)


@pytest.mark.parametrize(
    ("every", "graph_reg", "most"),
    [(20, 0, 8), (3, 5, 2)],
    ids=["steps of the lost block", "steps since the last detachment"],
)
def test_lost_worker_costs(every, graph_reg, most, current, monkeypatch):
    """Nine iterations on two blocks; the worker is killed after the seventh, history was detached after the sixth."""
    monkeypatch.setattr(steps, "DETACH_EVERY", every)
    start = [np.random.default_rng(0).random((size, 3)) for size in samples().shape]
    model = GWNTF(3, costs=GRID, graph_reg=graph_reg, max_iter=9, tol=0, init=start)
    usual = passes_of(current, model, samples())
    kill = Kill(current, 7)
    found = passes_of(current, model.set_params(callbacks=[kill]), samples())
    assert kill.killed is not None
    of_an_iteration = usual / 9 / 2
    assert usual < found <= usual + 2 * most * of_an_iteration


def left_on(client):
    """Keys of the library's tasks on the scheduler."""
    return client.run_on_scheduler(
        lambda dask_scheduler: [str(key) for key in dask_scheduler.tasks if str(key).startswith("gwntf")]
    )


def wait_until_empty(client, seconds=20):
    end = time.monotonic() + seconds
    while left_on(client) and time.monotonic() < end:
        time.sleep(0.05)
    return left_on(client)


@pytest.mark.usefixtures("interruptible")
def test_interrupted_fit_leaves_a_clean_cluster(current):
    def interrupt_soon(news):
        seen.append(len(left_on(current)))
        if news.iteration == 2:
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()

    seen = []
    with pytest.raises(KeyboardInterrupt):
        GWNTF(3, max_iter=100_000, tol=0, callbacks=[interrupt_soon]).fit(as_dask(samples()))
    assert min(seen) > 0
    assert not wait_until_empty(current)
    assert GNCP(2, **FEW).fit(as_dask(samples())).n_iter_ == 5


def test_finished_fit_leaves_a_clean_cluster_and_needs_it_no_more(client):
    client.wait_for_workers(2, timeout=60)
    with client.as_current():
        model = GWNTF(3, graph_reg=0, **FEW).fit(as_dask(samples()))
    assert not wait_until_empty(client)
    with pytest.raises(ValueError, match="No global client"):
        distributed.get_client()
    wanted = GWNTF(3, graph_reg=0, **FEW).fit(samples())
    found = pickle.loads(pickle.dumps(model)).transform(samples())  # noqa: S301
    assert_embeddings_agree(found, wanted.transform(samples()))


def test_tasks_before_a_detachment_are_released(current, monkeypatch):
    monkeypatch.setattr(steps, "DETACH_EVERY", 4)
    known = []
    watch = [lambda news: known.append(len(left_on(current)))]
    GWNTF(3, costs=GRID, max_iter=12, tol=0, callbacks=watch).fit(as_dask(samples()))
    assert max(known[:4]) > min(known[:4]) > 0
    assert max(known[8:]) <= 1.2 * max(known[:8])


def worker_backends(client):
    """Names of the backends that have blocks of data on workers."""

    def names(dask_worker):
        blocks = [value for value in dask_worker.data.values() if isinstance(value, DenseBlock)]
        return {block.backend.name for block in blocks}

    return set().union(*client.run(names).values())


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"engine": "numpy"}, "numpy"),
        ({"engine": "cpu"}, "cpu"),
        ({"engine": "auto"}, "cpu"),
        pytest.param({"engine": "torch"}, "torch", marks=needs_torch),
        pytest.param({"device": "cpu"}, "torch", marks=needs_torch),
    ],
    ids=str,
)
def test_engine_and_device_choose_the_backend_of_the_workers(params, name, current):
    seen = []
    model = GWNTF(3, costs=GRID, graph_reg=5, dtype="float64", **FEW)
    watch = [lambda news: seen.append(worker_backends(current))]
    found = clone(model).set_params(**params, callbacks=watch).fit(as_dask(samples()))
    assert {backend for names in seen for backend in names} - {"numpy"} == {name} - {"numpy"}
    assert_equal_fits(found, clone(model).fit(samples()))


@needs_torch
@pytest.mark.parametrize("params", [{"engine": "torch"}, {"device": "cpu"}], ids=str)
def test_workers_with_torch_compute_in_float32_by_default(params, current):
    found, local = (NCP(2, **params, **FEW).fit(X) for X in (as_dask(samples()), samples()))
    assert {factor.dtype for factor in found.factors_} == {factor.dtype for factor in local.factors_}
    assert found.embedding_.dtype == np.float32


def test_a_device_for_another_engine_than_torch_is_refused(current):
    with pytest.raises(InputError, match="device: got 'cpu' with engine='numpy'; expected None"):
        NCP(2, engine="numpy", device="cpu").fit(as_dask(samples()))


def test_a_cluster_without_workers_is_refused():
    model = NCP(2, **FEW).fit(samples())
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        client.as_current(),
    ):
        for call in (clone(model).fit, model.transform):
            with pytest.raises(InputError, match=r"cluster that has no workers; expected .*wait_for_workers"):
                call(as_dask(samples()))


def test_factors_are_gathered_only_when_a_callback_reads_them(current, monkeypatch):
    gathered = []
    monkeypatch.setattr(OnDask, "rows", _counted(gathered))
    seen = []
    GNCP(2, callbacks=[lambda news: seen.append(news.objective)], **FEW).fit(as_dask(samples()))
    assert len(seen) == 5
    assert len(gathered) == 1
    wanted, found = [], []
    GNCP(2, callbacks=[lambda news: wanted.append(list(news.factors))], **FEW).fit(samples())
    GNCP(2, callbacks=[lambda news: found.append(list(news.factors))], **FEW).fit(as_dask(samples()))
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, 1e-9, "factors")


def _counted(calls):
    rows = OnDask.rows

    def counted(self, kept):
        calls.append(kept)
        return rows(self, kept)

    return counted


def test_only_small_messages_are_sent(current, monkeypatch):
    """An update of all factors sends no data; the size of what it sends is that of the page on scaling."""
    shape, rank, itemsize = (300, 20, 20), 3, 8
    chain = csr_array(np.eye(300, k=1) + np.eye(300, k=-1))
    brought, sent = [], []
    gather = Tasks.gather

    def weighed(self, futures):
        found = gather(self, futures)
        brought.append(len(pickle.dumps(found)))
        return found

    def moved(client):
        logs = client.run(lambda dask_worker: sum(x["total"] for x in dask_worker.transfer_incoming_log))
        return sum(logs.values())

    monkeypatch.setattr(Tasks, "gather", weighed)
    counts = []

    def watch(news):
        counts.append(len(brought))
        sent.append(moved(current))

    model = GWNTF(rank, costs=GRID, graph=chain, graph_reg=5, max_iter=6, tol=0, callbacks=[watch])
    model.fit(da.from_array(samples(shape), chunks=(150, -1, -1)))
    here = sum(brought[counts[0] : counts[-1]]) / 5
    between = (sent[-1] - sent[0]) / 5
    others, rows = 400 * rank * itemsize, 300 * rank * itemsize
    assert others + 3 * rows < here < others + 3 * rows + 4000
    halo = 2 * rank * itemsize
    assert halo <= between < 2 * others + rows + 6000
    assert between < 0.04 * np.prod(shape) * itemsize


ASSIGNED = {
    "evenly": ([None] * 3, ["a", "b", "b"], ["a", "b", "b"]),
    "blocks with a worker stay": (["b", "a"], ["a", "b"], ["b", "a"]),
    "a lost worker is replaced by a free one": (["a", "lost"], ["a", "new"], ["a", "new"]),
    "extra blocks go to the least loaded worker": (["a", "lost"], ["a"], ["a", "a"]),
    "and spread when a worker joins": (["a", "a"], ["a", "new"], ["a", "new"]),
    "without workers": (["a"], [], [None]),
}


@pytest.mark.parametrize("name", ASSIGNED)
def test_blocks_are_assigned_to_workers(name):
    workers, slots, wanted = ASSIGNED[name]
    assert assign_workers(workers, slots) == wanted


def test_every_worker_works(current):
    """Blocks are distributed to all workers, also where one of them has all chunks."""
    model = GWNTF(3, costs=GRID, graph_reg=0, max_iter=8, tol=0)
    first = next(iter(current.nthreads()))
    X = da.from_array(samples((40, 6, 5)), chunks=(10, 6, 5)).persist(workers=[first])
    with distributed.get_task_stream(current) as stream:
        model.fit(X)
    done = [task["worker"] for task in stream.data if "gwntf-visit" in str(task["key"])]
    assert min(done.count(worker) for worker in current.nthreads()) >= len(done) / 3


REFUSED = [
    ({"transport": TransportOptions(0)}, "transport.max_iter: got 0"),
    ({"graph": np.ones((3, 3))}, "graph: got"),
    ({"costs": (None, "grit", None)}, r"costs\[1\]: got 'grit'"),
]


@pytest.mark.parametrize(("params", "message"), REFUSED, ids=[next(iter(p)) for p, _ in REFUSED])
def test_bad_settings_are_refused_before_any_work(params, message, current, monkeypatch):
    monkeypatch.setattr(base, "solve_each", must_not_be_called)
    with pytest.raises(InputError, match=message):
        GWNTF(3, **params).fit(as_dask(samples()))


def test_least_squares_reads_every_block_once_per_iteration(current):
    """One task for each block and iteration updates the rows and computes the sums."""
    with distributed.get_task_stream(current) as stream:
        GNCP(3, **FEW).fit(as_dask(samples()))
    names = [str(task["key"]).split("-")[1] for task in stream.data if str(task["key"]).startswith("gwntf-")]
    assert names.count("step") == 2 * 5
    assert names.count("measure") == 2


def cut_short(news):
    if news.iteration == 3:
        raise RuntimeError("cut short")


CHECKPOINTED = {
    "every mode and a graph": (
        GWNTF(3, costs=ALL_MODES, graph_reg=5, transport=TransportOptions("auto"), **FEW),
        samples(),
    ),
    "least squares": (GNCP(3, **FEW), samples()),
    "missing entries": (GNCP(3, missing="ignore", graph=ready_graph(), **FEW), holed()),
    "sparse": (GWNTF(3, graph_reg=5, **FEW), sparse.COO(samples() * (samples(seed=1) < 0.5))),
}


@pytest.mark.parametrize("name", CHECKPOINTED)
def test_fit_resumes_from_its_checkpoint_with_other_blocks(name, current, tmp_path, monkeypatch):
    """The blocks of the second fit are those of a cluster with three threads."""
    model, X = CHECKPOINTED[name]
    wanted = clone(model).fit(X)
    kept = Checkpoint(tmp_path / "run.ckpt", iterations=1)
    with pytest.raises(RuntimeError, match="cut short"):
        clone(model).set_params(callbacks=[kept, cut_short]).fit(as_dask(X))
    slots = Tasks.slots
    monkeypatch.setattr(Tasks, "slots", lambda self: [*slots(self), slots(self)[0]])
    seen = []
    again = clone(model).set_params(callbacks=[kept, lambda news: seen.append(news.iteration)]).fit(as_dask(X))
    assert seen == [3, 4, 5]
    assert not (tmp_path / "run.ckpt").exists()
    assert_equal_fits(again, wanted)


CLIENT = """
import os, signal, sys
from distributed import Client
from gwntf import GWNTF, Checkpoint
from tests.test_dask import FEW, as_dask, samples

def die(news):
    if news.iteration == 3:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    with Client(sys.argv[1]):
        kept = Checkpoint(sys.argv[2], iterations=1)
        GWNTF(3, graph_reg=5, callbacks=[kept, die], **FEW).fit(as_dask(samples()))
"""


def test_fit_of_a_killed_client_is_resumed_by_another_with_the_same_result(current, tmp_path, monkeypatch):
    monkeypatch.undo()  # the other process has its own settings
    path = tmp_path / "run.ckpt"
    command = [sys.executable, "-c", CLIENT, current.scheduler.address, str(path)]
    died = subprocess.run(command, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    seen = []
    model = GWNTF(3, graph_reg=5, **FEW)
    kept = Checkpoint(path, iterations=1)
    found = clone(model).set_params(callbacks=[kept, lambda news: seen.append(news.iteration)])
    found.fit(as_dask(samples()))
    assert seen == [3, 4, 5]
    assert_equal_fits(found, clone(model).fit(samples()))


def test_ended_fits_leave_the_connection_of_the_client_open(current):
    """A failing request to the scheduler would close it: the scheduler would release all data of the client."""
    X = as_dask(samples()).persist()
    kept = current.scatter(1)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="cut short"):
            GWNTF(3, costs=ALL_MODES, graph_reg=5, callbacks=[cut_short], **FEW).fit(X)
        assert not wait_until_empty(current)
    assert current.gather(kept) == 1
    np.testing.assert_array_equal(X.compute(), samples())
