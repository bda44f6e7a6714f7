"""Reading MATLAB and HDF5 files in a process of its own: their libraries crash on damaged files.

Run as a script by `guard`, and imports nothing of this package, so that it starts quickly. It reads one request as JSON
from its input, writes arrays as .npy files into the folder named there, and says on its output which. The rules for
sizes at the top are those of every format.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

EXPANSION = 1000
"""How many times its stored bytes an array may take; deflate reaches 1032 on zeros."""

FLOOR = 2**26
"""Bytes that any file may take, whatever it stores."""

NUMBERS = "fiub"
"""Kinds of NumPy's types that are data."""


class RefusedError(Exception):
    """A file that is not read; the message goes on from the file's name."""


def check_size(needed: int, stored: int, max_bytes: int) -> None:
    """Refuse an array that would take more memory than is allowed, or far more than its file can hold."""
    if needed > max_bytes:
        raise RefusedError(
            f"declares an array of {size(needed)}, and at most {size(max_bytes)} may be read into memory: "
            "raise max_bytes (--max-memory), or keep it, folded and samples first, as .npy (in Python also .zarr, with "
            "lazy=True), which is read block by block"
        )
    if needed > max(FLOOR, EXPANSION * stored):
        raise RefusedError(
            f"declares an array of {size(needed)} but stores {size(stored)} of it: it is damaged, or made to "
            "fill the memory; save the array again, uncompressed"
        )


def count_bytes(shape: Sequence[int], itemsize: int) -> int:
    """Bytes of an array, in whole numbers of any size."""
    if any(length < 0 for length in shape):
        raise RefusedError(f"declares the shape {tuple(shape)}, which no array has")
    return math.prod(int(length) for length in shape) * max(1, int(itemsize))


def choose(shapes: Mapping[str, Sequence[int]], key: str | None, labels: str | None) -> str:
    """Choose the array that is the data: the one asked for, else the only one that is no vector."""
    held = ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in sorted(shapes.items())[:20])
    for wanted in (key, labels):
        if wanted is not None and wanted not in shapes:
            raise RefusedError(f"has no array {wanted!r}; it holds {held or 'no array of numbers'}")
    if key is not None:
        return key
    tables = [name for name, shape in shapes.items() if name != labels and sum(n != 1 for n in shape) > 1]
    if len(tables) == 1:
        return tables[0]
    if not tables:
        raise RefusedError(f"holds no array of two or more axes (it has {held or 'no array of numbers'})")
    raise RefusedError(f"holds several arrays ({held}): choose the data by key= (--key)")


