"""Tables of the results inside the pages of the documentation."""

from __future__ import annotations

from pathlib import Path

from gwntf.io import atomic_path

DOCS = Path(__file__).parent.parent / "docs"


def replace_between(page: Path, mark: str, body: str) -> None:
    """Put a text between two marks of a page."""
    begin, end = f"<!-- begin {mark} -->", f"<!-- end {mark} -->"
    text = page.read_text(encoding="utf-8")
    head, tail = text.split(begin)[0], text.split(end)[1]
    with atomic_path(page) as aside:
        aside.write_text(f"{head}{begin}\n\n{body}\n\n{end}{tail}", encoding="utf-8")
