"""Fits that were cut short go on from their checkpoint and end as if nothing had happened, to the bit."""

from __future__ import annotations

import errno
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from gwntf import (
    GNCP,
    GNMF,
    GWNTF,
    NCP,
    NMF,
    SDNMF,
    SWIFT,
    Checkpoint,
    InputError,
    KNNGraph,
    ModelFileError,
    TransportOptions,
    fit_many,
)
from gwntf.backends.numpy_backend import NumpyBackend
from gwntf.core import CheckpointWarning
from gwntf.data import DataTensor, sources
from gwntf.data.dense import DenseBlock
from gwntf.estimators import records
from gwntf.io import read_document, write_document
from gwntf.losses import Plain
from gwntf.solver import RECORDS, Keeper, Stopping, checkpoint
from gwntf.transport import TransportLimits
from tests.backends import OTHERS
from tests.problems import random_problem, solve, with_loss

CLASSES = [GNCP, GNMF, GWNTF, NCP, NMF, SDNMF, SWIFT]
ENGINES = ["numpy", *OTHERS]


class CutError(Exception):
    pass


class Scissors:
    """A callback that raises at one iteration of one start, and counts."""

    def __init__(self, restart=0, iteration=0):
        self.at, self.seen = (restart, iteration), []

    def __call__(self, news):
        self.seen.append((news.restart, news.iteration))
        if self.seen[-1] == self.at:
            raise CutError


def data(shape=(14, 4, 5), seed=0):
    return np.random.default_rng(seed).random(shape)


def cut_and_resumed(model, X, path, *, restart=0, iteration=4):
    """Fit until it is cut, then fit anew; return the model and what its callback has seen after the cut."""
    kept = Checkpoint(path, iterations=1)
    with pytest.raises(CutError):
        clone(model).set_params(callbacks=[kept, Scissors(restart, iteration)]).fit(X)
    assert path.exists()
    watch = Scissors()
    again = clone(model)
    again.random_state = model.random_state  # not a copy
    again.set_params(callbacks=[watch, kept]).fit(X)
    assert not path.exists()
    return again, watch.seen


