"""Zarr arrays: read whole, or handed on unread."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gwntf.readers.apart import NUMBERS, RefusedError, check_size, choose, count_bytes
from gwntf.readers.numpy_files import read_labels
from gwntf.readers.samples import Samples, Wanted, require

_CODECS = {
    *(
        "bitround",
        "blosc",
        "bytes",
        "bz2",
        "crc32",
        "crc32c",
        "delta",
        "fixedscaleoffset",
        "fletcher32",
        "gzip",
    ),
    *("lz4", "lzma", "packbits", "quantize", "sharding_indexed", "shuffle", "transpose", "zlib", "zstd"),
}
"""Codecs that make numbers of numbers; others, such as "pickle", may run what lies in the file."""

_PIECES = 10_000
"""Chunks that any array may have; more of them need a byte each that is stored."""


def read_zarr(path: Path, wanted: Wanted) -> Samples:
    """Read one array of a store, or with ``lazy`` open it."""
    require("zarr", path)
    import zarr

    opened: Any = zarr.open(path, mode="r")
    arrays = dict(opened.arrays()) if isinstance(opened, zarr.Group) else {}
    if arrays or isinstance(opened, zarr.Group):
        array = arrays[choose({name: one.shape for name, one in arrays.items()}, wanted.key, wanted.labels)]
    elif wanted.key is not None:
        raise RefusedError(f"is one array without a name; leave key={wanted.key!r} out")
    else:
        array = opened
    X = _checked(array, wanted, lazy=wanted.lazy)
    if wanted.labels is None:
        return Samples(X)
    if wanted.labels in arrays:
        return Samples(X, _checked(arrays[wanted.labels], wanted))
    return Samples(X, read_labels(Path(wanted.labels), wanted.max_bytes))


def _checked(array: Any, wanted: Wanted, *, lazy: bool = False) -> Any:
    """Check type, codecs and sizes of an array; return it, read unless `lazy`."""
    if array.dtype.kind not in NUMBERS:
        raise RefusedError(f"holds entries of type {array.dtype}, not numbers")
    unknown = sorted(set(_codec_names(array.metadata.to_dict())) - _CODECS)
    if unknown:
        raise RefusedError(
            f"uses the codec {unknown[0]!r}, which is not trusted; expected one of {sorted(_CODECS)}"
        )
    piece = count_bytes(array.chunks, array.dtype.itemsize)
    if piece > min(wanted.max_bytes, 2**31):
        raise RefusedError(
            f"has chunks of {array.chunks} entries, {piece} bytes each; expected less than 2 GB"
        )
    if lazy:
        return array
    stored = int(array.nbytes_stored())
    check_size(count_bytes(array.shape, array.dtype.itemsize), stored, wanted.max_bytes)
    _check_pieces(array.shape, array.chunks, stored)
    return np.asarray(array[...])


def _check_pieces(shape: tuple[int, ...], chunks: tuple[int, ...], stored: int) -> None:
    """Refuse far more chunks than are stored: each is looked for, which would take for ever."""
    pieces = math.prod(-(-length // max(1, piece)) for length, piece in zip(shape, chunks, strict=True))
    if pieces > _PIECES + stored:
        raise RefusedError(
            f"declares {pieces} chunks and stores {stored} bytes: it is damaged, or its chunks too small"
        )


def _codec_names(metadata: Any) -> Iterator[str]:
    """Names of all codecs, however deep they lie: in "filters", "compressor" or "codecs", as "id" or "name"."""
    for place in ("filters", "compressor", "codecs", "index_codecs"):
        held = metadata.get(place) or ()
        for codec in (held,) if isinstance(held, dict) else held:
            name = str(codec.get("id", codec.get("name")))
            yield name.removeprefix("numcodecs.")
            yield from _codec_names(codec.get("configuration") or {})
