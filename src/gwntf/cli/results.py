"""Files that several commands write."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.cli.arguments import check_output
from gwntf.cli.inputs import warnings_told
from gwntf.io import atomic_path
from gwntf.readers import Samples


def check_table(path: Path | None, *apart_from: Path) -> None:
    """Refuse, before any work, a table that could not be written."""
    check_output(path, ".csv", ".npy", apart_from=apart_from)


def write_table(path: Path, columns: Mapping[str, NDArray[Any]], names: Sequence[str] | None) -> None:
    """Write columns, one row for each sample: a .npy file of their values, or a .csv file with a header and names."""
    with atomic_path(path) as aside:
        if path.suffix.lower() == ".npy":
            values = list(columns.values())
            np.save(aside, values[0] if len(values) == 1 else np.stack(values, axis=1), allow_pickle=False)
            return
        with aside.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            table = csv.writer(file)
            table.writerow(["sample", *columns])
            rows = zip(*[column.tolist() for column in columns.values()], strict=True)
            table.writerows([names[k] if names else k, *row] for k, row in enumerate(rows))


def write_report(path: Path, model: Any, title: str, samples: Samples | None) -> None:
    """Write the page on a model."""
    from gwntf.reports import model_report

    with warnings_told():
        page = model_report(model, title, samples)
    with atomic_path(path) as aside:
        aside.write_text(page, encoding="utf-8", errors="backslashreplace")
