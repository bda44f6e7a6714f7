"""Running a table: one cached file per run, seeds in parallel, restart where a killed run stopped."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count

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
    factorise,
    fitted_of,
    has_pictures,
    label_run,
    load_setting,
)
from gwntf.experiments.table import FOREIGN, Method, Table


def plan_runs(table: Table, runs: int | None, engine: str | None, device: str | None = None) -> list[Run]:
    """All runs of a table, method by method."""
    return [
        Run(table.dataset, _on_engine(method, engine, device), table.kmeans_starts, table.score_at, seed)
        for method in table.methods
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
        Folder of results, one file per run; each appears whole, so that a killed table goes on where it
        stopped.
    engine, device : str, optional
        Backend of every factorization, and its device. On a device all seeds of a method are fitted by one process, and
        labelled by all.
    jobs : int, optional
        Processes; by default one per core. Each gets its share of the cores for its own threads.
    on_result : callable, optional
        Called with every result as it arrives, cached ones first.
    """
    cache.mkdir(parents=True, exist_ok=True)
    todo = plan_runs(table, runs, engine, device)
    results = {run.key: cached for run in todo if (cached := read_result(cache, run)) is not None}
    missing = list({run.key: run for run in todo if run.key not in results}.values())
    for result in results.values():
        if on_result:
            on_result(result)
    with warnings.catch_warnings():
        # a worker that has compiled much takes more memory than at first, and joblib replaces it with a warning
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
        for key, result in _in_parallel(missing, cache, jobs, device) if missing else ():
            results[key] = result
            if on_result:
                on_result(result)
    return [replace(results[run.key], method=run.method.name) for run in todo]


def _on_engine(method: Method, engine: str | None, device: str | None) -> Method:
    if method.estimator in FOREIGN:
        return method
    given = {"engine": engine, "device": device}
    chosen = {name: value for name, value in given.items() if value is not None}
    return replace(method, params={**method.params, **chosen})


def read_result(cache: Path, run: Run) -> RunResult | None:
    """Return the cached result of a run, or None if there is none (or if its pictures are gone)."""
    path = cache / f"{run.key}.json"
    if has_pictures(run) and not path.with_suffix(".npz").exists():
        return None
    try:
        result = RunResult(**json.loads(path.read_text(encoding="utf-8")))
        if set(result.scores) != set(SCORES):
            raise ValueError("not all scores are there")
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise DataError(f"{path} is no result of a run ({error}): remove it and run again") from error
    return result


def first_pictures(
    table: Table, cache: Path, engine: str | None = None, device: str | None = None
) -> dict[str, dict[str, Any]]:
    """Return, by method, the arrays kept of its first run for reports; scikit-learn's methods have none."""
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


def _in_parallel(
    runs: list[Run], cache: Path, jobs: int | None, device: str | None
) -> Iterator[tuple[str, RunResult]]:
    from joblib import Parallel, delayed, parallel_config

    cores = cpu_count()
    jobs = max(1, min(jobs or cores, len(runs)))
    setting = load_setting(runs[0].dataset, [run.method for run in runs])
    for run in runs:
        check_labelling(run, setting)
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=max(1, cores // jobs)):
        parallel = Parallel(return_as="generator_unordered")
        if device is None:
            yield from parallel(delayed(do_run)(run, setting, cache) for run in runs)
        else:
            yield from parallel(_tasks(runs, setting, cache, delayed))


def _tasks(runs: list[Run], setting: Setting, cache: Path, delayed: Callable[..., Any]) -> Iterator[Any]:
    """Fit all seeds of a method here, and leave their labels to others, who get no more than they need for that."""
    light = replace(setting, X=setting.X[:0], sample_cost=setting.sample_cost[:0])
    for _, group in groupby(runs, key=lambda run: run.method.name):
        same = list(group)
        if same[0].method.estimator in FOREIGN:
            yield from (delayed(do_run)(run, setting, cache) for run in same)
            continue
        if same[0].score_at:
            for run in same:
                fitted, on_the_way = factorise(run, setting, cache)
                yield delayed(label_run)(run, fitted, light, cache, on_the_way)
            continue
        started = time.perf_counter()
        models = fit_many(estimator(same[0], setting), setting.X, [run.seed for run in same])
        seconds = (time.perf_counter() - started) / len(models)
        for run, model in zip(same, models, strict=True):
            yield delayed(label_run)(run, fitted_of(run, model, seconds, setting, cache), light, cache)
