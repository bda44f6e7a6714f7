"""MATLAB and HDF5 files, which `isolated` reads in a child process."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gwntf.core import DataError
from gwntf.readers.arrays import build_sparse
from gwntf.readers.samples import Samples, require

_TIMEOUT = 60.0
_BYTES_PER_SECOND = 1e6  # slowest accepted reading speed: the timeout grows with the size of the file

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"

_FOLDER = Path(__file__).parent

CHILD_CODE = f"""
import sys, types
for name, folder in [("gwntf", {str(_FOLDER.parent)!r}), ("gwntf.readers", {str(_FOLDER)!r})]:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
from gwntf.readers.isolated import main
main()
"""
"""Runs `isolated` below empty parent packages, because importing the real ones takes a second."""


def read_mat(path: Path, max_bytes: int, *, key: str | None = None, labels: str | None = None) -> Samples:
    """Read variables of a MATLAB file: SciPy reads versions up to 7, h5py version 7.3."""
    with path.open("rb") as file:
        start = file.read(1024)
    if _HDF5_MAGIC in (start[:8], start[512:520]):
        return read_hdf5(path, max_bytes, key=key, labels=labels)
    return _as_samples(read_isolated("mat5", path, key, labels, max_bytes))


def read_hdf5(path: Path, max_bytes: int, *, key: str | None = None, labels: str | None = None) -> Samples:
    """Read datasets of an HDF5 file."""
    require("h5py", path)
    return _as_samples(read_isolated("hdf5", path, key, labels, max_bytes))


def _as_samples(arrays: dict[str, Any]) -> Samples:
    if "X" in arrays:
        return Samples(arrays["X"], arrays.get("labels"))
    from scipy.sparse import csc_array

    parts = {name: arrays[f"X.{name}"] for name in ("data", "indices", "indptr", "shape")}
    return Samples(build_sparse(csc_array, parts), arrays.get("labels"))


def read_isolated(reader: str, path: Path, key: str | None, labels: str | None, max_bytes: int) -> dict[str, Any]:
    """Return the arrays that `isolated.save` wrote in a child process; a crash or a hang there raises a DataError."""
    with TemporaryDirectory(prefix="gwntf-") as folder:
        request = {"reader": reader, "folder": folder, "path": str(path.resolve()), "key": key}
        answer = _run_child(path, json.dumps({**request, "labels": labels, "max_bytes": max_bytes}))
        if "refused" in answer:
            raise DataError(f"{path} {answer['refused']}.")
        if "arrays" not in answer:
            raise DataError(f"{path} could not be read ({answer.get('failed')}): is the file complete?")
        return {name: np.load(f"{folder}/{name}.npy", allow_pickle=False) for name in answer["arrays"]}


def _run_child(path: Path, request: str) -> dict[str, Any]:
    timeout = _TIMEOUT + path.stat().st_size / _BYTES_PER_SECOND
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter and a constant program
            [sys.executable, "-P", "-W", "ignore", "-c", CHILD_CODE],
            input=request,
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
            cwd=_FOLDER,
        )
        answer: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise DataError(f"{path} was not read within {timeout:.0f} s: it may be damaged.") from error
    except ValueError as error:
        reason = f"the library that reads it crashed (exit code {done.returncode})"
        raise DataError(f"{path} is damaged: {reason}.") from error
    return answer
