"""Running a table: one cached file per run, runs in parallel; an interrupted table resumes from the cache."""

import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, parallel_config

from gwntf.core import DataError
from gwntf.estimators import fit_many
from gwntf.evaluation import SCORES
from gwntf.experiments.runs import (
    Run,
    RunResult,
    Setting,
    check_labelling,
    do_run,
    estimator,
    fit_result,
    fit_run,
    has_pictures,
    label_run,
    load_setting,
)
from gwntf.experiments.table import FOREIGN, Table


def plan_runs(table: Table, runs: int | None, engine: str | None, device: str | None = None) -> list[Run]:
    """Return all runs of a table, method by method."""
    where = {"engine": engine, "device": device}
    chosen = {name: value for name, value in where.items() if value is not None}
    methods = [
        method if method.estimator in FOREIGN else replace(method, params={**method.params, **chosen})
        for method in table.methods
    ]
    return [
        Run(table.dataset, method, table.kmeans_starts, table.score_at, seed)
        for method in methods
        for seed in range(table.runs if runs is None else runs)
    ]


def run_table(
    table: Table,
    *,
    runs: int | None = None,
    cache: Path,
    engine: str | None = None,
    device: str | None = None,
    jobs: int | None = None,
    on_result: Callable[[RunResult], None] | None = None,
) -> list[RunResult]:
    """Do all runs of a table that are not cached yet, and return every result.

    Parameters
    ----------
    table : Table
        What to run.
    runs : int, optional
        Seeds per method, from 0; the table's own number by default.
    cache : path
        Folder of results, one file per run; files are written atomically, so an interrupted table resumes where it
        stopped.
    engine, device : str, optional
        Engine of every factorization, and its device. With a device all seeds of a method are fitted in this process
        and labelled in parallel processes.
    jobs : int, optional
        Number of processes; by default one per core. Threads are divided evenly among them.
    on_result : callable, optional
        Called with every result as it arrives, cached ones first.
    """
    cache.mkdir(parents=True, exist_ok=True)
    todo = plan_runs(table, runs, engine, device)
    cached = {run.key: found for run in todo if (found := read_result(cache, run)) is not None}
    missing = list({run.key: run for run in todo if run.key not in cached}.values())
    results = {}
    with warnings.catch_warnings():
        # joblib warns when it replaces workers whose memory grew during compilation
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
        for key, result in chain(cached.items(), _run_in_parallel(missing, cache, jobs, device)):
            results[key] = result
            if on_result:
                on_result(result)
    return [replace(results[run.key], method=run.method.name) for run in todo]


def read_result(cache: Path, run: Run) -> RunResult | None:
    """Return the cached result of a run; None if it, or the file of its pictures, does not exist."""
    path = cache / f"{run.key}.json"
    if has_pictures(run) and not path.with_suffix(".npz").exists():
        return None
    try:
        result = RunResult(**json.loads(path.read_text(encoding="utf-8")))
        if set(result.scores) != set(SCORES):
            raise ValueError("scores are missing")
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise DataError(f"{path} is not the result of a run ({error}): remove it and run again") from error
    return result


def first_pictures(
    table: Table, cache: Path, engine: str | None = None, device: str | None = None
) -> dict[str, dict[str, Any]]:
    """Return, by method, the arrays written for reports by its first run; scikit-learn's methods have none."""
    found = {}
    for run in plan_runs(table, 1, engine, device):
        path = cache / f"{run.key}.npz"
        if not has_pictures(run) or not path.exists():
            continue
        try:
            with np.load(path, allow_pickle=False) as arrays:
                found[run.method.name] = {name: arrays[name] for name in arrays.files}
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read ({error}): remove it and run again") from error
    return found


def _run_in_parallel(
    runs: list[Run], cache: Path, jobs: int | None, device: str | None
) -> Iterator[tuple[str, RunResult]]:
    if not runs:
        return
    cores = cpu_count()
    jobs = max(1, min(jobs or cores, len(runs)))
    setting = load_setting(runs[0].dataset, [run.method for run in runs])
    for run in runs:
        check_labelling(run, setting)
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=max(1, cores // jobs)):
        tasks = (delayed(do_run)(run, setting, cache) for run in runs)
        yield from Parallel(return_as="generator_unordered")(
            tasks if device is None else _device_tasks(runs, setting, cache)
        )


def _device_tasks(runs: list[Run], setting: Setting, cache: Path) -> Iterator[Any]:
    """Fit all seeds of a method in this process, and yield the tasks that label them, without the unneeded data."""
    light = replace(setting, X=setting.X[:0], sample_cost=setting.sample_cost[:0])
    for _, group in groupby(runs, key=lambda run: run.method.name):
        same = list(group)
        if same[0].method.estimator in FOREIGN:
            yield from (delayed(do_run)(run, setting, cache) for run in same)
        elif same[0].score_at:
            yield from (delayed(label_run)(run, *fit_run(run, setting, cache), light, cache) for run in same)
        else:
            started = time.perf_counter()
            models = fit_many(estimator(same[0], setting), setting.X, [run.seed for run in same])
            seconds = (time.perf_counter() - started) / len(models)
            for run, model in zip(same, models, strict=True):
                fitted = fit_result(run, model, seconds, setting, cache)
                yield delayed(label_run)(run, *fitted, light, cache)
