"""Killed fits go on; `python -m tests.faults.kills 50` is the long form."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from gwntf import NMF
from gwntf.io import read_document
from gwntf.solver import RECORDS

LONG = """
import sys
import numpy as np
from gwntf import NMF, Checkpoint

def tell(news):
    print(news.iteration, flush=True)

kept = Checkpoint(sys.argv[1], seconds=None)
model = NMF(3, max_iter=10**9, tol=0, random_state=0, engine="numpy", callbacks=[kept, tell])
model.fit(np.random.default_rng(0).random((30, 8)))
"""


def test_a_fit_that_is_killed_goes_on_and_ends_with_the_same_bytes():
    """In a process of its own, which can fork safely."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.faults.kills", "6"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    kills, resumed, _ = (int(number) for number in re.findall(r"\d+", done.stdout.splitlines()[-1]))
    assert kills == 6
    assert resumed >= 3


def test_a_process_that_is_told_to_end_writes_a_checkpoint_and_ends_by_the_signal(tmp_path):
    path = tmp_path / "run.ckpt"
    command = [sys.executable, "-c", LONG, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "1\n"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    loop = read_document(path, "checkpoint", RECORDS)["loop"]
    done = len(loop["curve"]) - 1
    assert done >= 1
    data = np.random.default_rng(0).random((30, 8))
    model = NMF(3, max_iter=done, tol=0, random_state=0, engine="numpy").fit(data)
    np.testing.assert_array_equal(loop["curve"], model.objective_curve_)
