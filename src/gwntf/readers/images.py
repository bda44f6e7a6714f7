"""A folder of PNG and JPEG images: one sample each, grey or in colour."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.core import DataError
from gwntf.readers.apart import RefusedError, check_size, count_bytes
from gwntf.readers.samples import Samples, Wanted, reading, require

SUFFIXES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
MOST_PIXELS = 2**26
"""Of one image."""

_FEW_PIXELS, _PER_BYTE = 2**20, 10_000
"""Pixels that any image may have, and for each byte of its file; blank pages in black and white reach 8000."""

_DEEP = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")
"""Pillow's modes of more than eight bits."""


def read_images(folder: Path, wanted: Wanted) -> Samples:
    """Read all images of a folder, or of its subfolders, whose names are then the labels.

    They come in the order of their names, numbers in names counted as numbers.
    """
    require("PIL", folder)
    files, left_out = _list(folder)
    if not files:
        raise RefusedError("is a folder without PNG or JPEG images (or subfolders of them)")
    images = None
    for place, file in enumerate(files):
        with reading(file):
            image = _read(file, wanted)
            if images is None:
                shape = (len(files), *image.shape)
                check_size(count_bytes(shape, image.itemsize), MOST_PIXELS * len(files), wanted.max_bytes)
                images = np.empty(shape, image.dtype)
            elif image.shape != images.shape[1:]:
                sizes = [
                    f"{name} is {one[0]}x{one[1]}"
                    for name, one in ((files[0], images[0].shape), (file, image.shape))
                ]
                raise DataError(f"{sizes[0]} and {sizes[1]}: give size=(H, W) (--size HxW) to resize all.")
            images = images.astype(np.float32) if image.dtype.kind == "f" else images
            images[place] = image
    labels = None
    if all(file.parent != folder for file in files):
        labels = np.array([file.parent.name for file in files])
    note = f"{left_out} other files were left out" if left_out else ""
    names = tuple(file.relative_to(folder).as_posix() for file in files)
    return Samples(images, labels, names, note)


def _list(folder: Path) -> tuple[list[Path], int]:
    """Images of the folder and of its subfolders in order, and how many other files lie there."""
    subfolders = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    found = [path for place in (folder, *subfolders) for path in place.iterdir() if path.is_file()]
    seen = [path for path in found if not path.name.startswith(".")]
    images = [path for path in seen if path.suffix.lower() in SUFFIXES]
    return sorted(images, key=_natural), len(seen) - len(images)


def _natural(path: Path) -> list[Any]:
    """Sort img2 before img10."""
    parts = re.split(r"(\d+)", path.as_posix())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _read(path: Path, wanted: Wanted) -> NDArray[Any]:
    """Decode one image, once its size is known to be sensible."""
    from PIL import Image, ImageOps

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Image.open(path, formats=sorted(set(SUFFIXES.values()))) as image:
            width, height = image.size
            most = min(MOST_PIXELS, max(_FEW_PIXELS, _PER_BYTE * path.stat().st_size))
            if width * height > most:
                raise RefusedError(
                    f"has {width}x{height} pixels, more than the {most} that a file of its size may have"
                )
            image.load()
            upright = ImageOps.exif_transpose(image)
            mode = "RGB" if wanted.color else "F" if upright.mode in _DEEP else "L"
            plain = upright.convert(mode)
            if wanted.size is not None:
                plain = plain.resize(wanted.size[::-1], Image.Resampling.BOX)
            return np.asarray(plain)
