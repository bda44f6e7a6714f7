"""The result of `gwntf unmix` as columns of a file, as a JSON document, and as a short table."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gwntf.cli.output import Output
from gwntf.core import FloatArray
from gwntf.unmixing import Unmixing

_MAX_ROWS, _MAX_PARTS, _MAX_NAME = 20, 5, 18


def result_columns(found: Unmixing) -> dict[str, FloatArray]:
    """Return the columns of the file, one row per mixture."""
    columns = {}
    for k, name in enumerate(found.names):
        columns[f"{name} share"] = found.shares[:, k]
        columns[f"{name} lower"] = found.lower[:, k]
        columns[f"{name} upper"] = found.upper[:, k]
        columns[f"{name} displacement"] = found.displacement[:, k]
    return {
        **columns,
        "unexplained": found.unexplained,
        "goodness": found.goodness,
        "calibration": found.calibration,
    }


def result_facts(found: Unmixing, names: Sequence[str]) -> dict[str, Any]:
    """Return what the JSON document says about the result."""
    fields = ("shares", "lower", "upper", "displacement", "unexplained", "goodness", "calibration")
    return {
        "samples": list(names),
        "parts": found.names,
        "level": found.level,
        **{name: getattr(found, name) for name in fields},
    }


def print_shares(output: Output, found: Unmixing, names: Sequence[str]) -> None:
    """Print a table of the shares in percent, with their intervals; of many mixtures or parts only some."""
    parts = np.sort(np.argsort(-found.shares.mean(axis=0), kind="stable")[:_MAX_PARTS])
    rows = [["", *(_shortened(found.names[k]) for k in parts), "unexplained"]]
    for row, name in enumerate(names[:_MAX_ROWS]):
        cells = [_interval(*(100 * one[row, k] for one in (found.shares, found.lower, found.upper))) for k in parts]
        rows.append([_shortened(name), *cells, f"{100 * found.unexplained[row]:.1f}"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for label, (first, *others) in zip(["percent", *["mixture"] * (len(rows) - 1)], rows, strict=True):
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        output.line(label, "  ".join([first.ljust(widths[0]), *cells]).rstrip())
    left = [
        f"{count} more {what}"
        for count, what in (
            (len(names) - _MAX_ROWS, "mixtures"),
            (len(found.names) - len(parts), "parts"),
        )
        if count > 0
    ]
    more = f"; {' and '.join(left)} not shown" if left else ""
    text = f"shares with {100 * found.level:g} % intervals{more}. -o SHARES.csv writes everything"
    output.line("note", text)


def _interval(share: float, lower: float, upper: float) -> str:
    return f"{share:.1f} ({lower:.1f} to {upper:.1f})"


def _shortened(name: str) -> str:
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 3]}..."
