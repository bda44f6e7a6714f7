"""Kill a checkpointed fit again and again, let it go on, and compare what it ends with.

``python -m tests.faults.kills 50`` kills it fifty times at random moments with SIGKILL, which no process can hear.
Every fit that ends must write the same model file, byte for byte, as one that was never interrupted.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from gwntf import GWNTF, NCP, Checkpoint, TransportOptions
from gwntf.io import read_document
from gwntf.solver import RECORDS

FITS = (("numpy", 0), ("numpy", 1), ("cpu", 2), ("cpu", 0), ("cpu", 1), ("numpy", 2))
"""Backend and number of each; a few kills go to the first three."""


def model(engine: str, number: int, **options):
    """One of three fits: warm transports, restarts, adaptive scalings."""
    common = {"engine": engine, "tol": 0, "random_state": number, **options}
    if number % 3 == 0:
        return GWNTF(4, max_iter=40, graph_reg=10.0, **common)
    if number % 3 == 1:
        return NCP(4, n_init=4, max_iter=25, **common)
    return GWNTF(4, max_iter=60, transport=TransportOptions("auto"), dtype="float32", **common)


def fit(engine: str, number: int, target: Path, checkpoint: Path | None) -> None:
    """Fit, and save the model: what a process does that may be killed."""
    kept = None if checkpoint is None else [Checkpoint(checkpoint, iterations=1)]
    data = np.random.default_rng(number).random((40, 10, 12))
    model(engine, number, callbacks=kept).fit(data).save(target)


def start(*arguments) -> int:
    """Begin a fit in a process of its own."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        fit(*arguments)
        code = 0
    finally:
        os._exit(code)


def ended(process: int, checkpoint: Path, changes: int, pause: float) -> int | None:
    """Return the exit status if the process ends before so many checkpoints were written and a pause has passed."""
    seen = written(checkpoint)
    while changes:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if written(checkpoint) != seen:
            seen, changes = written(checkpoint), changes - 1
        time.sleep(0.0005)
    time.sleep(pause)
    found, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def written(path: Path) -> tuple[int, int] | None:
    """What changes with every new file at a path."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


class Case:
    """One fit that is killed until it ends."""

    def __init__(self, folder: Path, engine: str, number: int) -> None:
        self.folder = folder / f"{engine}-{number}"
        self.folder.mkdir()
        self.what = (engine, number)
        self.checkpoint, self.target = self.folder / "run.ckpt", self.folder / "model.gwntf"
        whole = self.folder / "whole.gwntf"
        _, status = os.waitpid(start(*self.what, whole, None), 0)
        if status:
            raise SystemExit("the fit failed without being killed")
        self.wanted = whole.read_bytes()
        self.finish()

    def attempt(self, rng: random.Random) -> bool:
        """Start or go on, and kill at a random moment; return whether that was in time."""
        process = start(*self.what, self.target, self.checkpoint)
        code = ended(process, self.checkpoint, rng.randrange(9), rng.uniform(0, 0.05))
        if code is None:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            if self.checkpoint.exists():
                read_document(self.checkpoint, "checkpoint", RECORDS)  # whole, whenever it was killed
            return True
        self.compare(code)
        return False

    def finish(self) -> None:
        """Let it end."""
        _, status = os.waitpid(start(*self.what, self.target, self.checkpoint), 0)
        self.compare(os.waitstatus_to_exitcode(status))

    def compare(self, code: int) -> None:
        """Raise unless the fit ended well, with the same bytes, and left nothing behind."""
        if code:
            raise SystemExit(f"{self.what}: the fit failed with {code} when it went on")
        if self.target.read_bytes() != self.wanted:
            raise SystemExit(f"{self.what}: another model than without interruption")
        self.target.unlink()
        left = sorted(path.name for path in self.folder.iterdir() if not path.name.startswith(".model.gwntf."))
        if left != ["whole.gwntf"]:
            raise SystemExit(f"{self.what}: {left} left behind")


def main(kills: int, seed: int = 0) -> None:
    """Kill so many times, spread over engines and fits, and say what came of it."""
    rng = random.Random(seed)  # noqa: S311
    resumed = ends = 0
    with tempfile.TemporaryDirectory() as name:
        cases = [Case(Path(name), *what) for what in FITS[: max(3, kills // 6)]]
        left = kills
        while left:
            for case in cases[: min(left, len(cases))]:
                resumed += case.checkpoint.exists()
                killed = case.attempt(rng)
                left -= killed
                ends += not killed
        for case in cases:
            resumed += case.checkpoint.exists()
            case.finish()
            ends += 1
    print(f"{kills} kills, {resumed} fits went on from a checkpoint, {ends} ended, all with the same bytes")  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
