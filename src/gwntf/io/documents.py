"""Named values in files: `values` turns them into JSON and arrays, `container` writes those."""

import hashlib
import json
import os
from typing import Any

import numpy as np

from gwntf.core import InputError, ModelFileError
from gwntf.io.container import as_bytes, read_container, write_container
from gwntf.io.values import Packer, Records, Unpacker


def write_document(path: str | os.PathLike[str], kind: str, fields: dict[str, Any], records: Records) -> None:
    """Write named values to a file of that kind; a value that cannot be stored raises an `InputError` with its name."""
    packer = Packer(records)
    content = {name: packer.pack(value, name) for name, value in fields.items()}
    write_container(path, kind, content, packer.arrays)


def read_document(path: str | os.PathLike[str], kind: str, records: Records) -> dict[str, Any]:
    """Return the named values of a file of that kind; any fault of the file raises a `ModelFileError`."""
    content, arrays = read_container(path, kind)
    unpacker = Unpacker(records, arrays)
    try:
        return {name: unpacker.unpack(value) for name, value in content.items()}
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        name = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        raise ModelFileError(f"{path} has contents that are invalid in a {kind}: {name}{error}") from error


def fingerprint(value: Any, records: Records) -> str:
    """Return the SHA-256 of a value: equal for values that a file would store as the same bytes."""
    packer = Packer(records)
    digest = hashlib.sha256(json.dumps(packer.pack(value, "value")).encode("ascii"))
    for array in packer.arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode("ascii"))
        digest.update(as_bytes(np.ascontiguousarray(array)))
    return digest.hexdigest()
