"""What a command prints, lines or one JSON document, and the files it writes."""

import csv
import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.core import InputError
from gwntf.io import atomic_path


class Output:
    """Prints lines immediately, or with `as_json` one JSON document at the end."""

    def __init__(self, command: str, *, as_json: bool) -> None:
        self._json = as_json
        self._document: dict[str, Any] = {"command": command}

    def line(self, label: str, text: str, **data: Any) -> None:
        """Print a line of text; record `data` for the JSON document."""
        if not self._json:
            print(f"{label:<11}{printable(text)}")
        self.record(**data)

    def record(self, **data: Any) -> None:
        """Record data for the JSON document only."""
        self._document.update(data)

    def written(self, path: Path, note: str = "", *, key: str = "output", **data: Any) -> None:
        """Report a file that was written, in the JSON document under `key`."""
        self.line("written", f"{path}{note}", **{key: str(path)}, **data)

    def close(self, error: Exception | None = None) -> None:
        """Print an error to standard error, and to standard output the JSON document, or one about the error."""
        document = to_json(self._document)
        if error is not None:
            print_error(str(error))
            document = {"command": document["command"], "error": str(error), "kind": type(error).__name__}
        if self._json:
            print(json.dumps(document, indent=1))


def print_error(text: str) -> None:
    """Print a line to standard error."""
    print(f"gwntf: {printable(text)}", file=sys.stderr)


@contextmanager
def printed_warnings(*ignored: str) -> Iterator[None]:
    """Print each warning once to standard error, one line each, except for those that begin with one of `ignored`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        if not message.startswith(ignored):
            print_error(message)


def printable(text: str) -> str:
    """Escape control characters, which names from files may contain and a terminal would interpret."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def to_json(value: Any) -> Any:
    """Convert a value to types that JSON has; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(name): to_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [to_json(one) for one in value]
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def format_shape(shape: Any) -> str:
    """Return a shape as text such as 32x32."""
    return "x".join(map(str, shape)) or "1"


def format_duration(seconds: float) -> str:
    """Return a time as text in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# --- files -------------------------------------------------------------------------------------------------


def check_output(path: Path | None, *suffixes: str, inputs: Sequence[Path | None] = ()) -> None:
    """Raise, before any work, if a file could not be written or would replace one of the inputs."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise InputError("output", str(path), f"a file that ends in {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise InputError("output", str(path), f"a file in a folder that exists, not in {path.parent}")
    if path.is_dir():
        raise InputError("output", str(path), "a file, not a folder")
    if path.resolve() in [other.resolve() for other in inputs if other is not None]:
        raise InputError("output", str(path), "a file that is not one of the inputs")


def write_table(path: Path, columns: Mapping[str, NDArray[Any]], names: Sequence[str] | None) -> None:
    """Write columns, one row for each sample: a .npy file of the values, or a .csv file with a header and names."""
    with atomic_path(path) as temporary:
        if path.suffix.lower() == ".npy":
            values = list(columns.values())
            np.save(temporary, values[0] if len(values) == 1 else np.stack(values, axis=1), allow_pickle=False)
            return
        with temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            table = csv.writer(file)
            table.writerow(["sample", *columns])
            rows = zip(*[column.tolist() for column in columns.values()], strict=True)
            table.writerows([names[k] if names else k, *row] for k, row in enumerate(rows))


def write_text(path: Path, text: str) -> None:
    """Write a text file."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
