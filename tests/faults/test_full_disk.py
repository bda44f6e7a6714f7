"""No room left while a file is written: the old one survives, and the error says so; a fit goes on without checkpoint.

A limit on the size of files stands for the full disk: the system refuses the write in the middle, as it would then.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import warnings
from pathlib import Path

import numpy as np
import pytest

from gwntf import NMF, Checkpoint, FileWriteError
from gwntf.cli.output import write_text
from gwntf.experiments import load_table, run_table, summarise
from gwntf.reports import table_report

LIMIT = 600

TABLE = """
title = "small"
dataset = "digits"
runs = 1
kmeans_starts = 1

[[method]]
name = "k-means"
estimator = "KMeans"

[[method]]
name = "NMF"
params = { max_iter = 2, tol = 0 }
"""


def data():
    return np.random.default_rng(0).random((30, 8))


def write_model(folder: Path) -> None:
    NMF(3, max_iter=3, tol=0, random_state=0, engine="numpy").fit(data()).save(folder / "file")


def table(folder: Path):
    (folder.parent / "small.toml").write_text(TABLE)
    return load_table(folder.parent / "small.toml")


def write_runs(folder: Path) -> None:
    run_table(table(folder).only(["NMF"]), cache=folder, jobs=1)


def write_report(folder: Path) -> None:
    small = table(folder)
    results = run_table(small, cache=folder.parent / "cache", jobs=1)
    with limited():
        write_text(folder / "small.html", table_report(summarise(small, results), {}))


class limited:  # noqa: N801
    """Let files grow to a few hundred bytes inside the block."""

    def __enter__(self):
        self.before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, self.before[1]))

    def __exit__(self, *_):
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)


def refused(write, folder: Path, answers) -> None:
    """Write with no room, and send back what was said."""
    try:
        if write is write_report:
            write(folder)
        else:
            with limited():
                write(folder)
        answers.put("written")
    except Exception as error:
        cause = error if isinstance(error, FileWriteError) else error.__cause__
        answers.put(json.dumps([isinstance(cause, FileWriteError), isinstance(cause, OSError), str(error)]))


CASES = {
    "model": (write_model, "file", b"the old model"),
    "run": (write_runs, "digits-NMF", None),
    "report": (write_report, "small.html", b"the old report"),
}


@pytest.mark.parametrize("name", CASES)
def test_with_no_room_left_the_old_file_survives_and_the_error_says_so(name, tmp_path):
    write, target, old = CASES[name]
    folder = tmp_path / "here"
    folder.mkdir()
    if old is not None:
        (folder / target).write_bytes(old)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    child = context.Process(target=refused, args=(write, folder, answers))
    child.start()
    wrapped, system, message = json.loads(answers.get(timeout=120))
    child.join()
    assert wrapped
    assert system
    assert target in message
    assert "File too large" in message
    assert ("the existing file is unchanged" if before else "no file was created") in message
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def fit_with_checkpoints(folder: Path, answers) -> None:
    """Fit with no room up to the tenth iteration; send the warnings, when there was a checkpoint, and the result."""
    room, seen = limited(), []

    def watch(news):
        seen.append([path.name for path in folder.iterdir()])
        if news.iteration == 10:
            room.__exit__()

    kept = Checkpoint(folder / "file", iterations=4)
    options = {"max_iter": 16, "tol": 0, "random_state": 0, "engine": "numpy"}
    with warnings.catch_warnings(record=True) as caught, room:
        warnings.simplefilter("always")
        model = NMF(3, callbacks=[kept, watch], **options).fit(data())
    told = [(entry.category.__name__, entry.filename, str(entry.message)) for entry in caught]
    answers.put((told, seen, np.array_equal(model.embedding_, NMF(3, **options).fit(data()).embedding_)))


def test_with_no_room_for_a_checkpoint_the_fit_warns_goes_on_and_tries_again(tmp_path):
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    child = context.Process(target=fit_with_checkpoints, args=(tmp_path, answers))
    child.start()
    told, seen, same = answers.get(timeout=120)
    child.join()
    ((category, where, message),) = told  # once, though two checkpoints failed
    assert category == "CheckpointWarning"
    assert where == __file__
    assert str(tmp_path / "file") in message
    assert "File too large" in message
    assert "continues and tries again" in message
    assert seen == [[]] * 12 + [["file"]] * 4
    assert same
    assert list(tmp_path.iterdir()) == []
