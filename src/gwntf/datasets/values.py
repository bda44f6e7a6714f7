"""Named arrays in a file, and the SHA-256 of their values, which does not depend on how a file stores them."""

import hashlib
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, MemoryError, OverflowError),
    *(KeyError, IndexError, ValueError, TypeError, AttributeError, NotImplementedError, RuntimeError),
)
"""Exceptions of reading a zip archive of arrays that is damaged or of another kind."""


def values_digest(arrays: Mapping[str, NDArray[Any]], dtypes: Mapping[str, str]) -> str:
    """Return the SHA-256 of the shapes and values of arrays, in the order and with the types of `dtypes`.

    The type ``"text"`` stands for strings, encoded as UTF-8 and separated by line feeds.
    """
    digest = hashlib.sha256()
    for name, dtype in dtypes.items():
        array = np.asarray(arrays[name])
        digest.update(f"{name} {dtype} {array.shape}\n".encode())
        if dtype == "text":
            digest.update("\n".join(map(str, array.ravel())).encode())
        else:
            digest.update(np.ascontiguousarray(array, dtype=dtype).tobytes())
    return digest.hexdigest()


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a compressed ``.npz`` file, whose bytes depend only on the arrays."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def load_arrays(path: Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Return arrays of an ``.npz`` file; one of the `DAMAGED` exceptions if it does not contain them."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in names:
            with archive.open(f"{name}.npy") as file:
                arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
    return arrays
