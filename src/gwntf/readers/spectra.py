"""Tables of spectra with the positions of their axis: one spectrum per row, or one per column."""

import csv
import math
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gwntf.core import DataError, FloatArray
from gwntf.readers.limits import RefusedError, format_bytes
from gwntf.readers.read import default_memory
from gwntf.readers.samples import read_errors

SUFFIXES = (".csv", ".tsv", ".txt")

_TEXT_EXPANSION = 12  # memory of the cells of a table as text, in relation to its file


@dataclass(frozen=True, eq=False)
class Spectra:
    """Spectra with names and positions, which `Unmixer` takes like a data frame.

    Attributes
    ----------
    values : (n, I) array
        One spectrum per row.
    columns : (I,) array
        Positions along the axis, increasing or decreasing.
    index : tuple of str or None
        Names of the spectra, None if the table has none.
    signal : (n,) array or None
        The requested value of every spectrum, such as a number of protons.
    note : str
        How the table was understood.
    """

    values: FloatArray
    columns: FloatArray
    index: tuple[str, ...] | None
    signal: FloatArray | None
    note: str

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the values."""
        return np.array(self.values, dtype=dtype, copy=copy)


def read_spectra(path: str | os.PathLike[str], *, axis: str | None = None, signal: str | None = None) -> Spectra:
    """Read spectra from a table of text, separated by commas, semicolons or tabs.

    A table with a column `axis` of numbers has that column as positions and one spectrum in each other column, named by
    the header. Any other table has one spectrum per row, the positions in the header, and names in the only column
    whose header is not a number, if there is one. Decimal commas are accepted where commas do not separate cells.

    Parameters
    ----------
    path : path
        A .csv, .tsv or .txt file.
    axis : str, optional
        Name of the axis.
    signal : str, optional
        Column, or row if spectra are in columns, with one number per spectrum that is not part of the spectrum.
    """
    source = Path(path)
    if not source.is_file():
        raise DataError(f"{source} {'is not a file' if source.exists() else 'does not exist'}.")
    if source.suffix.lower() not in SUFFIXES:
        raise DataError(f"{source} has an unknown format; expected {', '.join(SUFFIXES)}: save the table as CSV.")
    with read_errors(source):
        header, rows, commas = _cells(source)
        found = _in_columns(header, rows, axis, signal) if _has_axis(header, rows, axis, signal) else None
        spectra = _in_rows(header, rows, axis, signal) if found is None else found
        _check_order(spectra.columns, in_rows=found is None)
    note = f"{spectra.note}, decimal commas" if commas else spectra.note
    return Spectra(spectra.values, spectra.columns, spectra.index, spectra.signal, note)


def _cells(path: Path) -> tuple[list[str], list[list[str]], bool]:
    """Return the header, the other rows, and whether numbers have decimal commas, which are replaced."""
    size = path.stat().st_size
    if _TEXT_EXPANSION * size > default_memory():
        raise RefusedError(f"has {format_bytes(size)} of text, too much for the memory: split it into several files")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RefusedError("is not text in UTF-8: save it as CSV UTF-8") from error
    first = text.split("\n", 1)[0]
    delimiter = next((mark for mark in ";\t" if mark in first), ",")
    lines = csv.reader(text.splitlines(), delimiter=delimiter)
    rows = [[cell.strip() for cell in row] for row in lines if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise RefusedError("has no spectra: expected a header and at least one more row")
    while len(rows[0]) > 1 and not any(row[-1] for row in rows if len(row) == len(rows[0])):
        width = len(rows[0])
        rows = [row[:-1] if len(row) == width else row for row in rows]
    for count, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]):
            raise RefusedError(f"has {len(row)} cells in row {count}, and {len(rows[0])} in the first")
    commas = False
    if delimiter != ",":
        replaced = [[_with_point(cell) for cell in row] for row in rows]
        commas, rows = replaced != rows, replaced
    return rows[0], rows[1:], commas


def _with_point(cell: str) -> str:
    """Return a number with a decimal point, and any other text as it is."""
    point = cell.replace(",", ".") if cell.count(",") == 1 and "." not in cell else cell
    return point if _number(point) is not None else cell


def _number(cell: str) -> float | None:
    """Return a finite number, or None for other text."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in cell else None


