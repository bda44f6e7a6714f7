"""NumPy's .npy and .npz files, and SciPy's sparse matrices in .npz files; nothing in them is ever unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from gwntf.readers.apart import NUMBERS, RefusedError, check_size, choose, count_bytes
from gwntf.readers.samples import Samples, Wanted, reading

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_SPARSE = {"format", "data", "indices", "indptr", "shape"}


def read_npy(path: Path, wanted: Wanted) -> Samples:
    """Read, or with ``lazy`` map, one array; labels come from a .npy file of their own."""
    X = _whole_file(path, wanted.max_bytes, lazy=wanted.lazy)
    if wanted.labels is None:
        return Samples(X)
    return Samples(X, read_labels(Path(wanted.labels), wanted.max_bytes))


def read_labels(path: Path, max_bytes: int) -> NDArray[Any]:
    """Read labels from a .npy file beside data that have no names for their arrays."""
    if path.suffix.lower() != ".npy" or not path.is_file():
        raise RefusedError(f"has no columns or names, so labels ({path}) must be the path of a .npy file")
    with reading(path):
        return _whole_file(path, max_bytes, kinds=NUMBERS + "US")


def read_npz(path: Path, wanted: Wanted) -> Samples:
    """Read one array of an archive, which is never unpacked to disk."""
    with zipfile.ZipFile(path) as archive:
        members = _members(archive)
        shapes = {name: _declared(archive, info) for name, info in members.items()}
        if set(shapes) >= _SPARSE and wanted.key is None:
            X = _sparse({name: _member(archive, members[name], path, wanted) for name in _SPARSE})
        else:
            key = choose(shapes, wanted.key, wanted.labels)
            X = _member(archive, members[key], path, wanted)
        if wanted.labels is None:
            return Samples(X)
        if wanted.labels not in members:
            raise RefusedError(f"has no array {wanted.labels!r}")
        return Samples(X, _member(archive, members[wanted.labels], path, wanted))


def _whole_file(path: Path, max_bytes: int, *, lazy: bool = False, kinds: str = NUMBERS) -> NDArray[Any]:
    with path.open("rb") as file:
        shape, dtype = _header(file, kinds)
        needed = count_bytes(shape, dtype.itemsize)
        held = path.stat().st_size - file.tell()
        if needed > held:
            raise RefusedError(
                f"declares {needed} bytes of entries and holds {held}: it is damaged or was cut off"
            )
        if lazy:
            mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
            return mapped
        check_size(needed, held, max_bytes)
        file.seek(0)
        array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
        return array


def _header(file: IO[bytes], kinds: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read shape and type; only numbers, or what labels are made of, go on."""
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise RefusedError(f"has .npy version {version}, which is for records; expected an array of numbers")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise RefusedError("holds Python objects, which are never unpickled: save an array of numbers")
    if dtype.kind not in kinds or dtype.itemsize == 0:
        raise RefusedError(f"holds entries of type {dtype}, not numbers")
    return tuple(shape), dtype


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    return {info.filename[:-4]: info for info in archive.infolist() if info.filename.endswith(".npy")}


def _declared(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[int, ...]:
    """Shape that a member declares."""
    with _opened(archive, info) as file:
        return _header(file, NUMBERS + "US")[0]


def _opened(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise RefusedError(f"holds {info.filename!r} in a compression that NumPy does not write")
    return archive.open(info)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, wanted: Wanted) -> NDArray[Any]:
    """Read one array, once its header, its length in the archive and the size of the file agree."""
    stored = min(info.compress_size, path.stat().st_size)
    check_size(info.file_size, stored, wanted.max_bytes)
    with _opened(archive, info) as file:
        shape, dtype = _header(file, NUMBERS + "US")
        needed, held = count_bytes(shape, dtype.itemsize), info.file_size - file.tell()
        if needed > held:
            raise RefusedError(
                f"declares {needed} bytes for {info.filename!r} and holds {held}: it is damaged"
            )
        file.seek(0)
        array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
        return array


def _sparse(parts: dict[str, NDArray[Any]]) -> Any:
    """Put together what `scipy.sparse.save_npz` wrote."""
    from scipy.sparse import csc_array, csr_array

    name = parts["format"].item()
    kinds = {b"csr": csr_array, b"csc": csc_array, "csr": csr_array, "csc": csc_array}
    if name not in kinds:
        raise RefusedError(f"holds a sparse matrix of format {name!r}; expected csr or csc")
    return build_sparse(kinds[name], parts)


def build_sparse(kind: Any, parts: dict[str, NDArray[Any]]) -> Any:
    """Return a CSR array of parts from a file, all of whose indices are checked first."""
    from scipy.sparse import csr_array

    shape = tuple(int(length) for length in parts["shape"])
    check_size(
        count_bytes((sum(shape),), 8), 0, max(1000 * sum(part.nbytes for part in parts.values()), 2**30)
    )
    matrix = kind((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
    matrix.check_format(full_check=True)
    return csr_array(matrix)
