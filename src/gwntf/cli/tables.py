"""`gwntf reproduce`, the paper's tables, and `gwntf demo`, the table of the digits with a figure."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from gwntf.cli.output import write_text
from gwntf.core import InputError
from gwntf.datasets import load_digits_tensor
from gwntf.experiments import RunResult, Table, TableSummary, find_table, load_table, run_table, summarise
from gwntf.experiments.runner import first_pictures
from gwntf.io import atomic_path
from gwntf.plots import overview, require_matplotlib
from gwntf.reports import summary_chart, table_report

_SHOWN = "GWNTF, tuned"  # method of the demo whose model is drawn


def run_reproduce(options: Any, _: Any) -> None:
    """Run each table, print it and write it as JSON, Markdown, HTML and a chart."""
    require_matplotlib()
    tables = [load_table(find_table(name)).only(options.methods) for name in options.tables]
    if len({table.name for table in tables}) < len(tables):
        given = ", ".join(options.tables)
        raise InputError("tables", given, "tables of different names, because output files are named after them")
    cache, where = options.output / "cache", {"engine": options.engine, "device": options.device}
    for table in tables:
        summary = run_and_print(table, cache, runs=options.runs, jobs=options.jobs, **where)
        for suffix, text in (
            ("json", json.dumps(summary.to_json(), indent=1) + "\n"),
            ("md", f"# {table.title}\n\n{summary.legend}\n\n{summary.to_markdown()}"),
            ("html", table_report(summary, first_pictures(table, cache, **where))),
        ):
            target = options.output / f"{table.name}.{suffix}"
            write_text(target, text)
            print(f"written: {target}")
        with atomic_path(options.output / f"{table.name}.png") as path:
            summary_chart(summary).savefig(path, dpi=100)
        print()


def run_demo(options: Any, _: Any) -> None:
    """Run the table of the digits, and draw the model of one of its methods."""
    require_matplotlib()
    options.output.mkdir(parents=True, exist_ok=True)
    table = load_table(find_table("digits"))
    with TemporaryDirectory() as cache:
        run_and_print(table, Path(cache))
    X, y = load_digits_tensor()
    method = next(method for method in table.methods if method.name == _SHOWN)
    model = method.build().set_params(random_state=0).fit(X)
    samples = X[np.unique(y, return_index=True)[1]]
    target = options.output / "digits.png"
    with atomic_path(target) as path:
        overview(model, samples, title=f"{_SHOWN}: handwritten digits").savefig(path, dpi=110)
    print(f"components, reconstructions and objective: {target}")


def run_and_print(table: Table, cache: Path, *, runs: int | None = None, **where: Any) -> TableSummary:
    """Run a table with a progress bar, and print it; `where` is passed on to `run_table`."""
    count = (table.runs if runs is None else runs) * len(table.methods)
    with tqdm(total=count, desc=table.name, unit="run") as bar:

        def update(result: RunResult) -> None:
            bar.set_postfix_str(f"{result.method} {100 * result.scores['ACC']:.1f}", refresh=False)
            bar.update()

        summary = summarise(table, run_table(table, runs=runs, cache=cache, on_result=update, **where))
    print(f"\n{table.title}. {summary.legend}\n\n{summary.to_text()}")
    return summary