def _has_axis(header: list[str], rows: list[list[str]], axis: str | None, signal: str | None) -> bool:
    """Return whether the table has a column of that name that contains only numbers."""
    if axis is None or axis not in header:
        return False
    place = header.index(axis)
    cells = [row[place] for row in rows if row[place] != signal]
    return bool(cells) and all(_number(cell) is not None for cell in cells)


def _in_columns(header: list[str], rows: list[list[str]], axis: str | None, signal: str | None) -> Spectra:
    """Return the spectra of a table with one column for each, and one for the positions."""
    place = header.index(str(axis))
    others = [k for k in range(len(header)) if k != place]
    if not others:
        raise RefusedError(f"has no spectra beside the column {axis!r}")
    own = [row for row in rows if row[place] != signal]
    lines = [row for row in rows if row[place] == signal]
    if signal is not None and len(lines) != 1:
        raise RefusedError(f"has {len(lines) or 'no'} row(s) {signal!r} in the column {axis!r}; expected one")
    positions = np.array([float(row[place]) for row in own])
    names = tuple(header[k] for k in others)
    values = np.array([[_value(row[k], row[place], header[k]) for row in own] for k in others])
    signals = np.array([_value(lines[0][k], str(signal), header[k]) for k in others]) if lines else None
    note = f"{_count(others, 'column')}, {_span(positions)} in the column {axis!r}"
    return Spectra(values, positions, names, signals, note)


def _in_rows(header: list[str], rows: list[list[str]], axis: str | None, signal: str | None) -> Spectra:
    """Return the spectra of a table with one row for each, and the positions in the header."""
    if signal is not None and signal not in header:
        raise RefusedError(f"has no column {signal!r}")
    chosen = None if signal is None else header.index(signal)
    text = [k for k in range(len(header)) if _number(header[k]) is None and k != chosen]
    places = [k for k in range(len(header)) if k not in (chosen, *text)]
    if len(text) > 1:
        listed = ", ".join(repr(header[k][:40]) for k in text[:4]) + (", ..." if len(text) > 4 else "")
        raise RefusedError(
            f"has {len(text)} columns whose header is not a number: {listed}; expected positions in the header and at "
            "most one column of names, or, if spectra are in columns, --axis with the name of the column of positions"
            + ("" if axis is None else f" (there is no column {axis!r} of numbers)")
        )
    if not places:
        raise RefusedError("has no positions in its header")
    index = tuple(row[text[0]] for row in rows) if text else None
    named = [name or f"row {k}" for k, name in enumerate(index or [""] * len(rows), 2)]
    values = np.array(
        [[_value(row[k], name, header[k]) for k in places] for name, row in zip(named, rows, strict=True)]
    )
    signals = None
    if chosen is not None:
        signals = np.array([_value(row[chosen], name, str(signal)) for name, row in zip(named, rows, strict=True)])
    positions = np.array([float(header[k]) for k in places])
    note = f"{_count(rows, 'row')}, {_span(positions)} in the header"
    if index is not None:
        note += f", names in the column {header[text[0]]!r}" if header[text[0]] else ", names in the first column"
        if header[text[0]] and all(_number(name) is not None for name in index):
            note += f" (if it has positions, use --axis {header[text[0]]})"
    return Spectra(values, positions, index, signals, note)


def _value(cell: str, row: str, column: str) -> float:
    value = _number(cell)
    if value is None:
        given = f"the text {cell[:40]!r}" if cell else "an empty cell"
        raise RefusedError(f"has {given} at {row[:40]}, {column[:40]}; expected a number in every cell")
    return value


def _count(items: list[Any], line: str) -> str:
    return f"1 spectrum in a {line}" if len(items) == 1 else f"{len(items)} spectra in {line}s"


def _span(positions: FloatArray) -> str:
    return f"{len(positions)} positions from {positions[0]:g} to {positions[-1]:g}"


def _check_order(positions: FloatArray, *, in_rows: bool) -> None:
    """Raise unless positions only increase or only decrease."""
    signs = np.sign(np.diff(positions))
    wrong = np.flatnonzero(signs != (signs[0] if signs.size and signs[0] else 1))
    if wrong.size:
        listed = [f"{a:g}, {b:g}" for a, b in pairwise(positions[wrong[0] : wrong[0] + 2])]
        where = "the first row, which is read as the positions," if in_rows else "the column of positions"
        raise RefusedError(f"has {listed[0]} next to each other in {where}; expected numbers that only rise or fall")
