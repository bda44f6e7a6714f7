"""Run the commands of `command_line.md` and update their output in the page: `python docs/command_line.py`."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from gwntf.cli import main

PAGE = Path(__file__).with_name("command_line.md")
PICTURES = {"clusters.html": ("command_line_report.png", None), "unmix.html": ("command_line_unmix.png", "h3")}
"""Picture and first element shown, the top of the page if None, of every report."""

BLOCK = re.compile(r"^```\n(?:OUTPUT |\$ gwntf )([^\n]*)\n.*?^```$", re.M | re.S)


def commands(page: str) -> list[str]:
    """Return the commands whose output the page shows."""
    return BLOCK.findall(page)


def prepare(page: str) -> None:
    """Run the Python code of the page in the current folder."""
    code = page.split("```python\n")[1].split("```")[0]
    exec(compile(code, str(PAGE), "exec"), {})  # noqa: S102


def output(command: str) -> str:
    """Return the output of a command."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main(shlex.split(command))
    if code:
        raise SystemExit(f"gwntf {command} ended with {code}")
    return printed.getvalue().rstrip()


def rewrite() -> None:
    """Update the page and its picture of the report."""
    page = PAGE.read_text()
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare(page)
        output("cluster digits -o warm.csv")  # compiles, so that the times shown do not include it
        text = BLOCK.sub(lambda found: f"```\n$ gwntf {found[1]}\n{output(found[1])}\n```", page)
        PAGE.write_text(text)
        for report, (picture, element) in PICTURES.items():
            take_screenshot(Path(folder) / report, PAGE.parent / "images" / picture, element)
        os.chdir(here)


def take_screenshot(report: Path, picture: Path, element: str | None) -> None:
    """Write a picture of the report; print a note where there is no browser."""
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        sys.stderr.write(f"{picture} was not updated: install Chromium\n")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 900, "height": 1020 if element is None else 720})
        page.goto(report.as_uri())
        if element is not None:
            page.evaluate(f"document.querySelector('{element}').scrollIntoView()")
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    sys.exit(rewrite())
