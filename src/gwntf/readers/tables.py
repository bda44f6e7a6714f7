"""Tables with samples in rows; columns are numbers and, optionally, identifiers and labels."""

import csv
import math
import re
from array import array
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from gwntf.core import InputError
from gwntf.readers.limits import RefusedError, array_bytes, check_size
from gwntf.readers.samples import Samples, require

Column = str | int
"""A column by its name, or by its position from 0; negative positions count from the end."""

_DELIMITERS = ",;\t"
_MISSING = {"", "na", "n/a", "nan", "null", "none"}
_PANDAS_INDEX = "__index_level_0__"  # column in which pandas stores an index without a name
_OPTIONS = (
    "name a column of identifiers with id_column= (--id-column), a column of classes with label_column= "
    "(--label-column), or choose the columns of numbers with columns= (--columns)"
)


class _Roles:
    """Which columns contain identifiers, labels and data, as positions."""

    def __init__(self, names: list[str] | None, width: int, id_column: Any, label_column: Any, columns: Any) -> None:
        self._names, self._width = names, width
        self.ids = None if id_column is None else self._position(id_column)
        self.labels = None if label_column is None else self._position(label_column)
        self.note = ""
        index = [k for k, name in enumerate(names or []) if name == _PANDAS_INDEX or not (k or name.strip())]
        if index and self.ids is None and self.labels != index[0] and columns is None and width > 1:
            self.ids, self.note = index[0], "the column without a name was used as identifiers of the samples"
        if columns is None:
            self.data = [k for k in range(width) if k not in (self.ids, self.labels)]
            suspect = [self.name(k) for k in self.data if self._looks_like_an_identifier(k)]
            if suspect and self.ids is None:
                remedy = "if it identifies the samples, use id_column= (--id-column)"
                self.note = f"the column {suspect[0]} was read as data; {remedy}"
        else:
            chosen = [columns] if isinstance(columns, str | int) else list(columns)
            self.data = [k for column in chosen for k in self._range(column)]
        used = [k for k in (self.ids, self.labels, *self.data) if k is not None]
        if len(set(used)) < len(used):
            twice = self.name(next(k for k in used if used.count(k) > 1))
            raise InputError("columns", f"the column {twice} twice", "different columns: ids, labels and data")

    def name(self, position: int) -> str:
        """Return the name of a column for messages."""
        return str(position) if self._names is None else repr(self._names[position])

    def _looks_like_an_identifier(self, position: int) -> bool:
        words = "" if self._names is None else self._names[position].strip().lower().replace(" ", "_")
        return words in {"id", "index", "sample"} or words.endswith("_id")

    def _position(self, column: Column) -> int:
        """Return the position of a column; text that is not a name may be a position, as on the command line."""
        if self._names is not None and column in self._names:
            return self._names.index(str(column))
        position = int(column) if isinstance(column, int) or _is_position(column) else self._width
        if not -self._width <= position < self._width:
            names = ", ".join(self._names or [])[:200]
            found = f"{names} (positions 0 to {self._width - 1})" if names else f"no header and {self._width} columns"
            raise RefusedError(f"has no column {column!r}; it has {found}")
        return position % self._width

    def _range(self, column: Column) -> Sequence[int]:
        """Return the positions that one entry of `columns` names: a column, or all from "first:last", both included."""
        if ":" not in str(column) or column in (self._names or ()):
            return [self._position(column)]
        first, last = map(self._position, str(column).split(":", 1))
        if first > last:
            raise InputError("columns", repr(column), "first:last, in the order of the file")
        return range(first, last + 1)


