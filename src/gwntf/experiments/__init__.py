"""The paper's tables: description, runs and results.

May import `estimators`, `evaluation`, `datasets` and everything below. Start with `table` (a TOML file becomes a
`Table`), then `runs` (one run), `runner` (all of a table, one cache file each) and `summary` (means and deviations).
"""

from gwntf.experiments.runner import run_table
from gwntf.experiments.runs import Run, RunResult
from gwntf.experiments.summary import Cell, TableSummary, summarise
from gwntf.experiments.table import Method, Table, find_table, known_tables, load_table

__all__ = [
    "Cell",
    "Method",
    "Run",
    "RunResult",
    "Table",
    "TableSummary",
    "find_table",
    "known_tables",
    "load_table",
    "run_table",
    "summarise",
]