def size(count: float) -> str:
    """Bytes as a person says them."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.3g} PB"


_WIDTHS = {"single": 4, "int8": 1, "uint8": 1, "logical": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4}
_WIDE = {"double": 8, "int64": 8, "uint64": 8}
_TEXT = "char"


@dataclass(frozen=True)
class Request:
    """Which file, which of its arrays, and how much memory it may take."""

    path: str
    key: str | None
    labels: str | None
    max_bytes: int


def read_mat5(request: Request) -> dict[str, Any]:
    """Read variables of a MATLAB file up to version 7; returns arrays, or the parts of a sparse matrix, by role."""
    from scipy.io import loadmat, whosmat

    known = {**_WIDTHS, **_WIDE, "sparse": 8}
    found = {name: (tuple(shape), kind) for name, shape, kind in whosmat(request.path)}
    usable = {n: shape for n, (shape, kind) in found.items() if kind in known or n == request.labels}
    key = choose(usable, request.key, request.labels)
    stored = os.stat(request.path).st_size
    wanted = [name for name in (key, request.labels) if name is not None]
    for name in wanted:
        shape, kind = found[name]
        if kind == "sparse":
            check_size(count_bytes((sum(shape),), 16), stored, request.max_bytes)
        elif kind in known or kind == _TEXT:
            check_size(count_bytes(shape, known.get(kind, 4)), stored, request.max_bytes)
        else:
            raise RefusedError(f"holds {name!r} as a {kind}, not as an array of numbers")
    content = loadmat(request.path, variable_names=wanted, chars_as_strings=True)
    return {"X": content[key], **({} if request.labels is None else {"labels": content[request.labels]})}


def read_hdf5(request: Request) -> dict[str, Any]:
    """Read datasets of an HDF5 file by role; those of MATLAB 7.3 have their axes turned round."""
    import h5py

    with h5py.File(request.path, "r") as file:
        found = {name: file[name] for name in _datasets(file, h5py)}
        usable = {n: d.shape for n, d in found.items() if d.dtype.kind in NUMBERS or n == request.labels}
        key = choose(usable, request.key, request.labels)
        turned = "MATLAB_class" in found[key].attrs
        arrays = {"X": _dataset(found[key], key, request)}
        if request.labels is not None:
            arrays["labels"] = _dataset(found[request.labels], request.labels, request)
    return {role: np.asarray(array.T if turned else array) for role, array in arrays.items()}


def _datasets(file: Any, h5py: Any) -> list[str]:
    """Names of the datasets at the top that lie in this file and not behind a link to another place."""
    names = [name for name in file if isinstance(file.get(name, getlink=True), h5py.HardLink)]
    return [name for name in names if file.get(name, getclass=True) is h5py.Dataset]


def _dataset(data: Any, name: str, request: Request) -> NDArray[Any]:
    """Read one dataset, unless its entries lie in other files or hardly any of them are stored."""
    if data.external is not None or data.is_virtual:
        raise RefusedError(
            f"keeps the entries of {name!r} in other files, which are not opened: copy them into one"
        )
    if data.shape is None or data.dtype.kind not in NUMBERS + "S":
        raise RefusedError(f"holds {name!r} with entries of type {data.dtype}, not numbers")
    check_size(count_bytes(data.shape, data.dtype.itemsize), data.id.get_storage_size(), request.max_bytes)
    if data.chunks is not None:
        check_size(count_bytes(data.chunks, data.dtype.itemsize), 0, request.max_bytes)
    return np.asarray(data[()])


TASKS: dict[str, Callable[[Request], dict[str, Any]]] = {"mat5": read_mat5, "hdf5": read_hdf5}


def save(arrays: dict[str, Any], folder: Path) -> list[str]:
    """Write each array as a .npy file, a sparse matrix as its parts; return the names."""
    parts: dict[str, NDArray[Any]] = {}
    for role, array in arrays.items():
        if hasattr(array, "tocoo"):
            columns = array.tocsc()
            parts |= {f"{role}.{part}": getattr(columns, part) for part in ("data", "indices", "indptr")}
            parts[f"{role}.shape"] = np.asarray(columns.shape)
        else:
            parts[role] = array
    for name, array in parts.items():
        if array.dtype.hasobject:
            raise RefusedError("holds cells or objects where numbers should be")
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    return list(parts)


def main() -> None:
    """Answer one request."""
    asked = json.load(sys.stdin)
    _limit_memory(asked["max_bytes"])
    answer: dict[str, Any]
    try:
        request = Request(asked["path"], asked["key"], asked["labels"], asked["max_bytes"])
        answer = {"arrays": save(TASKS[asked["task"]](request), Path(asked["folder"]))}
    except RefusedError as reason:
        answer = {"refused": str(reason)}
    except Exception as error:  # the libraries raise whatever a damaged file makes of them
        answer = {"failed": f"{type(error).__name__}: {error}"[:300]}
    json.dump(answer, sys.stdout)


def _limit_memory(max_bytes: int) -> None:
    """Let this process take three times what may be read, and what the libraries themselves need."""
    try:
        import resource
    except ImportError:  # there is no such limit on Windows
        return
    limit = 3 * max_bytes + 2**32
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


if __name__ == "__main__":
    main()
