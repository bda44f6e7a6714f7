"""What a command says: lines for a person, or one JSON document for a script."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np


class Voice:
    """Speaks to standard output in one of two ways, never in both.

    Parameters
    ----------
    as_json : bool
        Whether everything is kept for one JSON document, printed at the end.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._json = as_json
        self._document: dict[str, Any] = {}

    def say(self, about: str, text: str, **facts: Any) -> None:
        """Tell a person `text`; keep `facts` for a script."""
        if not self._json:
            print(f"{about:<11}{printable(text)}")
        self.keep(**facts)

    def keep(self, **facts: Any) -> None:
        """Keep facts for a script alone."""
        self._document.update(facts)

    def close(self) -> None:
        """Print the document, where one is wanted."""
        if self._json:
            print(json.dumps(plain(self._document), indent=1))


@contextmanager
def speaking(options: Any) -> Iterator[Voice]:
    """Provide the voice of a command, which says everything or, where the command fails, nothing on its output."""
    voice = Voice(as_json=options.json)
    voice.keep(command=options.command)
    yield voice
    voice.close()


def complain(text: str) -> None:
    """Tell a person on standard error."""
    print(f"gwntf: {printable(text)}", file=sys.stderr)


def printable(text: str) -> str:
    """Show control characters in names from files as escapes: a terminal must not obey them."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )


def plain(value: Any) -> Any:
    """Bring values to what JSON knows; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def times(shape: Any) -> str:
    """Write a shape as 32x32."""
    return "x".join(map(str, shape)) or "1"


def duration(seconds: float) -> str:
    """Write a time as a person says it."""
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
