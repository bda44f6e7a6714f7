"""Hundreds of thousands of damaged files: `python -m tests.fuzz --minutes 10`, or `make fuzz`.

Two processes alternate between all formats. Inputs are tried in batches in a forked process with limits on memory and
on the seconds of each, so that a crash or a hang ends one batch and is counted. Files that `readers.matlab` reads in a
child process are read here without it: crashes of their libraries are counted, but are not defects. Any other outcome
than an error of the library is a defect, and the input is saved.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import gwntf.readers.matlab as matlab
from gwntf.core import DataError
from gwntf.readers import isolated
from tests.mutations import ISOLATED, TARGETS, Seed, draw_edits

BATCH = 400
SECONDS = 20
MEMORY = 2**33


def read_here(reader: str, path: Path, key: str | None, labels: str | None, max_bytes: int) -> dict[str, Any]:
    """Replace `matlab.read_isolated`, in this process."""
    try:
        arrays = isolated.READERS[reader](str(path), key, labels, max_bytes)
        with tempfile.TemporaryDirectory() as folder:
            names = isolated.save(arrays, Path(folder))
            return {name: np.load(f"{folder}/{name}.npy", allow_pickle=False) for name in names}
    except Exception as error:
        raise DataError(str(error)) from error


def batch(seed: Seed, number: int, out: int) -> None:
    """Try some inputs in this process, and report the outcome of each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    matlab.read_isolated = read_here
    rng = random.Random(number)  # noqa: S311
    for _ in range(BATCH):
        which, edits = rng.randrange(100), draw_edits(rng)
        signal.alarm(SECONDS)
        try:
            outcome = seed.try_edits(which, edits)
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            outcome = f"DEFECT {type(error).__name__} {Path(place.filename).name}:{place.lineno} {which} {edits}"
        signal.alarm(0)
        os.write(out, outcome.replace("\n", " ").encode() + b"\n")


def run_batch(seed: Seed, number: int) -> tuple[Counter[str], list[str]]:
    """Fork, try a batch, and count its outcomes; a crash ends the batch."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            batch(seed, number, writer)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        lines = stream.read().decode().splitlines()
    status = os.waitpid(child, 0)[1]
    defects = [line for line in lines if line.startswith("DEFECT")]
    outcomes: Counter[str] = Counter(" ".join(line.split()[:3]) if line in defects else line for line in lines)
    if status:
        outcomes[f"signal {os.WTERMSIG(status)}"] += 1
        if os.WTERMSIG(status) or os.WEXITSTATUS(status):
            defects.append(f"ended by signal {os.WTERMSIG(status)} after {len(lines)} of batch {number}")
    return outcomes, defects


def worker(first: int, step: int, end: float, names: list[str], kept: str, answers: Any) -> None:
    """Alternate between the formats until the time is over."""
    os.nice(19)
    shared = Path("/dev/shm")  # noqa: S108
    base = shared if shared.is_dir() else Path(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(dir=base) as folder:
        seeds = {}
        for name in names:
            (Path(folder) / name).mkdir()
            seeds[name] = Seed.written({**TARGETS, **ISOLATED}[name], Path(folder) / name)
        counts: dict[str, Counter[str]] = {name: Counter() for name in names}
        defects: list[str] = []
        number = first
        while time.time() < end:
            for name, seed in seeds.items():
                for file, whole in seed.files:
                    file.write_bytes(whole)
                outcomes, found = run_batch(seed, number)
                counts[name].update(outcomes)
                guarded = name in ISOLATED
                defects += [f"{name}: {line}" for line in found if line.startswith("DEFECT") or not guarded]
                if any("signal" in line for line in found) and not guarded:
                    copy = Path(kept) / f"{name}-{number}"
                    shutil.copytree(seed.path, copy) if seed.path.is_dir() else shutil.copy(seed.path, copy)
            number += step
        answers.put((counts, defects))


def main() -> int:
    """Run and report; the exit code is 1 if there were defects."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[*TARGETS, *ISOLATED], choices=[*TARGETS, *ISOLATED])
    parser.add_argument("--keep", default="fuzz-crashes", help="folder for inputs that crash")
    options = parser.parse_args()
    Path(options.keep).mkdir(exist_ok=True)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    end = time.time() + 60 * options.minutes
    jobs = [
        context.Process(
            target=worker,
            args=(options.seed + k, options.jobs, end, options.only, options.keep, answers),
        )
        for k in range(options.jobs)
    ]
    for job in jobs:
        job.start()
    found = [answers.get() for _ in jobs]
    total = {name: sum((counts[name] for counts, _ in found), Counter()) for name in options.only}
    for name, counts in total.items():
        print(f"{name:<12}{sum(counts.values()):>9}  {dict(counts.most_common())}")
    defects = [line for _, lines in found for line in lines]
    print(json.dumps({"inputs": sum(sum(c.values()) for c in total.values()), "defects": len(defects)}))
    for line in defects[:40]:
        print(line[:400])
    return int(bool(defects))


if __name__ == "__main__":
    sys.exit(main())
