"""NumPy's .npy and .npz files, and SciPy's sparse matrices in .npz files; nothing in them is ever unpickled."""

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from gwntf.readers.limits import NUMERIC_KINDS, RefusedError, array_bytes, check_size, choose_array
from gwntf.readers.samples import Samples, read_errors

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_SPARSE_PARTS = {"format", "data", "indices", "indptr", "shape"}
_LABEL_KINDS = NUMERIC_KINDS + "US"


def read_npy(path: Path, max_bytes: int, *, labels: str | None = None, lazy: bool = False) -> Samples:
    """Read one array, or with ``lazy`` open it as a memory map; labels come from another .npy file."""
    X = _read_file(path, max_bytes, NUMERIC_KINDS, lazy=lazy)
    return Samples(X, None if labels is None else read_labels(Path(labels), max_bytes))


def read_labels(path: Path, max_bytes: int) -> NDArray[Any]:
    """Read labels from a .npy file beside the data."""
    if path.suffix.lower() != ".npy" or not path.is_file():
        raise RefusedError(f"has no columns or names, so labels ({path}) must be the path of a .npy file")
    with read_errors(path):
        return _read_file(path, max_bytes, _LABEL_KINDS)


def read_npz(path: Path, max_bytes: int, *, key: str | None = None, labels: str | None = None) -> Samples:
    """Read one array of an archive, which is never unpacked to disk."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename[:-4]: info for info in archive.infolist() if info.filename.endswith(".npy")}

        def read(name: str) -> NDArray[Any]:
            info = members[name]
            check_size(info.file_size, min(info.compress_size, path.stat().st_size), max_bytes)
            with _open_member(archive, info) as file:
                return _read_array(file, info.file_size, max_bytes, _LABEL_KINDS, repr(info.filename))

        shapes = {}
        for name, info in members.items():
            with _open_member(archive, info) as file:
                shapes[name] = _read_header(file, _LABEL_KINDS)[0]
        if set(shapes) >= _SPARSE_PARTS and key is None:
            X = _sparse({name: read(name) for name in _SPARSE_PARTS})
        else:
            X = read(choose_array(shapes, key, labels))
        if labels is not None and labels not in members:
            raise RefusedError(f"has no array {labels!r}")
        return Samples(X, None if labels is None else read(labels))


def _open_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise RefusedError(f"contains {info.filename!r} in a compression that NumPy does not write")
    return archive.open(info)


def _read_file(path: Path, max_bytes: int, kinds: str, *, lazy: bool = False) -> NDArray[Any]:
    with path.open("rb") as file:
        length = path.stat().st_size
        if not lazy:
            return _read_array(file, length, max_bytes, kinds)
        _check_header(file, length, kinds)
        mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return mapped


def _read_array(file: IO[bytes], length: int, max_bytes: int, kinds: str, what: str = "entries") -> NDArray[Any]:
    """Read the array of a .npy file of `length` bytes, once its header and sizes have been checked."""
    check_size(_check_header(file, length, kinds, what), length, max_bytes)
    file.seek(0)
    array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    return array


def _check_header(file: IO[bytes], length: int, kinds: str, what: str = "entries") -> int:
    """Return the bytes of the entries that the header declares; the file must contain as many."""
    shape, dtype = _read_header(file, kinds)
    needed, stored = array_bytes(shape, dtype.itemsize), length - file.tell()
    if needed > stored:
        raise RefusedError(f"declares {needed} bytes of {what} and contains {stored}: it is damaged or truncated")
    return needed


def _read_header(file: IO[bytes], kinds: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and type, which must be of one of the dtype kinds."""
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise RefusedError(f"has .npy version {version}, which is for records; expected an array of numbers")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise RefusedError("contains Python objects, which are never unpickled: save an array of numbers")
    if dtype.kind not in kinds or dtype.itemsize == 0:
        raise RefusedError(f"has entries of type {dtype}, not numbers")
    return tuple(shape), dtype


def _sparse(parts: dict[str, NDArray[Any]]) -> Any:
    """Return the sparse matrix that `scipy.sparse.save_npz` wrote."""
    from scipy.sparse import csc_array, csr_array

    name = parts["format"].item()
    kinds = {b"csr": csr_array, b"csc": csc_array, "csr": csr_array, "csc": csc_array}
    if name not in kinds:
        raise RefusedError(f"contains a sparse matrix of format {name!r}; expected csr or csc")
    return build_sparse(kinds[name], parts)


def build_sparse(kind: Any, parts: dict[str, NDArray[Any]]) -> Any:
    """Return a CSR array built from parts in a file, after all its indices have been checked."""
    from scipy.sparse import csr_array

    shape = tuple(int(length) for length in parts["shape"])
    allowed = max(1000 * sum(part.nbytes for part in parts.values()), 2**30)
    check_size(array_bytes((sum(shape),), 8), 0, allowed)
    matrix = kind((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
    matrix.check_format(full_check=True)
    return csr_array(matrix)
