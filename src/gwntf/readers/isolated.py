"""Reads MATLAB and HDF5 files in a child process, because SciPy and the HDF5 library crash on some damaged files.

`matlab` starts the child, which imports only `limits` from the package, so that it starts quickly. It reads one
request as JSON from standard input, writes the arrays as .npy files into the folder named in the request, and prints
their names, or the reason why it failed, as JSON.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.readers.limits import NUMERIC_KINDS, RefusedError, array_bytes, check_size, choose_array

_ITEM_SIZES = {"double": 8, "single": 4, "logical": 1, "sparse": 8}
_ITEM_SIZES |= {f"{sign}int{8 * size}": size for sign in ("", "u") for size in (1, 2, 4, 8)}
"""Bytes per entry of the numeric classes of MATLAB."""


def read_mat5(path: str, key: str | None, labels: str | None, max_bytes: int) -> dict[str, Any]:
    """Return the arrays "X" and, if `labels` is given, "labels" of a MATLAB file up to version 7."""
    from scipy.io import loadmat, whosmat

    found = {name: (tuple(shape), kind) for name, shape, kind in whosmat(path)}
    usable = {name: shape for name, (shape, kind) in found.items() if kind in _ITEM_SIZES or name == labels}
    roles = {"X": choose_array(usable, key, labels)} | ({} if labels is None else {"labels": labels})
    for name in roles.values():
        shape, kind = found[name]
        if kind not in _ITEM_SIZES and kind != "char":
            raise RefusedError(f"contains {name!r} as a {kind}; expected an array of numbers")
        entries, width = ((sum(shape),), 16) if kind == "sparse" else (shape, _ITEM_SIZES.get(kind, 4))
        check_size(array_bytes(entries, width), os.stat(path).st_size, max_bytes)
    content = loadmat(path, variable_names=list(roles.values()), chars_as_strings=True)
    return {role: content[name] for role, name in roles.items()}


def read_hdf5(path: str, key: str | None, labels: str | None, max_bytes: int) -> dict[str, Any]:
    """Return the datasets "X" and, if given, "labels" of an HDF5 file; MATLAB 7.3 stores axes in reverse order."""
    import h5py

    with h5py.File(path, "r") as file:
        # only datasets in this file: soft and external links may point anywhere
        names = [name for name in file if isinstance(file.get(name, getlink=True), h5py.HardLink)]
        found = {name: file[name] for name in names if file.get(name, getclass=True) is h5py.Dataset}
        usable = {n: data.shape for n, data in found.items() if data.dtype.kind in NUMERIC_KINDS or n == labels}
        roles = {"X": choose_array(usable, key, labels)} | ({} if labels is None else {"labels": labels})
        arrays = {role: _read_dataset(found[name], name, max_bytes) for role, name in roles.items()}
        reverse = "MATLAB_class" in found[roles["X"]].attrs
    return {role: np.asarray(array.T if reverse else array) for role, array in arrays.items()}


def _read_dataset(data: Any, name: str, max_bytes: int) -> NDArray[Any]:
    """Read one dataset; raise an error if its entries are in other files or mostly not stored."""
    if data.external is not None or data.is_virtual:
        raise RefusedError(
            f"stores the entries of {name!r} in other files, which are not opened: copy them into one file"
        )
    if data.shape is None or data.dtype.kind not in NUMERIC_KINDS + "S":
        raise RefusedError(f"has {name!r} with entries of type {data.dtype}, not numbers")
    check_size(array_bytes(data.shape, data.dtype.itemsize), data.id.get_storage_size(), max_bytes)
    if data.chunks is not None:
        check_size(array_bytes(data.chunks, data.dtype.itemsize), 0, max_bytes)
    return np.asarray(data[()])


READERS = {"mat5": read_mat5, "hdf5": read_hdf5}


def save(arrays: dict[str, Any], folder: Path) -> list[str]:
    """Write each array as a .npy file, a sparse matrix as the parts of its CSC form; return the file names."""
    parts: dict[str, NDArray[Any]] = {}
    for role, array in arrays.items():
        if hasattr(array, "tocoo"):
            csc = array.tocsc()
            parts |= {f"{role}.{part}": getattr(csc, part) for part in ("data", "indices", "indptr")}
            parts[f"{role}.shape"] = np.asarray(csc.shape)
        else:
            parts[role] = array
    for name, array in parts.items():
        if array.dtype.hasobject:
            raise RefusedError("contains cells or objects; expected numbers")
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    return list(parts)


def main() -> None:
    """Answer the request on standard input."""
    request = json.load(sys.stdin)
    reader, folder = READERS[request.pop("reader")], Path(request.pop("folder"))
    _limit_memory(request["max_bytes"])
    answer: dict[str, Any]
    try:
        answer = {"arrays": save(reader(**request), folder)}
    except RefusedError as reason:
        answer = {"refused": str(reason)}
    except Exception as error:  # a damaged file can make the libraries raise anything
        answer = {"failed": f"{type(error).__name__}: {error}"[:300]}
    json.dump(answer, sys.stdout)


def _limit_memory(max_bytes: int) -> None:
    """Limit the memory of this process to three times `max_bytes`, plus 4 GB for the libraries."""
    try:
        import resource
    except ImportError:  # not available on Windows
        return
    limit = 3 * max_bytes + 2**32
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
