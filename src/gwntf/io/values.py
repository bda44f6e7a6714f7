"""Python values as JSON and arrays, and back: numbers, text, lists, arrays, sparse matrices and known records.

JSON has no tuples, infinities or arrays, so these are objects with one key that says what they are:

    {"tuple": [...]}  {"dict": {...}}  {"float": "inf"}  {"array": 3}  {"scalar": 3}  {"text": [3, 4]}
    {"sparse": {"format": "csr", "kind": "array", "shape": [5, 5], "parts": [3, 4, 5]}}
    {"record": "SeparableCost", "fields": {...}}

Numbers are places in the list of arrays. A record is one of a table that the reader brings along: a file cannot name
anything else, and nothing in it is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gwntf.backends import is_foreign, to_host
from gwntf.core import InputError

_DEEPEST = 16

_SPARSE = {
    (layout, kind): getattr(sp, f"{layout}_{kind}")
    for layout in ("csr", "csc", "coo")
    for kind in ("array", "matrix")
}
"""Sparse matrices that a file may hold; others are written as CSR."""


@dataclass(frozen=True)
class Record:
    """A class whose instances may be in a file.

    Attributes
    ----------
    type : type
        The class; subclasses do not count.
    take : callable
        Returns the fields of an instance, a dict.
    make : callable
        Builds an instance from them, as keywords; raises ValueError where they do not fit each other.
    """

    type: type
    take: Callable[[Any], Mapping[str, Any]]
    make: Callable[..., Any]


Records = Mapping[str, Record]


@dataclass
class Packer:
    """Turns values into JSON; arrays are put into a list.

    Attributes
    ----------
    records : dict of str to Record
        Classes that may occur, by the names they have in a file.
    arrays : list of arrays
        Those that were met.
    """

    records: Records = field(default_factory=dict)
    arrays: list[NDArray[Any]] = field(default_factory=list)

    def pack(self, value: Any, name: str, depth: int = 0) -> Any:
        """Return a value as JSON; `name` is what the user calls it."""
        if depth > _DEEPEST:
            raise InputError(name, "values nested too deeply", f"at most {_DEEPEST} levels")
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic):
            return {"scalar": self._put(np.asarray(value), name)}
        if sp.issparse(value):
            return {"sparse": self._sparse(value, name)}
        if isinstance(value, np.ndarray) or is_foreign(value):
            return self._array(np.asarray(to_host(value)), name)
        for known, record in self.records.items():
            if type(value) is record.type:
                fields = {key: self.pack(part, name, depth + 1) for key, part in record.take(value).items()}
                return {"record": known, "fields": fields}
        return self._several(value, name, depth)

    def _several(self, value: Any, name: str, depth: int) -> Any:
        if isinstance(value, list | tuple):
            parts = [self.pack(part, f"{name}[{place}]", depth + 1) for place, part in enumerate(value)]
            return parts if isinstance(value, list) else {"tuple": parts}
        if isinstance(value, dict) and all(type(key) is str for key in value):
            return {
                "dict": {key: self.pack(part, f"{name}[{key!r}]", depth + 1) for key, part in value.items()}
            }
        allowed = "numbers, text, arrays and lists of them: functions and objects are not written to files"
        raise InputError(name, f"a {type(value).__name__}", allowed)

    def _array(self, values: NDArray[Any], name: str) -> Any:
        if values.dtype == object and values.ndim == 1 and all(type(text) is str for text in values):
            lengths = np.array([len(text) for text in values], dtype=np.int64)
            joined = "".join(values).encode("utf-32-le", "surrogatepass")
            return {"text": [self._put(lengths, name), self._put(np.frombuffer(joined, np.uint32), name)]}
        return {"array": self._put(values, name)}

    def _sparse(self, matrix: Any, name: str) -> dict[str, Any]:
        kept = matrix if (matrix.format, "array") in _SPARSE else matrix.tocsr()
        places = kept.coords if kept.format == "coo" else (kept.indices, kept.indptr)
        return {
            "format": kept.format,
            "kind": "array" if isinstance(matrix, sp.sparray) else "matrix",
            "shape": [int(size) for size in kept.shape],
            "parts": [self._put(np.asarray(part), name) for part in (kept.data, *places)],
        }

    def _put(self, values: NDArray[Any], name: str) -> int:
        if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8:
            raise InputError(name, f"an array of type {values.dtype}", "real numbers of at most 64 bits")
        self.arrays.append(values)
        return len(self.arrays) - 1


@dataclass(frozen=True)
class Unpacker:
    """Turns JSON and arrays back into values; raises ValueError, KeyError, TypeError or IndexError where it cannot."""

    records: Records
    arrays: list[NDArray[Any]]

    def unpack(self, value: Any, depth: int = 0) -> Any:
        """Return the value that was packed."""
        if depth > 2 * _DEEPEST:
            raise ValueError("values are nested too deeply")
        if isinstance(value, list):
            return [self.unpack(part, depth + 1) for part in value]
        if not isinstance(value, dict):
            return value
        if "record" in value:
            record = self.records[value["record"]]
            return record.make(**{key: self.unpack(part, depth + 1) for key, part in value["fields"].items()})
        ((tag, inside),) = value.items()
        if tag == "tuple":
            return tuple(self.unpack(part, depth + 1) for part in inside)
        if tag == "dict":
            return {key: self.unpack(part, depth + 1) for key, part in inside.items()}
        return self._leaf(tag, inside)

    def _leaf(self, tag: str, inside: Any) -> Any:
        if tag == "float":
            return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[inside]
        if tag == "array":
            return self._get(inside)
        if tag == "scalar":
            return self._get(inside)[()]
        if tag == "text":
            return self._text(*inside)
        if tag == "sparse":
            return self._sparse(**inside)
        raise ValueError(f"unknown kind of value {tag[:40]!r}")

    def _get(self, place: Any) -> NDArray[Any]:
        if type(place) is not int or place < 0:
            raise ValueError("an array has no place")
        return self.arrays[place]

    def _text(self, lengths: int, letters: int) -> NDArray[np.object_]:
        joined = self._get(letters).astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        ends = np.cumsum(self._get(lengths))
        if self._get(lengths).min(initial=0) < 0 or (ends[-1] if len(ends) else 0) != len(joined):
            raise ValueError("a list of texts is inconsistent")
        starts = [0, *ends[:-1]]
        return np.array([joined[a:b] for a, b in zip(starts, ends, strict=True)], dtype=object)

    def _sparse(self, format: str, kind: str, shape: list[int], parts: list[int]) -> Any:  # noqa: A002
        """Build a sparse matrix whose places have all been looked at: SciPy's compiled code trusts them."""
        size = (int(shape[0]), int(shape[1]))
        data, *places = (self._get(part) for part in parts)
        if any(part.ndim != 1 for part in (data, *places)) or any(
            where.dtype.kind != "i" for where in places
        ):
            raise ValueError("a sparse matrix has places that are none")
        cls = _SPARSE[format, kind]
        if format != "coo":
            built = cls((data, *places), shape=size)
            built.check_format(full_check=True)
            return built
        for where, length in zip(places, size, strict=True):
            if len(where) != len(data) or (len(where) and not 0 <= where.min() <= where.max() < length):
                raise ValueError("a sparse matrix has entries outside of it")
        return cls((data, tuple(places)), shape=size)
