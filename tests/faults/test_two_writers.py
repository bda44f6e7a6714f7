"""Two processes that run the same table of `gwntf reproduce` into the same cache at the same time."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

from gwntf.experiments import load_table, run_table

TABLE = """
title = "small"
dataset = "digits"
runs = 4
kmeans_starts = 1

[[method]]
name = "NMF"
params = { max_iter = 2, tol = 0, engine = "numpy" }
"""


def work(folder: Path, together, answers) -> None:
    """Run the table as soon as the other process is ready."""
    table = load_table(folder / "small.toml")
    together.wait(120)
    results = run_table(table, cache=folder / "cache", jobs=1)
    answers.put([result.scores for result in results])


def test_two_processes_may_run_the_same_table_at_once(tmp_path):
    (tmp_path / "small.toml").write_text(TABLE)
    context = multiprocessing.get_context("spawn")
    together, answers = context.Barrier(2), context.Queue()
    processes = [context.Process(target=work, args=(tmp_path, together, answers)) for _ in range(2)]
    for process in processes:
        process.start()
    first, second = (answers.get(timeout=240) for _ in processes)
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert first == second
    alone = run_table(load_table(tmp_path / "small.toml"), cache=tmp_path / "alone", jobs=1)
    assert [result.scores for result in alone] == first
    assert names(tmp_path / "cache") == names(tmp_path / "alone")
    for path in (tmp_path / "cache").glob("*.json"):
        assert json.loads(path.read_text())["scores"] in first


def names(folder: Path) -> list[str]:
    """All files, also those that begin with a dot: nothing that was written aside is left."""
    return sorted(path.name for path in folder.iterdir())
