"""What importing the library costs beside importing the libraries that it imports."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import Claim, Outcome, race

_FILES = """
import json, sys
import gwntf
print(json.dumps([module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "gwntf"]))
"""


def run(code: str) -> str:
    """Run a program in a new interpreter and return what it prints."""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout.strip()


def foreign_imports() -> dict[str, str]:
    """Return all statements by which ``import gwntf`` imports other libraries, with the library of each."""
    found: dict[str, str] = {}
    for file in json.loads(run(_FILES)):
        for node in _executed_imports(ast.parse(Path(file).read_text(encoding="utf-8")).body):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            for library in {name.partition(".")[0] for name in names}:
                if library not in ("gwntf", *sys.stdlib_module_names):
                    found[ast.unparse(node)] = library
    return dict(sorted(found.items()))


def _executed_imports(body: Sequence[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Give the imports of a module that are done when it is imported itself."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from _executed_imports(node.orelse)
        elif isinstance(node, ast.If | ast.Try):
            inside: list[Any] = [*node.body, *node.orelse, *getattr(node, "finalbody", ())]
            yield from _executed_imports(inside)


def import_time() -> Outcome:
    """Start new interpreters: with nothing, with the libraries that gwntf imports, and with gwntf."""
    others = foreign_imports()
    names = {"scikit-learn" if name == "sklearn" else name for name in others.values()}
    programs = {
        "the interpreter": "pass",
        "the same modules of other libraries": "\n".join(others),
        "gwntf": "import gwntf",
    }
    timings = race({name: partial(run, code) for name, code in programs.items()}, turns=9)
    start, libraries, ours = (timings[name].median for name in programs)
    return Outcome(
        "Importing gwntf, in a new interpreter",
        timings,
        [
            Claim("seconds beyond those of the other libraries", ours - libraries, 0.3, at_least=False),
            Claim("times as long as importing the other libraries", (ours - start) / (libraries - start)),
        ],
        [f"The other libraries are {', '.join(sorted(names, key=str.lower))}."],
    )


CASES = (import_time,)
