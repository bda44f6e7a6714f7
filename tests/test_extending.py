"""The code of the page on new costs and losses, applied to a copy of the library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STEP = re.compile(r"(?P<what>Append to|New file) `(?P<path>[\w/.]+)`:\n\n```python\n(?P<code>.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """A copy of the library and of the test fixtures with all code of the page, and the files that it changes."""
    copy = tmp_path_factory.mktemp("library")
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "tests").mkdir()
    for name in ("pyproject.toml", "tests/__init__.py", "tests/conftest.py"):
        shutil.copy(ROOT / name, copy / name)
    touched = []
    for step in STEP.finditer((ROOT / "docs" / "extending.md").read_text()):
        path = copy / step["path"]
        assert path.exists() == (step["what"] == "Append to")
        before = path.read_text() + "\n\n" if path.exists() else ""
        path.write_text(before + step["code"])
        touched.append(step["path"])
    return copy, touched


def run(folder, *command):
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_cost_and_a_loss_touch_one_file_and_its_test_each(followed):
    assert sorted(followed[1]) == [
        "src/gwntf/estimators/hellinger.py",
        "src/gwntf/geometry/costs.py",
        "tests/test_hellinger.py",
        "tests/test_ring.py",
    ]


def test_what_the_page_adds_passes_its_own_tests(followed):
    copy, touched = followed
    tests = [path for path in touched if path.startswith("tests/")]
    printed = run(copy, "pytest", "-q", "-p", "no:cacheprovider", "--doctest-modules", *tests, touched[2])
    assert re.search(r"20 passed", printed), printed


def test_what_the_page_adds_is_as_clean_as_the_library(followed):
    copy, touched = followed
    assert "All checks passed" in run(copy, "ruff", "check", "--no-cache", *touched)
    assert "already formatted" in run(copy, "ruff", "format", "--no-cache", "--check", *touched)
