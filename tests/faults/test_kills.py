"""Killed fits go on; `python -m tests.faults.kills 50` is the long form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_fit_that_is_killed_goes_on_and_ends_with_the_same_bytes():
    """In a process of its own, which can fork safely."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.faults.kills", "6"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("6 kills, ")
