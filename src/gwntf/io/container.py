"""The file of models and checkpoints, byte by byte (`docs/reliability.md` has the table).

A prefix of 16 bytes (magic, version, length of the header), a header in JSON, the arrays one after the other, each
filled up with zeros to a multiple of 64 bytes, and the SHA-256 of all that. Whatever a file declares is compared with
its real size before anything is allocated, and no part of it is ever run.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Sequence
from io import BufferedReader
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf._version import __version__
from gwntf.core import InputError, ModelFileError
from gwntf.io.atomic import atomic_path

MAGIC = b"\x89GWNTF\r\n"
"""A byte that is no ASCII, the name, and a line end that a transfer as text would change."""

VERSION = 1

DTYPES = {
    code: np.dtype(code)
    for code in ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
}
"""Number types that a file may hold."""

MAX_HEADER = 2**22
_PREFIX = struct.Struct("<8sII")
_ALIGN, _DIGEST, _CHUNK, _MOST_AXES = 64, 32, 2**20, 32


def write_container(
    path: str | os.PathLike[str], kind: str, content: Any, arrays: Sequence[NDArray[Any]]
) -> None:
    """Write a file that appears whole or not at all.

    Parameters
    ----------
    path : path
        Where to write.
    kind : str
        What the file is: "model" or "checkpoint".
    content : JSON
        What it says; refers to arrays by their number.
    arrays : sequence of arrays
        Of real numbers.
    """
    laid = [_laid_out(array) for array in arrays]
    header = json.dumps(
        {"kind": kind, "library": __version__, "content": content, "arrays": [entry for entry, _ in laid]},
        allow_nan=False,
        separators=(",", ":"),
    ).encode("ascii")
    if len(header) > MAX_HEADER:
        allowed = f"at most {MAX_HEADER} bytes besides arrays: give arrays in place of long lists"
        raise InputError(kind, f"a description of {len(header)} bytes", allowed)
    digest = hashlib.sha256()
    with atomic_path(path) as aside, aside.open("wb") as file:

        def put(part: bytes | memoryview) -> None:
            digest.update(part)
            file.write(part)

        put(_PREFIX.pack(MAGIC, VERSION, len(header)) + header + _padding(_PREFIX.size + len(header)))
        for _, values in laid:
            put(as_bytes(values))
            put(_padding(values.nbytes))
        file.write(digest.digest())


def read_container(path: str | os.PathLike[str], kind: str) -> tuple[Any, list[NDArray[Any]]]:
    """Return content and arrays of a file of that kind.

    Raises
    ------
    ModelFileError
        If it is no such file, a byte of it is not as it was written, or it comes from a later version.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(f"{path} is no file")
        length = _header_length(path, file, status.st_size)
        if _digest(file, status.st_size - _DIGEST) != file.read(_DIGEST):
            raise ModelFileError(
                f"{path} is damaged: its SHA-256 is not the one that was written with it. Take another copy"
            )
        try:
            return _contents(file, length, status.st_size, kind)
        except (ValueError, KeyError, TypeError, IndexError, RecursionError, OverflowError) as error:
            raise ModelFileError(f"{path} cannot be read: {error}") from error


def _without_waiting(name: str, flags: int) -> int:
    """Open without waiting for somebody to write, as a pipe would."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def _laid_out(array: NDArray[Any]) -> tuple[dict[str, Any], NDArray[Any]]:
    """Return an array's entry in the header, and its numbers as they lie in the file."""
    columns = array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in DTYPES:
        raise InputError("arrays", f"an array of type {array.dtype}", f"one of {', '.join(DTYPES)}")
    entry: dict[str, Any] = {"dtype": dtype.str, "shape": list(array.shape)}
    if columns:
        entry["order"] = "F"
    return entry, np.ascontiguousarray(array.T if columns else array, dtype=dtype)


def as_bytes(array: NDArray[Any]) -> memoryview:
    """Return the bytes of an array in rows, without a copy."""
    return array.reshape(-1).view(np.uint8).data


def _padding(size: int) -> bytes:
    return bytes(-size % _ALIGN)


def _header_length(path: str | os.PathLike[str], file: BufferedReader, size: int) -> int:
    """Check the prefix against the size of the file."""
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size or not prefix.startswith(MAGIC):
        raise ModelFileError(f"{path} is no file of gwntf: it does not begin as one")
    _, version, length = _PREFIX.unpack(prefix)
    if version > VERSION:
        raise ModelFileError(
            f"{path} has format version {version}, and this gwntf, {__version__}, reads up to {VERSION}: "
            "install a later one"
        )
    if version < 1 or length > MAX_HEADER or _PREFIX.size + length + _DIGEST > size:
        raise ModelFileError(f"{path} is damaged or cut: its first bytes do not fit its size of {size} bytes")
    return int(length)


def _digest(file: BufferedReader, size: int) -> bytes:
    """SHA-256 of the first bytes of a file; it is left behind them."""
    digest = hashlib.sha256()
    file.seek(0)
    while size:
        chunk = file.read(min(_CHUNK, size))
        if not chunk:
            break
        digest.update(chunk)
        size -= len(chunk)
    return digest.digest()


def _contents(file: BufferedReader, length: int, size: int, kind: str) -> tuple[Any, list[NDArray[Any]]]:
    file.seek(_PREFIX.size)
    header = json.loads(file.read(length).decode("ascii"), parse_constant=_refuse)
    if header["kind"] != kind:
        raise ValueError(f"it is a {header['kind']}, not a {kind}")
    entries = [_checked(entry) for entry in header["arrays"]]
    place = _PREFIX.size + length + len(_padding(_PREFIX.size + length))
    sizes = [dtype.itemsize * math.prod(shape) for dtype, shape, _ in entries]
    if place + sum(size + len(_padding(size)) for size in sizes) + _DIGEST != size:
        raise ValueError("the arrays that it declares do not have the size of the file")
    arrays = []
    for (dtype, shape, columns), nbytes in zip(entries, sizes, strict=True):
        file.seek(place)
        arrays.append(_array(file, dtype, shape, columns))
        place += nbytes + len(_padding(nbytes))
    return header["content"], arrays


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _checked(entry: Any) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Return number type and shape of an array, and whether it lies in columns."""
    shape = tuple(entry["shape"])
    if len(shape) > _MOST_AXES or not all(type(size) is int and 0 <= size < 2**63 for size in shape):
        raise ValueError(f"an array cannot have the shape {str(shape)[:200]}")
    return DTYPES[entry["dtype"]], shape, entry.get("order") == "F"


def _array(file: BufferedReader, dtype: np.dtype[Any], shape: tuple[int, ...], columns: bool) -> NDArray[Any]:
    array = np.empty(shape[::-1] if columns else shape, dtype)
    if array.nbytes and file.readinto(as_bytes(array)) != array.nbytes:
        raise ValueError("it became shorter while it was read")
    if dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise ValueError("an array of truth values holds something else")
    native = array.astype(dtype.newbyteorder("="), copy=False)
    return native.T if columns else native
