"""Tables: samples in rows, one column of which may be their labels."""

import csv
import math
from array import array
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from gwntf.readers.limits import NUMERIC_KINDS, RefusedError, array_bytes, check_size
from gwntf.readers.samples import Samples, require

_DELIMITERS = ",;\t"
_MISSING = {"", "na", "n/a", "nan", "null", "none"}


def read_csv(path: Path, max_bytes: int, *, labels: str | None = None) -> Samples:
    """Read numbers from text; a header is detected, an empty cell is NaN, a first column without a name is skipped."""
    stored = path.stat().st_size
    with path.open(encoding="utf-8-sig", newline="") as file:
        first_line = file.readline()
        file.seek(0)
        reader = csv.reader(file, delimiter=max(_DELIMITERS, key=first_line.count))
        rows = (row for row in reader if row)
        first = next(rows, None)
        if first is None:
            raise RefusedError("is empty")
        cells, header = len(first), first if _is_header(first, labels) else None
        label_column = _label_column(header, cells, labels)
        skip = int(header is not None and cells > 1 and not header[0].strip())
        values, found, count = array("d"), [], 0
        for count, row in enumerate(rows if header else chain([first], rows), 1):
            if len(row) != cells:
                raise RefusedError(f"has {len(row)} cells in row {count}, and {cells} in the first")
            if label_column is not None:
                found.append(row.pop(label_column))
            values.extend(_parse_row(row[skip:], count))
            check_size(values.itemsize * len(values), stored, max_bytes)
    width = cells - (label_column is not None) - skip
    if not count or not width:
        raise RefusedError(f"has {count} rows and {width} columns of numbers")
    X = np.frombuffer(values, dtype=np.float64).reshape(count, width)
    note = "the first column has no name and was skipped" if skip else ""
    return Samples(X, None if label_column is None else np.array(found), note=note)


def _is_header(row: list[str], labels: str | None) -> bool:
    """Whether a first row is a header: no numbers, or the name of the labels, or the numbers from 0."""
    words = all(cell.strip().lower() in _MISSING or _parse_cell(cell) is None for cell in row)
    return words or row == list(map(str, range(len(row)))) or (labels in row and not str(labels).isdecimal())


def _parse_cell(cell: str) -> float | None:
    """Return a number, NaN for a missing one, None for other text."""
    if cell.strip().lower() in _MISSING:
        return math.nan
    try:
        return None if "_" in cell else float(cell)  # Python reads 1_0 as 10
    except ValueError:
        return None


def _parse_row(row: list[str], count: int) -> list[Any]:
    if "_" not in "".join(row):
        try:
            return [float(cell) for cell in row]  # fast: most rows contain numbers only
        except ValueError:
            pass
    numbers = [_parse_cell(cell) for cell in row]
    if None in numbers:
        expected = "a number (a column of labels is named by labels=, --labels)"
        raise RefusedError(f"has {row[numbers.index(None)][:40]!r} in row {count}; expected {expected}")
    return numbers


def _label_column(header: list[str] | None, width: int, labels: str | None) -> int | None:
    """Return the column of the labels, given by its name, or without a header by its number from 0."""
    if labels is None:
        return None
    if header is not None and labels in header:
        return header.index(labels)
    if header is None and labels.isdecimal() and int(labels) < width:
        return int(labels)
    columns = f"a header of {', '.join(header)[:200]}" if header else f"no header and {width} columns, from 0"
    raise RefusedError(f"has no column {labels!r}; it has {columns}")


def read_parquet(path: Path, max_bytes: int, *, labels: str | None = None) -> Samples:
    """Read columns of numbers; a null is NaN."""
    require("pyarrow", path)
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        if labels is not None and labels not in names:
            raise RefusedError(f"has no column {labels!r}; it has {', '.join(names)[:200]}")
        shape = (file.metadata.num_rows, len(names))
        check_size(array_bytes(shape, 16), path.stat().st_size, max_bytes)
        table = file.read(use_threads=False)
    table.validate(full=True)
    columns = [_column(table, place) for place, name in enumerate(names) if name != labels]
    if not columns or not len(columns[0]):
        raise RefusedError(f"has {table.num_rows} rows and {len(columns)} columns of numbers")
    X = np.stack(columns, axis=1)
    return Samples(X, None if labels is None else np.array(table.column(labels).to_pylist()))


def _column(table: Any, place: int) -> np.ndarray[Any, Any]:
    column = table.column(place)
    if column.null_count:
        import pyarrow as pa

        column = column.cast(pa.float64())
    values: np.ndarray[Any, Any] = column.to_numpy()
    if values.dtype.kind not in NUMERIC_KINDS:
        name = table.schema.names[place]
        raise RefusedError(f"has the column {name!r} of type {column.type}; expected numbers, or labels={name!r}")
    return values
