"""Named values in files, as JSON and arrays: numbers, text, lists, arrays, sparse matrices and records.

JSON has no tuples, infinities or arrays, so these are objects with one key, the type of the value:

    {"tuple": [...]}  {"dict": {...}}  {"float": "inf"}  {"array": 3}  {"scalar": 3}  {"text": [3, 4]}
    {"sparse": {"format": "csr", "kind": "array", "shape": [5, 5], "parts": [3, 4, 5]}}
    {"record": "SeparableCost", "fields": {...}}

Numbers are indices into the list of arrays. The reader supplies the table of records: a file cannot name any other
class, and nothing in it is executed.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gwntf.backends import is_foreign, to_host
from gwntf.core import InputError, ModelFileError
from gwntf.io.container import as_bytes, read_container, write_container

_MAX_DEPTH = 16

_SPARSE = {
    (layout, kind): getattr(sp, f"{layout}_{kind}") for layout in ("csr", "csc", "coo") for kind in ("array", "matrix")
}
"""Sparse formats that a file may contain; others are converted to CSR."""

_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


@dataclass(frozen=True)
class Record:
    """A class whose instances may be stored in a file."""

    type: type  # subclasses do not match
    take: Callable[[Any], Mapping[str, Any]]  # returns the fields of an instance
    make: Callable[..., Any]  # builds an instance from the fields; raises ValueError if they are inconsistent


Records = Mapping[str, Record]


@dataclass
class Packer:
    """Converts values to JSON and collects their arrays; `records` are the classes that may occur."""

    records: Records = field(default_factory=dict)
    arrays: list[NDArray[Any]] = field(default_factory=list)

    def pack(self, value: Any, name: str, depth: int = 0) -> Any:
        """Return a value as JSON; `name` is used in error messages."""
        if depth > _MAX_DEPTH:
            raise InputError(name, "values nested too deeply", f"at most {_MAX_DEPTH} levels")
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic):
            return {"scalar": self._add(np.asarray(value), name)}
        if sp.issparse(value):
            return {"sparse": self._pack_sparse(value, name)}
        if isinstance(value, np.ndarray) or is_foreign(value):
            return self._pack_array(np.asarray(to_host(value)), name)
        for known, record in self.records.items():
            if type(value) is record.type:
                fields = {key: self.pack(part, name, depth + 1) for key, part in record.take(value).items()}
                return {"record": known, "fields": fields}
        if isinstance(value, list | tuple):
            parts = [self.pack(part, f"{name}[{index}]", depth + 1) for index, part in enumerate(value)]
            return parts if isinstance(value, list) else {"tuple": parts}
        if isinstance(value, dict) and all(type(key) is str for key in value):
            items = {key: self.pack(part, f"{name}[{key!r}]", depth + 1) for key, part in value.items()}
            return {"dict": items}
        allowed = "numbers, text, arrays and lists of them: functions and objects cannot be saved"
        raise InputError(name, f"a {type(value).__name__}", allowed)

    def _pack_array(self, values: NDArray[Any], name: str) -> Any:
        if values.dtype == object and values.ndim == 1 and all(type(text) is str for text in values):
            lengths = np.array([len(text) for text in values], dtype=np.int64)
            joined = "".join(values).encode("utf-32-le", "surrogatepass")
            return {"text": [self._add(lengths, name), self._add(np.frombuffer(joined, np.uint32), name)]}
        return {"array": self._add(values, name)}

    def _pack_sparse(self, matrix: Any, name: str) -> dict[str, Any]:
        kept = matrix if (matrix.format, "array") in _SPARSE else matrix.tocsr()
        indices = kept.coords if kept.format == "coo" else (kept.indices, kept.indptr)
        return {
            "format": kept.format,
            "kind": "array" if isinstance(matrix, sp.sparray) else "matrix",
            "shape": [int(size) for size in kept.shape],
            "parts": [self._add(np.asarray(part), name) for part in (kept.data, *indices)],
        }

    def _add(self, values: NDArray[Any], name: str) -> int:
        """Append an array; return its index."""
        if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8:
            raise InputError(name, f"an array of type {values.dtype}", "real numbers of at most 64 bits")
        self.arrays.append(values)
        return len(self.arrays) - 1


@dataclass(frozen=True)
class Unpacker:
    """Converts JSON and arrays to values; invalid ones raise ValueError, KeyError, TypeError or IndexError."""

    records: Records
    arrays: list[NDArray[Any]]

    def unpack(self, value: Any, depth: int = 0) -> Any:
        """Return the value that was packed."""
        if depth > 2 * _MAX_DEPTH:
            raise ValueError("values are nested too deeply")
        if isinstance(value, list):
            return [self.unpack(part, depth + 1) for part in value]
        if not isinstance(value, dict):
            return value
        if "record" in value:
            record = self.records[value["record"]]
            return record.make(**{key: self.unpack(part, depth + 1) for key, part in value["fields"].items()})
        ((tag, inside),) = value.items()
        match tag:
            case "tuple":
                return tuple(self.unpack(part, depth + 1) for part in inside)
            case "dict":
                return {key: self.unpack(part, depth + 1) for key, part in inside.items()}
            case "float":
                return _FLOATS[inside]
            case "array":
                return self._get(inside)
            case "scalar":
                return self._get(inside)[()]
            case "text":
                return self._unpack_text(*inside)
            case "sparse":
                return self._unpack_sparse(**inside)
        raise ValueError(f"unknown kind of value {tag[:40]!r}")

    def _get(self, index: Any) -> NDArray[Any]:
        if type(index) is not int or index < 0:
            raise ValueError("an array has an invalid index")
        return self.arrays[index]

    def _unpack_text(self, lengths: int, letters: int) -> NDArray[np.object_]:
        joined = self._get(letters).astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        ends = np.cumsum(self._get(lengths))
        if self._get(lengths).min(initial=0) < 0 or (ends[-1] if len(ends) else 0) != len(joined):
            raise ValueError("a list of texts is inconsistent")
        starts = [0, *ends[:-1]]
        return np.array([joined[a:b] for a, b in zip(starts, ends, strict=True)], dtype=object)

    def _unpack_sparse(self, format: str, kind: str, shape: list[int], parts: list[int]) -> Any:  # noqa: A002
        """Build a sparse matrix after checking all indices, because the compiled code of SciPy does not check them."""
        size = (int(shape[0]), int(shape[1]))
        data, *indices = (self._get(part) for part in parts)
        if any(part.ndim != 1 for part in (data, *indices)) or any(part.dtype.kind != "i" for part in indices):
            raise ValueError("a sparse matrix has indices that are not vectors of integers")
        cls = _SPARSE[format, kind]
        if format != "coo":
            built = cls((data, *indices), shape=size)
            built.check_format(full_check=True)
            return built
        for part, length in zip(indices, size, strict=True):
            if len(part) != len(data) or (len(part) and not 0 <= part.min() <= part.max() < length):
                raise ValueError("a sparse matrix has indices outside its shape")
        return cls((data, tuple(indices)), shape=size)


def write_document(path: str | os.PathLike[str], kind: str, fields: dict[str, Any], records: Records) -> None:
    """Write named values to a file of that kind; a value that cannot be stored raises an `InputError` with its name."""
    packer = Packer(records)
    content = {name: packer.pack(value, name) for name, value in fields.items()}
    write_container(path, kind, content, packer.arrays)


def read_document(path: str | os.PathLike[str], kind: str, records: Records) -> dict[str, Any]:
    """Return the named values of a file of that kind; an invalid file raises a `ModelFileError`."""
    content, arrays = read_container(path, kind)
    unpacker = Unpacker(records, arrays)
    try:
        return {name: unpacker.unpack(value) for name, value in content.items()}
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        name = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        raise ModelFileError(f"{path} is not a valid {kind}: {name}{error}") from error


def fingerprint(value: Any, records: Records) -> str:
    """Return the SHA-256 of a value as a file would store it."""
    packer = Packer(records)
    digest = hashlib.sha256(json.dumps(packer.pack(value, "value")).encode("ascii"))
    for array in packer.arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode("ascii"))
        digest.update(as_bytes(np.ascontiguousarray(array)))
    return digest.hexdigest()
