"""Folders of PNG and JPEG images: one sample per image, in grey or colour."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.core import DataError, InputError
from gwntf.readers.limits import RefusedError, array_bytes, check_size
from gwntf.readers.samples import Samples, read_errors, require

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
_MAX_PIXELS = 2**26
_FEW_PIXELS, _PIXELS_PER_BYTE = 2**20, 10_000
"""Pixels that any image may have, and per byte of larger files; blank black-and-white pages reach 8000 per byte."""

_DEEP_MODES = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")  # modes of Pillow with more than eight bits


def read_images(folder: Path, max_bytes: int, *, size: tuple[int, int] | None = None, color: bool = False) -> Samples:
    """Read all images of a folder in natural order, or of its subfolders, whose names are then the labels."""
    require("PIL", folder)
    if size is not None and min(size) < 1:
        raise InputError("size", str(size), "a height and a width of at least 1")
    folders = [folder, *(path for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")]
    found = [path for parent in folders for path in parent.iterdir() if path.is_file() and path.name[0] != "."]
    files = sorted((path for path in found if path.suffix.lower() in FORMATS), key=_natural)
    if not files:
        raise RefusedError("is a folder without PNG or JPEG images (or subfolders of them)")
    images = None
    for index, file in enumerate(files):
        with read_errors(file):
            image = _read(file, size, color)
            if images is None:
                shape = (len(files), *image.shape)
                check_size(array_bytes(shape, image.itemsize), _MAX_PIXELS * len(files), max_bytes)
                images = np.empty(shape, image.dtype)
            elif image.shape != images.shape[1:]:
                sizes = zip((files[0], file), (images[0], image), strict=True)
                differ = " and ".join(f"{name} is {one.shape[0]}x{one.shape[1]}" for name, one in sizes)
                raise DataError(f"{differ}: use size=(height, width) (--size HxW) to resize all.")
            images = images.astype(np.float32) if image.dtype.kind == "f" else images
            images[index] = image
    in_subfolders = all(file.parent != folder for file in files)
    skipped = len(found) - len(files)
    return Samples(
        images,
        np.array([file.parent.name for file in files]) if in_subfolders else None,
        tuple(file.relative_to(folder).as_posix() for file in files),
        f"files that are not images were skipped: {skipped}" if skipped else "",
    )


def _natural(path: Path) -> list[Any]:
    """Return a sort key that puts img2 before img10."""
    parts = re.split(r"(\d+)", path.as_posix())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _read(path: Path, size: tuple[int, int] | None, color: bool) -> NDArray[Any]:
    """Decode one image after checking its number of pixels."""
    from PIL import Image, ImageOps

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Image.open(path, formats=sorted(set(FORMATS.values()))) as image:
            width, height = image.size
            most = min(_MAX_PIXELS, max(_FEW_PIXELS, _PIXELS_PER_BYTE * path.stat().st_size))
            if width * height > most:
                raise RefusedError(
                    f"has {width}x{height} pixels, more than the {most} that a file of its size may have"
                )
            image.load()
            upright = ImageOps.exif_transpose(image)
            converted = upright.convert("RGB" if color else "F" if upright.mode in _DEEP_MODES else "L")
            if size is not None:
                converted = converted.resize(size[::-1], Image.Resampling.BOX)
            return np.asarray(converted)
