"""Runs the commands of `command_line.md` and writes down what they print: `python docs/command_line.py`."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

from gwntf.cli import main

PAGE = Path(__file__).with_name("command_line.md")
PICTURE = PAGE.parent / "images" / "command_line_report.png"
BLOCK = re.compile(r"^```\n(?:OUTPUT |\$ gwntf )([^\n]*)\n.*?^```$", re.M | re.S)


def commands(page: str) -> list[str]:
    """Return the commands that the page shows with what they print."""
    return BLOCK.findall(page)


def prepare(page: str) -> None:
    """Run the Python code of the page, in the folder where we are."""
    code = page.split("```python\n")[1].split("```")[0]
    exec(compile(code, str(PAGE), "exec"), {})  # noqa: S102


def output(command: str) -> str:
    """Return what a command prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main(shlex.split(command))
    if code:
        raise SystemExit(f"gwntf {command} ended with {code}")
    return printed.getvalue().rstrip()


def rewrite() -> None:
    """Write the page anew, and a picture of the report that it shows."""
    page = PAGE.read_text()
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare(page)
        output("cluster digits -o warm.csv")  # compiles, which is no part of the times shown
        text = BLOCK.sub(lambda found: f"```\n$ gwntf {found[1]}\n{output(found[1])}\n```", page)
        _photograph(Path(folder) / "clusters.html")
        os.chdir(here)
    PAGE.write_text(text)


def _photograph(report: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        options = {"executable_path": "/usr/bin/chromium", "args": ["--no-sandbox", "--disable-gpu"]}
        browser = play.chromium.launch(**options)
        page = browser.new_page(viewport={"width": 900, "height": 1020})
        page.goto(report.as_uri())
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    sys.exit(rewrite())
