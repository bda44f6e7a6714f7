"""MATLAB's .mat files and HDF5 files."""

from __future__ import annotations

from pathlib import Path

from gwntf.readers.guard import read_apart
from gwntf.readers.numpy_files import build_sparse
from gwntf.readers.samples import Samples, Wanted, require

_MAGIC = b"\x89HDF\r\n\x1a\n"


def read_mat(path: Path, wanted: Wanted) -> Samples:
    """Read variables of a MATLAB file: SciPy reads versions up to 7, h5py version 7.3."""
    with path.open("rb") as file:
        start = file.read(1024)
    return _read(path, wanted, "hdf5" if _MAGIC in (start[:8], start[512:520]) else "mat5")


def read_hdf5(path: Path, wanted: Wanted) -> Samples:
    """Read datasets of an HDF5 file."""
    return _read(path, wanted, "hdf5")


def _read(path: Path, wanted: Wanted, task: str) -> Samples:
    if task == "hdf5":
        require("h5py", path)
    arrays = read_apart(task, path, wanted.key, wanted.labels, wanted.max_bytes)
    X = arrays["X"] if "X" in arrays else _sparse(arrays)
    return Samples(X, arrays.get("labels"))


def _sparse(arrays: dict[str, object]) -> object:
    from scipy.sparse import csc_array

    names = ("data", "indices", "indptr", "shape")
    return build_sparse(csc_array, {name: arrays[f"X.{name}"] for name in names})  # type: ignore[misc]
