"""`gwntf reproduce`: the paper's tables beside the printed figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from gwntf.core import InputError
from gwntf.experiments import RunResult, Table, TableSummary, find_table, load_table, run_table, summarise
from gwntf.experiments.runner import first_pictures
from gwntf.io import atomic_path
from gwntf.plots import require_matplotlib
from gwntf.reports import summary_chart, table_report


def reproduce(
    names: list[str],
    output: Path,
    *,
    runs: int | None,
    methods: list[str] | None,
    engine: str | None,
    device: str | None,
    jobs: int | None,
) -> None:
    """Run each table, print it and write it as JSON, Markdown, HTML and a chart to `output`."""
    require_matplotlib()
    tables = [load_table(find_table(name)).only(methods) for name in names]
    if len({table.name for table in tables}) < len(tables):
        raise InputError("tables", ", ".join(names), "files of different names: each writes files of its own")
    cache = output / "cache"
    for table in tables:
        summary = run_and_print(table, cache, runs=runs, engine=engine, device=device, jobs=jobs)
        _write(summary, output, "json", json.dumps(summary.to_json(), indent=1) + "\n")
        _write(summary, output, "md", f"# {table.title}\n\n{summary.legend}\n\n{summary.to_markdown()}")
        _write(summary, output, "html", table_report(summary, first_pictures(table, cache, engine, device)))
        with atomic_path(output / f"{table.name}.png") as path:
            summary_chart(summary).savefig(path, dpi=100)
        print()


def run_and_print(
    table: Table,
    cache: Path,
    *,
    runs: int | None = None,
    engine: str | None = None,
    device: str | None = None,
    jobs: int | None = None,
) -> TableSummary:
    """Run a table with a progress bar and print it."""
    count = (table.runs if runs is None else runs) * len(table.methods)
    with tqdm(total=count, desc=table.name, unit="run") as bar:
        where: dict[str, Any] = {"engine": engine, "device": device, "jobs": jobs}
        results = run_table(table, runs=runs, cache=cache, on_result=_mover(bar), **where)
    summary = summarise(table, results)
    print(f"\n{table.title}. {summary.legend}\n\n{summary.to_text()}")
    return summary


def _mover(bar: Any) -> Callable[[RunResult], None]:
    def move(result: RunResult) -> None:
        bar.set_postfix_str(f"{result.method} {100 * result.scores['ACC']:.1f}", refresh=False)
        bar.update()

    return move


def _write(summary: TableSummary, output: Path, suffix: str, text: str) -> None:
    target = output / f"{summary.table.name}.{suffix}"
    with atomic_path(target) as path:
        path.write_text(text, encoding="utf-8")
    print(f"written: {target}")
