"""Calling a library that may crash on a damaged file, in a process that may."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gwntf.core import DataError

_SECONDS = 60.0
_BYTES_PER_SECOND = 1e6
"""The slowest reading that is waited for, beyond the first minute."""

_SCRIPT = Path(__file__).with_name("apart.py")


def read_apart(task: str, path: Path, key: str | None, labels: str | None, max_bytes: int) -> dict[str, Any]:
    """Read arrays of a file in another process; a crash or a hang there is an error here.

    Parameters
    ----------
    task : {"mat5", "hdf5"}
        Which of `apart.TASKS`.
    path, key, labels, max_bytes
        What it is asked for.

    Returns
    -------
    dict
        "X" and, where they were asked for, "labels"; of a sparse matrix ``"X.data"`` and so on.
    """
    with TemporaryDirectory(prefix="gwntf-") as folder:
        request: dict[str, Any] = {"task": task, "path": str(path.resolve()), "key": key, "labels": labels}
        request |= {"max_bytes": max_bytes, "folder": folder}
        answer = _ask(path, json.dumps(request))
        if "refused" in answer:
            raise DataError(f"{path} {answer['refused']}.")
        if "arrays" not in answer:
            raise DataError(f"{path} could not be read ({answer.get('failed')}): is the file whole?")
        return {name: np.load(Path(folder) / f"{name}.npy", allow_pickle=False) for name in answer["arrays"]}


def _ask(path: Path, request: str) -> dict[str, Any]:
    patience = _SECONDS + path.stat().st_size / _BYTES_PER_SECOND
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, our own script
            [sys.executable, "-P", "-W", "ignore", str(_SCRIPT)],
            input=request,
            capture_output=True,
            encoding="utf-8",
            timeout=patience,
            cwd=_SCRIPT.parent,
        )
        answer: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise DataError(
            f"{path} kept its library busy for {patience:.0f} s without an end: it is damaged."
        ) from error
    except ValueError as error:
        reason = f"the library that reads it crashed (exit code {done.returncode})"
        raise DataError(f"{path} is damaged: {reason}.") from error
    return answer
