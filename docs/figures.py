"""Draw the pictures of pages from code in the repository.

Runs the Python blocks of ``docs/plots.md`` in order and saves what each has drawn as the picture that follows it, so
that code and picture cannot part; and the first picture of the README. ``make figures`` runs it.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from gwntf.io import atomic_path

DOCS = Path(__file__).parent
PAGE = DOCS / "plots.md"

_BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n!\[[^\]]*\]\((?P<picture>[^)]+)\))?", re.DOTALL)


def draw_page(page: Path, folder: Path) -> list[Path]:
    """Run the code of a page, write its pictures under `folder` and return their paths."""
    mpl.use("Agg")
    names: dict[str, object] = {}
    written = []
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        exec(compile(block["code"], page.name, "exec"), names)  # noqa: S102
        if block["picture"]:
            target = folder / block["picture"]
            target.parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(target) as path:
                plt.gcf().savefig(path, dpi=90)
            written.append(target)
        plt.close("all")
    return written


if __name__ == "__main__":
    draw_page(PAGE, DOCS)
    runpy.run_path(str(DOCS / "unmixing_picture.py"), run_name="__main__")
