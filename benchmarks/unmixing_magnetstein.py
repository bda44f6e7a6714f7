"""Magnetstein on the NMR mixtures, in the interpreter that the environment variable GWNTF_MAGNETSTEIN names.

Magnetstein needs packages that this library does not: install it (`pip install magnetstein`) into an environment of its
own, and set the variable to the path of its Python. Without the variable the comparison is skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.unmixing_data import mixtures
from gwntf.core import FloatArray

VARIABLE = "GWNTF_MAGNETSTEIN"
PUBLISHED = "published: errors of 0.081, 0.048 and 0.048 at default settings, and 18 to 50 s a mixture with CBC"

_PROGRAM = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from importlib.metadata import version
import numpy as np, pulp
from magnetstein import NMRSpectrum, estimate_proportions
data = np.load(sys.argv[1])
def spectrum(values, protons=None):
    found = NMRSpectrum(confs=list(zip(data["ppm"].tolist(), values.tolist())), protons=protons)
    found.normalize()
    return found
mixture = spectrum(data["mixture"])
parts = [spectrum(row, int(count)) for row, count in zip(data["references"], data["protons"])]
start = time.perf_counter()
found = estimate_proportions(mixture, parts, solver=pulp.PULP_CBC_CMD(msg=False))
seconds = time.perf_counter() - start
print(json.dumps({"molar": found["proportions"], "seconds": seconds, "version": version("magnetstein")}))
"""


class Run(NamedTuple):
    """Molar shares, seconds and version of Magnetstein."""

    molar: FloatArray
    seconds: float
    version: str


@cache
def run_magnetstein() -> list[Run] | str:
    """Return what Magnetstein finds in every mixture, by CBC at its default settings, or why it was not run."""
    python = os.environ.get(VARIABLE)
    if not python:
        return f"{VARIABLE} does not name a Python with magnetstein"
    found = []
    for case in mixtures():
        sys.stderr.write(f"  magnetstein, experiment {case.experiment}\n")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "case.npz"
            np.savez(path, ppm=case.ppm, mixture=case.mixture, references=case.references, protons=case.protons)
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            command = [python, "-c", _PROGRAM, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no message"]
            return f"it failed on experiment {case.experiment} ({lines[-1]})"
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        found.append(Run(np.array(answer["molar"]), float(answer["seconds"]), str(answer["version"])))
    return found