def assert_same(found, wanted):
    for a, b in zip(found.factors_, wanted.factors_, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(found.objective_curve_, wanted.objective_curve_)
    assert found.objective_terms_ == wanted.objective_terms_
    assert found.status_ is wanted.status_
    assert found.reconstruction_err_ == wanted.reconstruction_err_


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cls", CLASSES)
def test_a_resumed_fit_ends_where_an_uninterrupted_one_does(cls, engine, tmp_path):
    model = cls(3, max_iter=9, tol=0, random_state=0, engine=engine)
    again, seen = cut_and_resumed(model, data(), tmp_path / "run.ckpt", iteration=5)
    assert seen[0] == (0, 5)
    assert_same(again, clone(model).fit(data()))


SETTINGS = {
    "adaptive scalings": (GWNTF, {"transport": TransportOptions("auto"), "max_iter": 40}, 25),
    "cold scalings": (GWNTF, {"transport": TransportOptions(max_memory=0.0)}, 4),
    "ratio updates, many inner steps": (
        GWNTF,
        {"transport": TransportOptions(7), "graph_reg": 3.0},
        4,
    ),
    "kl": (GWNTF, {"costs": [None, None, None]}, 4),
    "single precision": (GWNTF, {"dtype": "float32"}, 4),
    "start by svd": (GNCP, {"init": "nndsvd"}, 4),
    "start by the graph": (GNCP, {"init": "graph", "graph": KNNGraph(metric="auto")}, 4),
    "stopping by tol": (NMF, {"tol": 1e-4, "max_iter": 500}, 10),
}


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_goes_on(name, engine, tmp_path):
    cls, options, iteration = SETTINGS[name]
    model = cls(3, **{"max_iter": 9, "tol": 0, "random_state": 1, "engine": engine, **options})
    again, seen = cut_and_resumed(model, data(), tmp_path / "run.ckpt", iteration=iteration)
    assert seen[0] == (0, iteration)
    assert_same(again, clone(model).fit(data()))


@pytest.mark.parametrize("cls", [GWNTF, NCP])
def test_missing_entries_and_sparse_data_go_on(cls, tmp_path):
    holes = data()
    holes[holes < 0.2] = np.nan
    model = cls(3, max_iter=8, tol=0, random_state=0, missing="ignore")
    again, _ = cut_and_resumed(model, holes, tmp_path / "run.ckpt")
    assert_same(again, clone(model).fit(holes))
    counts = sp.random_array((12, 8), density=0.4, random_state=np.random.default_rng(1), format="csr")
    model = cls(3, max_iter=8, tol=0, random_state=0)
    again, _ = cut_and_resumed(model, counts, tmp_path / "run.ckpt")
    assert_same(again, clone(model).fit(counts))


@pytest.mark.parametrize("cls", [GWNTF, GNCP])
def test_data_that_go_by_in_blocks_go_on(cls, tmp_path, monkeypatch):
    """Every block has scalings of its own, which the checkpoint keeps."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 5 * 20 * 8)
    monkeypatch.setattr(sources, "MAX_IN_MEMORY_BYTES", 0)
    np.save(tmp_path / "x.npy", data())
    X = np.load(tmp_path / "x.npy", mmap_mode="r")
    model = cls(3, max_iter=8, tol=0, random_state=0)
    again, _ = cut_and_resumed(model, X, tmp_path / "run.ckpt")
    assert_same(again, clone(model).fit(X))


def test_restarts_go_on_with_the_best_so_far(tmp_path):
    model = NMF(3, n_init=4, max_iter=8, tol=0, random_state=0)
    whole = clone(model).fit(data())
    for restart in range(4):
        again, seen = cut_and_resumed(model, data(), tmp_path / "run.ckpt", restart=restart, iteration=3)
        assert seen[0] == (restart, 3)
        assert_same(again, whole)


def test_random_numbers_go_on_where_they_were(tmp_path):
    """Those of the user end as after an uninterrupted fit; a fit without a seed keeps the starts it had drawn."""
    path = tmp_path / "run.ckpt"
    own, other = np.random.RandomState(3), np.random.RandomState(3)
    whole = NMF(3, n_init=3, max_iter=6, tol=0, random_state=other).fit(data())
    kept = Checkpoint(path, iterations=1)
    with pytest.raises(CutError):
        NMF(3, n_init=3, max_iter=6, tol=0, random_state=own, callbacks=[kept, Scissors(1, 3)]).fit(data())
    own.random_sample(7)  # whatever happened since
    again = NMF(3, n_init=3, max_iter=6, tol=0, random_state=own, callbacks=[kept]).fit(data())
    assert_same(again, whole)
    assert own.random_sample() == other.random_sample()

    before = np.random.get_state()  # noqa: NPY002
    model = NMF(3, n_init=3, max_iter=6, tol=0, random_state=None)
    again, _ = cut_and_resumed(model, data(), path, restart=0, iteration=3)
    np.random.set_state(before)  # noqa: NPY002
    assert_same(again, clone(model).fit(data()))


def test_many_fits_go_on_at_the_one_that_was_cut(tmp_path):
    class Late(Scissors):
        def __call__(self, news):
            self.seen.append((news.restart, news.iteration))
            if len(self.seen) == 14:  # in the third fit of six iterations each
                raise CutError

    model = NCP(2, max_iter=6, tol=0)
    kept = Checkpoint(tmp_path / "run.ckpt", iterations=1)
    with pytest.raises(CutError):
        fit_many(clone(model).set_params(callbacks=[kept, Late()]), data(), range(4))
    watch = Scissors()
    again = fit_many(clone(model).set_params(callbacks=[kept, watch]), data(), range(4))
    assert len(watch.seen) == 24 - 13
    for found, wanted in zip(again, fit_many(model, data(), range(4)), strict=True):
        assert_same(found, wanted)


def test_a_checkpoint_of_another_layout_is_refused(tmp_path, monkeypatch):
    kept = Checkpoint(tmp_path / "run.ckpt", iterations=1)
    model = NMF(3, max_iter=8, tol=0, random_state=0, callbacks=[kept])
    with pytest.raises(CutError):
        clone(model).set_params(callbacks=[kept, Scissors(0, 4)]).fit(data())
    monkeypatch.setattr(records, "LAYOUT", records.LAYOUT + 1)
    with pytest.raises(InputError, match=r"checkpoint: got .*written by a fit of other data or settings"):
        model.fit(data())


def test_a_checkpoint_of_other_data_or_settings_is_refused_and_stays(tmp_path):
    path = tmp_path / "run.ckpt"
    kept = Checkpoint(path, iterations=1)
    model = GWNTF(3, max_iter=6, tol=0, random_state=0, callbacks=[kept])
    with pytest.raises(CutError):
        clone(model).set_params(callbacks=[kept, Scissors(0, 3)]).fit(data())
    written = path.read_bytes()
    changed = data()
    changed[0, 0, 0] += 1e-12
    others = [
        (model, changed),
        (model, 2 * data()),
        (clone(model).set_params(reg=0.02), data()),
        (clone(model).set_params(random_state=1), data()),
        (clone(model).set_params(engine="numpy"), data()),
        (
            clone(model).set_params(graph=KNNGraph(metric=lambda samples: samples.reshape(len(samples), -1)[:, :3])),
            data(),
        ),
        (SWIFT(3, max_iter=6, tol=0, random_state=0, callbacks=[kept]), data()),
    ]
    for other, X in others:
        with pytest.raises(InputError, match="other data or settings") as caught:
            other.fit(X)
        assert caught.value.argument == "checkpoint"
    assert path.read_bytes() == written
    path.write_bytes(written[:-1])
    with pytest.raises(ModelFileError, match="damaged"):
        model.fit(data())
    write_document(path, "checkpoint", {"fingerprint": "mine"}, {})
    with pytest.raises(ModelFileError, match="is not a checkpoint of this version"):
        model.fit(data())
    write_document(path, "model", {}, {})
    with pytest.raises(ModelFileError, match="it is a model"):
        model.fit(data())


def test_a_generator_that_cannot_be_written_is_refused_before_any_iteration(tmp_path):
    seen = Scissors()
    generator = np.random.RandomState(np.random.PCG64(0))
    model = NMF(2, callbacks=[Checkpoint(tmp_path / "a"), seen], random_state=generator)
    with pytest.raises(InputError, match="MT19937"):
        model.fit(data())
    assert not seen.seen


def test_a_checkpoint_is_copied_with_the_estimator_and_removed_after_the_fit(tmp_path):
    for given in (
        Checkpoint(str(tmp_path / "a")),
        Checkpoint(tmp_path / "b"),
        Checkpoint(tmp_path / "c", iterations=3, seconds=None),
    ):
        model = NMF(2, callbacks=[given], max_iter=3, tol=0, random_state=0)
        assert clone(model).callbacks == [given]
        model.fit(data())
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"iterations": 0}, "iterations"),
        ({"iterations": 1.5}, "iterations"),
        ({"seconds": -1.0}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"path": 3}, "path"),
    ],
)
def test_a_checkpoint_that_makes_no_sense_is_refused(options, name):
    with pytest.raises(InputError) as caught:
        Checkpoint(**{"path": "run.ckpt", **options})
    assert caught.value.argument == name


def test_a_folder_that_is_not_there_is_told_before_any_work(tmp_path):
    for bad in (tmp_path, tmp_path / "none" / "run.ckpt"):
        with pytest.raises(InputError) as caught:
            NMF(2, callbacks=[Checkpoint(bad)]).fit(data())
        assert caught.value.argument == "checkpoint"


def test_it_is_written_as_often_as_was_asked_for(tmp_path, monkeypatch):
    path, clock, lengths = tmp_path / "run.ckpt", [0.0], []
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: clock[0])

    def look(news):
        clock[0] += 1.0
        if path.exists():
            lengths.append(len(read_document(path, "checkpoint", RECORDS)["loop"]["curve"]) - 1)

    def written(**options):
        lengths.clear()
        kept = Checkpoint(path, **options)
        NMF(2, max_iter=10, tol=0, random_state=0, callbacks=[kept, look]).fit(data())
        return sorted(set(lengths))

    assert written(iterations=4, seconds=None) == [4, 8]
    assert written(seconds=3.0) == [3, 6, 9]
    assert written(iterations=4, seconds=3.0) == [3, 6, 9]
    assert written(seconds=None) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_answered_after_the_iteration_with_a_checkpoint(number, tmp_path):
    class LeftError(Exception):
        pass

    def leave(*_):
        raise LeftError

    path = tmp_path / "run.ckpt"
    model = GWNTF(3, max_iter=8, tol=0, random_state=0)
    seen = []

    def ask(news):
        seen.append(news.iteration)
        if news.iteration == 4:
            os.kill(os.getpid(), number)

    handlers = {which: signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM)}
    before = signal.signal(number, leave)
    try:
        with pytest.raises(LeftError):
            clone(model).set_params(callbacks=[Checkpoint(path), ask]).fit(data())
        assert signal.getsignal(number) is leave
    finally:
        signal.signal(number, before)
    assert {which: signal.getsignal(which) for which in handlers} == handlers
    assert seen == [1, 2, 3, 4]
    assert len(read_document(path, "checkpoint", RECORDS)["loop"]["curve"]) == 5
    assert_same(clone(model).set_params(callbacks=[Checkpoint(path)]).fit(data()), clone(model).fit(data()))


@pytest.mark.usefixtures("interruptible")
def test_a_signal_is_answered_though_the_checkpoint_cannot_be_written(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def ask(news):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(checkpoint, "write_document", full)
    model = NMF(2, max_iter=5, tol=0, random_state=0, callbacks=[Checkpoint(tmp_path / "run.ckpt"), ask])
    with pytest.warns(CheckpointWarning, match="No space left"), pytest.raises(KeyboardInterrupt):
        model.fit(data())


def test_a_checkpoint_that_cannot_be_removed_does_not_end_the_fit(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(checkpoint, "remove_leftovers", refuse)
    model = NMF(2, max_iter=5, tol=0, random_state=0)
    with pytest.warns(CheckpointWarning, match="Permission denied"):
        found = clone(model).set_params(callbacks=[Checkpoint(tmp_path / "run.ckpt")]).fit(data())
    assert_same(found, model.fit(data()))


@pytest.mark.usefixtures("interruptible")
def test_a_second_signal_is_handled_immediately(tmp_path):
    def ask(news):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    path = tmp_path / "run.ckpt"
    with pytest.raises(KeyboardInterrupt):
        NMF(2, max_iter=5, tol=0, random_state=0, callbacks=[Checkpoint(path), ask]).fit(data())
    assert not path.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_are_left_alone_without_a_checkpoint_and_off_the_main_thread(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def look(news):
        seen.append(signal.getsignal(signal.SIGTERM))

    def fit(*others):
        NMF(2, max_iter=2, tol=0, random_state=0, callbacks=[look, *others]).fit(data())

    fit()
    thread = threading.Thread(target=fit, args=[Checkpoint(tmp_path / "run.ckpt")])
    thread.start()
    thread.join()
    assert seen == [before] * 4
    fit(Checkpoint(tmp_path / "run.ckpt"))
    assert seen[-1] is not before
    assert signal.getsignal(signal.SIGTERM) is before


class RecordingBackend(NumpyBackend):
    """A backend whose recorded steps differ a little from plain ones, and break in the third call."""

    def __init__(self):
        self.calls = 0

    def recorded(self, function, kernels, entries):
        def replay(*arrays):
            self.calls += 1
            first, *rest, numbers = function(*arrays)
            return (first * (1 + 1e-9), *rest, numbers * (np.nan if self.calls == 3 else 1))

        return replay


@pytest.mark.parametrize("iteration", [2, 6])
def test_a_fit_that_gave_up_its_record_goes_on_without_one(iteration, tmp_path):
    """And one that had not given it up goes on with it."""
    problem, _ = random_problem((8, 4, 5), seed=3)
    problem = with_loss(problem, limits=TransportLimits(10, 1e-6), plain=Plain())

    def fit(backend, **options):
        block = DenseBlock(problem.data.dense_block.values, None, backend)
        on_backend = replace(problem, data=DataTensor.of_block(block))
        return solve(on_backend, 3, Stopping(9, 0), rng=np.random.RandomState(0), **options)

    kept, engine = Checkpoint(tmp_path / "run.ckpt", iterations=1), RecordingBackend()
    whole = fit(engine)
    assert engine.calls == 3
    engine = RecordingBackend()
    with pytest.raises(CutError):
        fit(engine, keeper=Keeper(kept, "same"), callbacks=[Scissors(0, iteration)])
    again = RecordingBackend()
    again.calls = min(engine.calls, iteration - 1)
    found = fit(again, keeper=Keeper(kept, "same"))
    assert again.calls == 3
    for a, b in zip(found.factors, whole.factors, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(found.objective_curve, whole.objective_curve)
