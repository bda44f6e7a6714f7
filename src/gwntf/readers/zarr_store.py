"""Zarr arrays: read, or with ``lazy`` opened without reading them."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gwntf.readers.limits import NUMERIC_KINDS, RefusedError, array_bytes, check_size, choose_array
from gwntf.readers.numpy_files import read_labels
from gwntf.readers.samples import Samples, require

_CODECS = (
    "bitround, blosc, bytes, bz2, crc32, crc32c, delta, fixedscaleoffset, fletcher32, gzip, lz4, lzma, "
    "packbits, quantize, sharding_indexed, shuffle, transpose, zlib, zstd"
)
"""Codecs that turn numbers into numbers; others, such as "pickle", may run code that is stored in the file."""

_MAX_CHUNKS = 10_000
"""Chunks that any array may have; more of them need at least one stored byte each."""


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
        raise RefusedError(f"is one array without a name; leave key={key!r} out")
    X = _read_array(opened, max_bytes, lazy=lazy)
    if labels is None:
        return Samples(X)
    if labels in arrays:
        return Samples(X, _read_array(arrays[labels], max_bytes))
    return Samples(X, read_labels(Path(labels), max_bytes))


def _read_array(array: Any, max_bytes: int, *, lazy: bool = False) -> Any:
    """Check type, codecs and sizes of an array; return it, read unless `lazy`."""
    if array.dtype.kind not in NUMERIC_KINDS:
        raise RefusedError(f"has entries of type {array.dtype}, not numbers")
    unknown = sorted(set(_codec_names(array.metadata.to_dict())) - set(_CODECS.split(", ")))
    if unknown:
        raise RefusedError(f"uses the codec {unknown[0]!r}, which is not trusted; expected one of {_CODECS}")
    chunk = array_bytes(array.chunks, array.dtype.itemsize)
    if chunk > min(max_bytes, 2**31):
        raise RefusedError(f"has chunks of {array.chunks} entries, {chunk} bytes each; expected less than 2 GB")
    if lazy:
        return array
    stored = int(array.nbytes_stored())
    check_size(array_bytes(array.shape, array.dtype.itemsize), stored, max_bytes)
    # each chunk is looked up: with very many of them, reading would never end
    chunks = math.prod(-(-n // max(1, step)) for n, step in zip(array.shape, array.chunks, strict=True))
    if chunks > _MAX_CHUNKS + stored:
        raise RefusedError(
            f"declares {chunks} chunks and stores {stored} bytes: it is damaged, or its chunks are too small"
        )
    return np.asarray(array[...])


def _codec_names(metadata: Any) -> Iterator[str]:
    """Yield the names of all codecs, nested ones too: in "filters", "compressor" or "codecs", as "id" or "name"."""
    for place in ("filters", "compressor", "codecs", "index_codecs"):
        codecs = metadata.get(place) or ()
        for codec in (codecs,) if isinstance(codecs, dict) else codecs:
            yield str(codec.get("id", codec.get("name"))).removeprefix("numcodecs.")
            yield from _codec_names(codec.get("configuration") or {})
