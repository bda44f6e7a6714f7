"""Tables: samples in rows, one column of which may be their labels."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gwntf.readers.apart import NUMBERS, RefusedError, check_size, count_bytes
from gwntf.readers.samples import Samples, Wanted, require

_DELIMITERS = ",;\t"
_NOTHING = {"", "na", "n/a", "nan", "null", "none"}


def read_csv(path: Path, wanted: Wanted) -> Samples:
    """Read numbers from text, never evaluated; a header is found, an empty cell is NaN.

    A first column without a name, as other programs write row numbers, is left out.
    """
    stored = path.stat().st_size
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = _rows(csv.reader(file, delimiter=_delimiter(file.readline())), file)
        first = next(rows, None)
        if first is None:
            raise RefusedError("is empty")
        cells, header = len(first), first if _is_header(first, wanted.labels) else None
        place = _label_place(header, cells, wanted.labels)
        index = header is not None and cells > 1 and not header[0].strip()
        values, labels, count = array("d"), [], 0
        for row in rows if header else _again(first, rows):
            count += 1
            if len(row) != cells:
                raise RefusedError(f"has {len(row)} cells in row {count}, and {cells} in the first")
            if place is not None:
                labels.append(row.pop(place))
            values.extend(_numbers(row[1:] if index else row, count))
            check_size(values.itemsize * len(values), stored, wanted.max_bytes)
    width = cells - (place is not None) - index
    if not count or not width:
        raise RefusedError(f"has {count} rows and {width} columns of numbers")
    X = np.frombuffer(values, dtype=np.float64).reshape(count, width)
    note = "the first column has no name and was left out" if index else ""
    return Samples(X, None if place is None else np.array(labels), note=note)


def _delimiter(line: str) -> str:
    return max(_DELIMITERS, key=line.count)


def _rows(rows: Iterator[list[str]], file: Any) -> Iterator[list[str]]:
    """Begin at the first line, and leave empty lines out."""
    file.seek(0)
    return (row for row in rows if row)


def _again(first: list[str], rest: Iterator[list[str]]) -> Iterator[list[str]]:
    yield first
    yield from rest


def _is_header(row: list[str], labels: str | None) -> bool:
    """Whether a first row names columns: by words alone, by the name of the labels, or by counting from 0."""
    counted = [str(number) for number in range(len(row))]
    words = all(_number(cell) is None for cell in row)
    return words or row == counted or (labels in row and not str(labels).isdecimal())


def _number(cell: str) -> float | None:
    if cell.strip().lower() in _NOTHING or "_" in cell:
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def _numbers(row: list[str], count: int) -> list[float]:
    """Turn the cells of a row into numbers, a whole row at once where all of them are."""
    if "_" not in "".join(row):
        try:
            return [float(cell) for cell in row]
        except ValueError:
            pass
    numbers = []
    for cell in row:
        number = math.nan if cell.strip().lower() in _NOTHING else _number(cell)
        if number is None:
            allowed = "a number (a column of labels is named by labels=, --labels)"
            raise RefusedError(f"has {cell[:40]!r} in row {count}; expected {allowed}")
        numbers.append(number)
    return numbers


def _label_place(header: list[str] | None, width: int, labels: str | None) -> int | None:
    """Find the column of the labels by its name, or by its number from 0 where there are no names."""
    if labels is None:
        return None
    if header is not None and labels in header:
        return header.index(labels)
    if header is None and labels.isdecimal() and int(labels) < width:
        return int(labels)
    held = f"a header of {', '.join(header)[:200]}" if header else f"no header and {width} columns, from 0"
    raise RefusedError(f"has no column {labels!r}; it has {held}")


def read_parquet(path: Path, wanted: Wanted) -> Samples:
    """Read columns of numbers; a null is NaN."""
    require("pyarrow", path)
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        if wanted.labels is not None and wanted.labels not in names:
            raise RefusedError(f"has no column {wanted.labels!r}; it has {', '.join(names)[:200]}")
        shape = (file.metadata.num_rows, len(names))
        check_size(count_bytes(shape, 16), path.stat().st_size, wanted.max_bytes)
        table = file.read(use_threads=False)
    table.validate(full=True)
    columns = [_column(table, place) for place, name in enumerate(names) if name != wanted.labels]
    if not columns or not len(columns[0]):
        raise RefusedError(f"has {table.num_rows} rows and {len(columns)} columns of numbers")
    X = np.stack(columns, axis=1)
    if wanted.labels is None:
        return Samples(X)
    return Samples(X, np.array(table.column(wanted.labels).to_pylist()))


def _column(table: Any, place: int) -> np.ndarray[Any, Any]:
    column = table.column(place)
    if column.null_count:
        import pyarrow as pa

        column = column.cast(pa.float64())
    values: np.ndarray[Any, Any] = column.to_numpy()
    if values.dtype.kind not in NUMBERS:
        name = table.schema.names[place]
        raise RefusedError(
            f"has the column {name!r} of type {column.type}; expected numbers, or labels={name!r}"
        )
    return values