def read_csv(
    path: Path,
    max_bytes: int,
    *,
    id_column: Column | None = None,
    label_column: Column | None = None,
    columns: Column | Sequence[Column] | None = None,
) -> Samples:
    """Read numbers from text; a header is detected, an empty cell is NaN."""
    stored = path.stat().st_size
    with path.open(encoding="utf-8-sig", newline="") as file:
        first_line = file.readline()
        file.seek(0)
        reader = csv.reader(file, delimiter=max(_DELIMITERS, key=first_line.count))
        rows = (row for row in reader if row)
        first = next(rows, None)
        if first is None:
            raise RefusedError("is empty")
        header = first if _is_header(first, [id_column, label_column, *_listed(columns)]) else None
        roles = _Roles(header, len(first), id_column, label_column, columns)
        values, ids, labels, count = array("d"), [], [], 0
        for count, row in enumerate(rows if header else chain([first], rows), 1):
            if len(row) != len(first):
                raise RefusedError(f"has {len(row)} cells in row {count}, and {len(first)} in the first")
            if roles.ids is not None:
                ids.append(row[roles.ids])
            if roles.labels is not None:
                labels.append(row[roles.labels])
            values.extend(_parse_row([row[k] for k in roles.data], count, roles))
            check_size(values.itemsize * len(values), stored, max_bytes)
    if not count or not roles.data:
        raise RefusedError(f"has {count} rows and {len(roles.data)} columns of numbers")
    X = np.frombuffer(values, dtype=np.float64).reshape(count, len(roles.data))
    names = None if roles.ids is None else tuple(ids)
    return Samples(X, None if roles.labels is None else np.array(labels), names, roles.note)


def _listed(columns: Any) -> list[Any]:
    """Return the given columns, with the ends of ranges."""
    chosen = [columns] if isinstance(columns, str | int) else list(columns or [])
    return chosen + [end for column in chosen for end in str(column).split(":")]


def _is_position(column: Any) -> bool:
    return re.fullmatch(r"-?\d{1,9}", str(column)) is not None


def _is_header(row: list[str], given: list[Any]) -> bool:
    """Whether a first row is a header: it has no numbers, or a given column name, or is 0, 1, 2, ..."""
    words = all(cell.strip().lower() in _MISSING or _parse_cell(cell) is None for cell in row)
    named = any(isinstance(column, str) and column in row and not _is_position(column) for column in given)
    return words or named or row == list(map(str, range(len(row))))


def _parse_cell(cell: str) -> float | None:
    """Return a number, NaN for a missing value, None for other text."""
    if cell.strip().lower() in _MISSING:
        return math.nan
    try:
        return None if "_" in cell else float(cell)  # Python reads 1_0 as 10
    except ValueError:
        return None


def _parse_row(row: list[str], count: int, roles: _Roles) -> list[Any]:
    if "_" not in "".join(row):
        try:
            return [float(cell) for cell in row]  # fast: most rows contain numbers only
        except ValueError:
            pass
    numbers = [_parse_cell(cell) for cell in row]
    text = [k for k, value in enumerate(numbers) if value is None]
    if text:
        found = ", ".join(f"{row[k][:40]!r} in column {roles.name(roles.data[k])}" for k in text[:5])
        more = f" and {len(text) - 5} more" if len(text) > 5 else ""
        expected = "expected numbers, or empty cells where they are missing"
        raise RefusedError(f"has text in row {count}: {found}{more}; {expected}: {_OPTIONS}")
    return numbers


def read_parquet(
    path: Path,
    max_bytes: int,
    *,
    id_column: Column | None = None,
    label_column: Column | None = None,
    columns: Column | Sequence[Column] | None = None,
) -> Samples:
    """Read columns of numbers; a null is NaN."""
    require("pyarrow", path)
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        roles = _Roles(names, len(names), id_column, label_column, columns)
        shape = (file.metadata.num_rows, len(names))
        check_size(array_bytes(shape, 16), path.stat().st_size, max_bytes)
        table = file.read(use_threads=False)
    table.validate(full=True)
    text = [k for k in roles.data if not _is_numeric(table.column(k).type)]
    if text:
        found = ", ".join(f"{roles.name(k)} ({table.column(k).type})" for k in text[:5])
        more = f" and {len(text) - 5} more" if len(text) > 5 else ""
        raise RefusedError(f"has columns that are not numbers: {found}{more}; {_OPTIONS}")
    if not roles.data or not table.num_rows:
        raise RefusedError(f"has {table.num_rows} rows and {len(roles.data)} columns of numbers")
    X = np.stack([_numbers(table.column(k)) for k in roles.data], axis=1)
    ids, labels = (None if k is None else table.column(k).to_pylist() for k in (roles.ids, roles.labels))
    texts = None if ids is None else tuple("" if value is None else str(value) for value in ids)
    return Samples(X, None if labels is None else np.array(labels), texts, roles.note)


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind))


def _numbers(column: Any) -> np.ndarray[Any, Any]:
    if column.null_count:
        import pyarrow as pa

        column = column.cast(pa.float64())
    values: np.ndarray[Any, Any] = column.to_numpy()
    return values
