"""Array files: .npy and .npz of NumPy, sparse matrices of SciPy in .npz, and zarr stores; nothing is unpickled."""

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from gwntf.readers.limits import NUMERIC_KINDS, RefusedError, array_bytes, check_size, choose_array
from gwntf.readers.samples import Samples, read_errors, require

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_SPARSE_PARTS = {"format", "data", "indices", "indptr", "shape"}
_LABEL_KINDS = NUMERIC_KINDS + "US"


def read_npy(path: Path, max_bytes: int, *, labels: str | None = None, lazy: bool = False) -> Samples:
    """Read one array, or with ``lazy`` open it as a memory map; labels are read from another .npy file."""
    X = _read_file(path, max_bytes, NUMERIC_KINDS, lazy=lazy)
    return Samples(X, None if labels is None else read_labels(Path(labels), max_bytes))


def read_labels(path: Path, max_bytes: int) -> NDArray[Any]:
    """Read labels from a separate .npy file."""
    if path.suffix.lower() != ".npy" or not path.is_file():
        raise RefusedError(f"has no named arrays, so labels ({path}) must be the path of a .npy file")
    with read_errors(path):
        return _read_file(path, max_bytes, _LABEL_KINDS)


def read_npz(path: Path, max_bytes: int, *, key: str | None = None, labels: str | None = None) -> Samples:
    """Read one array of an archive, without unpacking it to disk."""
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
        raise RefusedError(f"contains {info.filename!r} with an unsupported compression: save it with numpy.savez")
    return archive.open(info)


def _read_file(path: Path, max_bytes: int, kinds: str, *, lazy: bool = False) -> NDArray[Any]:
    with path.open("rb") as file:
        length = path.stat().st_size
        if not lazy:
            return _read_array(file, length, max_bytes, kinds)
        _check_header(file, length, kinds)
        return npy.open_memmap(path, mode="r")


def _read_array(file: IO[bytes], length: int, max_bytes: int, kinds: str, what: str = "entries") -> NDArray[Any]:
    """Read the array of a .npy file of `length` bytes, once its header and sizes have been checked."""
    check_size(_check_header(file, length, kinds, what), length, max_bytes)
    file.seek(0)
    return npy.read_array(file, allow_pickle=False)


def _check_header(file: IO[bytes], length: int, kinds: str, what: str = "entries") -> int:
    """Return the declared size of the entries in bytes; raise an error if the file is shorter."""
    shape, dtype = _read_header(file, kinds)
    needed, stored = array_bytes(shape, dtype.itemsize), length - file.tell()
    if needed > stored:
        raise RefusedError(f"declares {needed} bytes of {what} but contains {stored}: it is damaged or truncated")
    return needed


def _read_header(file: IO[bytes], kinds: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and type, which must be of one of the dtype kinds."""
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise RefusedError(f"has .npy version {version}, which is for structured arrays; expected an array of numbers")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise RefusedError("contains Python objects, which are not unpickled: save an array of numbers")
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


_CODECS = (
    "bitround, blosc, bytes, bz2, crc32, crc32c, delta, fixedscaleoffset, fletcher32, gzip, lz4, lzma, "
    "packbits, quantize, sharding_indexed, shuffle, transpose, zlib, zstd"
)
"""Codecs of numeric data; others, such as "pickle", could execute code in the file."""

_MAX_CHUNKS = 10_000  # chunks that are always allowed; more chunks need at least one stored byte each


def read_zarr(
    path: Path, max_bytes: int, *, key: str | None = None, labels: str | None = None, lazy: bool = False
) -> Samples:
    """Read one array of a store, or with ``lazy`` open it."""
    require("zarr", path)
    import zarr

    opened: Any = zarr.open(path, mode="r")
    arrays: dict[str, Any] = {}
    if isinstance(opened, zarr.Group):
        arrays = dict(opened.arrays())
        opened = arrays[choose_array({name: array.shape for name, array in arrays.items()}, key, labels)]
    elif key is not None:
        raise RefusedError(f"is a single array without a name: omit key={key!r}")
    X = _read_zarr_array(opened, max_bytes, lazy=lazy)
    if labels is None:
        return Samples(X)
    if labels in arrays:
        return Samples(X, _read_zarr_array(arrays[labels], max_bytes))
    return Samples(X, read_labels(Path(labels), max_bytes))


def _read_zarr_array(array: Any, max_bytes: int, *, lazy: bool = False) -> Any:
    """Check type, codecs and sizes of an array; return it, read unless `lazy`."""
    if array.dtype.kind not in NUMERIC_KINDS:
        raise RefusedError(f"has entries of type {array.dtype}, not numbers")
    unknown = sorted(set(_codec_names(array.metadata.to_dict())) - set(_CODECS.split(", ")))
    if unknown:
        raise RefusedError(f"uses the codec {unknown[0]!r}, which is not allowed; expected one of {_CODECS}")
    chunk = array_bytes(array.chunks, array.dtype.itemsize)
    if chunk > min(max_bytes, 2**31):
        raise RefusedError(f"has chunks of {array.chunks} entries, {chunk} bytes each; expected at most 2 GB")
    if lazy:
        return array
    stored = int(array.nbytes_stored())
    check_size(array_bytes(array.shape, array.dtype.itemsize), stored, max_bytes)
    # every chunk is looked up, which would take forever for very many of them
    chunks = math.prod(-(-n // max(1, step)) for n, step in zip(array.shape, array.chunks, strict=True))
    if chunks > _MAX_CHUNKS + stored:
        raise RefusedError(
            f"declares {chunks} chunks but stores {stored} bytes: it is damaged, or its chunks are too small"
        )
    return np.asarray(array[...])


def _codec_names(metadata: Any) -> Iterator[str]:
    """Yield the names of all codecs, nested ones too: in "filters", "compressor" or "codecs", as "id" or "name"."""
    for field in ("filters", "compressor", "codecs", "index_codecs"):
        codecs = metadata.get(field) or ()
        for codec in (codecs,) if isinstance(codecs, dict) else codecs:
            yield str(codec.get("id", codec.get("name"))).removeprefix("numcodecs.")
            yield from _codec_names(codec.get("configuration") or {})
