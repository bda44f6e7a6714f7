"""The file format of models and checkpoints (`docs/reliability.md` has the table).

A prefix of 16 bytes (magic, version, length of the header), a header in JSON, the arrays one after the other, each
padded with zeros to a multiple of 64 bytes, and the SHA-256 of everything before it. Declared sizes are compared with
the size of the file before memory is allocated, and nothing in a file is executed.
"""

import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Sequence
from io import BufferedReader
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf._version import __version__
from gwntf.core import InputError, ModelFileError
from gwntf.io.atomic import atomic_path

MAGIC = b"\x89GWNTF\r\n"
"""A non-ASCII byte, the name, and a line ending that a transfer in text mode would change."""

VERSION = 1

DTYPES = {
    code: np.dtype(code)
    for code in ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
}
"""Dtypes that a file may contain."""

MAX_HEADER = 2**22
_PREFIX = struct.Struct("<8sII")
_ALIGN, _DIGEST_SIZE, _CHUNK, _MAX_AXES = 64, 32, 2**20, 32


def write_container(path: str | os.PathLike[str], kind: str, content: Any, arrays: Sequence[NDArray[Any]]) -> None:
    """Write a file of that kind, "model" or "checkpoint", atomically.

    `content` is JSON that refers to the arrays, of real numbers, by index.
    """
    entries, values = zip(*map(_encode_array, arrays), strict=True) if arrays else ((), ())
    header = json.dumps(
        {"kind": kind, "library": __version__, "content": content, "arrays": entries},
        allow_nan=False,
        separators=(",", ":"),
    ).encode("ascii")
    if len(header) > MAX_HEADER:
        allowed = f"at most {MAX_HEADER} bytes besides arrays: use arrays instead of long lists"
        raise InputError(kind, f"a description of {len(header)} bytes", allowed)
    digest = hashlib.sha256()
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        parts: list[bytes | memoryview] = [_PREFIX.pack(MAGIC, VERSION, len(header)) + header]
        for part in parts + [as_bytes(array) for array in values]:
            for data in (part, bytes(-len(part) % _ALIGN)):
                digest.update(data)
                file.write(data)
        file.write(digest.digest())


def read_container(path: str | os.PathLike[str], kind: str) -> tuple[Any, list[NDArray[Any]]]:
    """Return the content and the arrays of a file of that kind.

    Raises
    ------
    ModelFileError
        If the file is of another kind, is damaged, or was written by a later version.
    """
    with open(path, "rb", opener=_open_nonblocking) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(f"{path} is not a regular file")
        length = _header_length(path, file, status.st_size)
        if _digest(file, status.st_size - _DIGEST_SIZE) != file.read(_DIGEST_SIZE):
            raise ModelFileError(f"{path} is damaged: its SHA-256 does not match. Use another copy")
        try:
            return _contents(file, length, status.st_size, kind)
        except (ValueError, KeyError, TypeError, IndexError, RecursionError, OverflowError) as error:
            raise ModelFileError(f"{path} cannot be read: {error}") from error


def _open_nonblocking(name: str, flags: int) -> int:
    """Open without blocking, also where the path is a pipe without a writer."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def _encode_array(array: NDArray[Any]) -> tuple[dict[str, Any], NDArray[Any]]:
    """Return the header entry of an array, and its values in the memory order and byte order of the file."""
    columns = array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in DTYPES:
        raise InputError("arrays", f"an array of type {array.dtype}", f"one of {', '.join(DTYPES)}")
    entry = {"dtype": dtype.str, "shape": list(array.shape), **({"order": "F"} if columns else {})}
    return entry, np.ascontiguousarray(array.T if columns else array, dtype=dtype)


def as_bytes(array: NDArray[Any]) -> memoryview:
    """Return the bytes of a C-contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8).data


def _header_length(path: str | os.PathLike[str], file: BufferedReader, size: int) -> int:
    """Check the prefix against the size of the file; return the length of the header."""
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size or not prefix.startswith(MAGIC):
        raise ModelFileError(f"{path} is not a gwntf file: it does not begin with the signature of the format")
    _, version, length = _PREFIX.unpack(prefix)
    if version > VERSION:
        raise ModelFileError(
            f"{path} has format version {version}, but gwntf {__version__} reads versions up to {VERSION}: "
            "install a later release"
        )
    if version < 1 or length > MAX_HEADER or _PREFIX.size + length + _DIGEST_SIZE > size:
        raise ModelFileError(f"{path} is damaged or truncated: its header does not match its size of {size} bytes")
    return int(length)


def _digest(file: BufferedReader, size: int) -> bytes:
    """Return the SHA-256 of the first `size` bytes of a file; leave the file position after them."""
    digest = hashlib.sha256()
    file.seek(0)
    while size and (chunk := file.read(min(_CHUNK, size))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.digest()


def _contents(file: BufferedReader, length: int, size: int, kind: str) -> tuple[Any, list[NDArray[Any]]]:
    """Parse the header, check the declared sizes, and only then read the arrays."""
    file.seek(_PREFIX.size)
    header = json.loads(file.read(length).decode("ascii"), parse_constant=_refuse_constant)
    if header["kind"] != kind:
        raise ValueError(f"it is a {header['kind']}, not a {kind}")
    entries = [_parse_entry(entry) for entry in header["arrays"]]
    sizes = [_PREFIX.size + length, *(dtype.itemsize * math.prod(shape) for dtype, shape, _ in entries)]
    ends = list(accumulate(part + -part % _ALIGN for part in sizes))
    if ends[-1] + _DIGEST_SIZE != size:
        raise ValueError("the declared arrays do not match the size of the file")
    return header["content"], [_read_array(file, *item) for item in zip(ends[:-1], entries, strict=True)]


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


_Entry = tuple[np.dtype[Any], tuple[int, ...], bool]


def _parse_entry(entry: Any) -> _Entry:
    """Return the dtype and shape of an array, and whether it is stored in column-major order."""
    shape = tuple(entry["shape"])
    if len(shape) > _MAX_AXES or not all(type(size) is int and 0 <= size < 2**63 for size in shape):
        raise ValueError(f"an array has the invalid shape {str(shape)[:200]}")
    return DTYPES[entry["dtype"]], shape, entry.get("order") == "F"


def _read_array(file: BufferedReader, offset: int, entry: _Entry) -> NDArray[Any]:
    dtype, shape, columns = entry
    array = np.empty(shape[::-1] if columns else shape, dtype)
    file.seek(offset)
    if array.nbytes and file.readinto(as_bytes(array)) != array.nbytes:
        raise ValueError("the file was truncated while it was read")
    if dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise ValueError("a boolean array has values other than 0 and 1")
    native = array.astype(dtype.newbyteorder("="), copy=False)
    return native.T if columns else native
