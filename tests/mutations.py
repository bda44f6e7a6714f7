"""Damaged files: edits of valid ones, with corrected checksums so that the damaged parts are read."""

from __future__ import annotations

import hashlib
import io
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gwntf import NMF, GwntfError, TensorClustering, load, read_data
from tests.data_files import WRITERS, X

MEMORY = 2**28
NUMBERS = (
    b"0",
    b"-1",
    b"65536",
    b"4294967295",
    b"1000000000000000",
    b"9" * 30,
    b"1e400",
    b"[]",
    b'"x"',
    b"null",
)
WORDS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)

Edit = tuple[int, float, int]
"""Kind, position as a share of the file, and a number that determines the new content."""


def apply(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Damage a file."""
    damaged = bytearray(data)
    for kind, share, value in edits:
        KINDS[kind % len(KINDS)](damaged, int(share * len(damaged)), value)
    return bytes(damaged)


def draw_edits(rng: random.Random) -> list[Edit]:
    """Draw edits for `apply`, more of them near the beginning, where headers are."""
    count = rng.choice((1, 1, 1, 2, 3, 6))
    return [(rng.randrange(60), rng.random() ** rng.choice((1, 3)), rng.randrange(2**32)) for _ in range(count)]


def _flip(data: bytearray, place: int, value: int) -> None:
    if data:
        data[min(place, len(data) - 1)] ^= 1 << value % 8


def _set(data: bytearray, place: int, value: int) -> None:
    data[place : place + 1] = bytes([value % 256])


def _word(data: bytearray, place: int, value: int) -> None:
    width = (2, 4, 4, 8)[value % 4]
    place -= place % (4 if value % 2 else 1)
    number = WORDS[value // 4 % len(WORDS)] % 2 ** (8 * width)
    data[place : place + width] = number.to_bytes(width, "big" if value % 5 == 0 else "little")


def _number(data: bytearray, place: int, value: int) -> None:
    """Replace a number in decimal digits by another."""
    found = list(re.finditer(rb"\d+", bytes(data[place : place + 400])))
    if found:
        one = found[value % min(4, len(found))]
        data[place + one.start() : place + one.end()] = NUMBERS[value // 4 % len(NUMBERS)]


def _cut(data: bytearray, place: int, value: int) -> None:
    del data[place : place + 1 + value % 64]


def _end(data: bytearray, place: int, value: int) -> None:
    del data[place:]


def _insert(data: bytearray, place: int, value: int) -> None:
    data[place:place] = value.to_bytes(4, "little") * (1 + value % 8)


def _repeat(data: bytearray, place: int, value: int) -> None:
    data[place:place] = data[place : place + 1 + value % 128]


KINDS: tuple[Callable[[bytearray, int, int], None], ...] = (
    *(_flip, _flip, _set, _word, _word, _word, _number, _number, _cut, _end, _insert, _repeat),
)


# --- correcting checksums ----------------------------------------------------------------------------------


def png_checksums(data: bytes) -> bytes:
    fixed, place = bytearray(data), 8
    while place + 12 <= len(fixed):
        length = struct.unpack(">I", fixed[place : place + 4])[0]
        end = place + 8 + length
        if end + 4 > len(fixed):
            break
        fixed[end : end + 4] = struct.pack(">I", zlib.crc32(bytes(fixed[place + 4 : end])))
        place = end + 4
    return bytes(fixed)


def as_archive(data: bytes) -> bytes:
    """Put a damaged .npy into an intact archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("X.npy", data)
    return file.getvalue()


def model_checksum(data: bytes) -> bytes:
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


# --- what is read ------------------------------------------------------------------------------------------


@dataclass
class Target:
    """A valid file, or a folder of files of which one is damaged at a time, and its reader.

    Attributes
    ----------
    write : callable
        Writes it into a folder and returns its path.
    options : dict
        For `read_data`.
    repair : callable
        Applied to damaged bytes.
    read : callable
        Reads the path.
    """

    write: Callable[[Path], Path]
    options: dict[str, Any] = field(default_factory=dict)
    repair: Callable[[bytes], bytes] = bytes
    seed: Callable[[bytes], bytes] = bytes

    def read(self, path: Path) -> str:
        """Read a damaged file; errors that are not of the library are not caught."""
        try:
            if path.suffix == ".gwntf":
                found = load(path)
                model = getattr(found, "model_", found)  # of a clusterer
                model.inverse_transform(np.ones((1, model.embedding_.shape[1])))
                return "read"
            found = read_data(path, **self.options, max_bytes=MEMORY).X
        except GwntfError as error:
            return type(error).__name__
        if found.dtype.kind not in "fiub" or len(found.shape) < 1:
            raise AssertionError(f"invalid data were read: {found!r}")
        return "read"


def write_model(folder: Path) -> Path:
    path = folder / "m.gwntf"
    NMF(2, max_iter=3, tol=0, engine="numpy", random_state=0).fit(X).save(path)
    return path


def write_clusterer(folder: Path) -> Path:
    path = folder / "c.gwntf"
    TensorClustering(2, max_iter=2, engine="numpy", random_state=0).fit(X).save(path)
    return path


def _inner(_: bytes) -> bytes:
    file = io.BytesIO()
    np.save(file, X)
    return file.getvalue()


LABELLED = {"labels": "y"}
TABLE = {"id_column": "id", "label_column": "y"}
TARGETS: dict[str, Target] = {
    "npy": Target(WRITERS["npy"]),
    "npy-lazy": Target(WRITERS["npy"], {"lazy": True}),
    "npz": Target(WRITERS["npz"], LABELLED),
    "npz-inner": Target(WRITERS["npz"], {}, as_archive, _inner),
    "sparse": Target(WRITERS["sparse"]),
    "csv": Target(WRITERS["csv"], TABLE),
    "parquet": Target(WRITERS["parquet"], TABLE),
    "zarr": Target(WRITERS["zarr"], LABELLED),
    "zarr2": Target(WRITERS["zarr2"], LABELLED),
    "png": Target(WRITERS["png"]),
    "png-inner": Target(WRITERS["png"], {"size": (3, 4)}, png_checksums),
    "jpg": Target(WRITERS["jpg"], {"color": True}),
    "model": Target(write_model),
    "model-inner": Target(write_model, {}, model_checksum),
    "clusterer-inner": Target(write_clusterer, {}, model_checksum),
}
ISOLATED: dict[str, Target] = {
    "mat": Target(WRITERS["mat"], LABELLED),
    "mat-sparse": Target(WRITERS["mat-sparse"]),
    "mat73": Target(WRITERS["mat73"], LABELLED),
    "h5": Target(WRITERS["h5"], LABELLED),
}
"""Read in a child process, because their libraries crash."""


@dataclass(frozen=True)
class Seed:
    """A written target: its path, and the files in it that are damaged."""

    target: Target
    path: Path
    files: tuple[tuple[Path, bytes], ...]

    @classmethod
    def written(cls, target: Target, folder: Path) -> Seed:
        path = target.write(folder)
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        return cls(target, path, tuple((file, target.seed(file.read_bytes())) for file in files))

    def try_edits(self, which: int, edits: Sequence[Edit]) -> str:
        """Damage one file, read it, and restore it."""
        file, whole = self.files[which % len(self.files)]
        file.write_bytes(self.target.repair(apply(whole, edits)))
        outcome = self.target.read(self.path)
        if len(self.files) > 1:
            file.write_bytes(whole)
        return outcome
