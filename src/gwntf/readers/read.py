"""Which reader reads what."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gwntf.core import DataError, InputError
from gwntf.data import check_sample_shape
from gwntf.readers.apart import NUMBERS, RefusedError
from gwntf.readers.images import SUFFIXES, read_images
from gwntf.readers.matlab import read_hdf5, read_mat
from gwntf.readers.numpy_files import read_npy, read_npz
from gwntf.readers.samples import Samples, Wanted, as_labels, reading
from gwntf.readers.tables import read_csv, read_parquet
from gwntf.readers.zarr_store import read_zarr


@dataclass(frozen=True)
class Format:
    """A reader, and which arguments beyond the path have a meaning for it."""

    read: Callable[[Path, Wanted], Samples]
    takes: frozenset[str]


_NAMED = frozenset({"key", "labels"})
_FOLDER = Format(read_images, frozenset({"size", "color"}))
FORMATS: dict[str, Format] = {
    ".npy": Format(read_npy, frozenset({"labels", "lazy"})),
    ".npz": Format(read_npz, _NAMED),
    ".mat": Format(read_mat, _NAMED),
    ".h5": Format(read_hdf5, _NAMED),
    ".hdf5": Format(read_hdf5, _NAMED),
    ".csv": Format(read_csv, frozenset({"labels"})),
    ".parquet": Format(read_parquet, frozenset({"labels"})),
    ".zarr": Format(read_zarr, _NAMED | {"lazy"}),
}
"""Formats by the ending of a path; any other folder is one of images."""


def read_data(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    labels: str | None = None,
    sample_shape: tuple[int, ...] | None = None,
    sample_axis: int = 0,
    size: tuple[int, int] | None = None,
    color: bool = False,
    lazy: bool = False,
    max_bytes: int | None = None,
) -> Samples:
    """Read samples from a file or a folder of images.

    Nothing in a file is unpickled, evaluated, unpacked to disk or followed to other files, and no array is allocated
    that its file cannot hold. Whatever is wrong with a file is a `DataError` that names it.

    Parameters
    ----------
    path : path
        .npy, .npz, .mat (all versions), .h5, .csv, .parquet, .zarr, or a folder of PNG and JPEG images.
    key : str, optional
        Which array of a .npz, .mat, .h5 or .zarr file; needed where there are several of two or more axes.
    labels : str, optional
        Where the class of each sample is: a column of .csv or .parquet (without a header its number, from 0), an
        array of .npz, .mat, .h5 or .zarr, a .npy file beside a .npy or .zarr one. Of a folder with subfolders the
        labels are always the names of these.
    sample_shape : tuple of int, optional
        Shape into which each row of a 2-D array is folded: (32, 32) for images of 1024 columns. Rows of a .mat file
        are folded column by column, as MATLAB does.
    sample_axis : int, default=0
        Axis of the array that counts the samples, before any folding.
    size : (height, width), optional
        To which images are resized; without it all must have one size.
    color : bool, default=False
        Whether images keep red, green and blue, as one more axis.
    lazy : bool, default=False
        Whether to open a .npy file as a memory map, a .zarr file as a zarr array, without reading the entries.
    max_bytes : int, optional
        Memory that an array may take; by default half of the machine's.

    Returns
    -------
    Samples
        With `X`, `labels`, `names` and `note`.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib
    >>> from gwntf import read_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "images.npz"
    ...     np.savez(file, images=np.ones((5, 12)), classes=np.arange(5))
    ...     data = read_data(file, labels="classes", sample_shape=(3, 4))
    >>> data.X.shape, data.labels
    ((5, 3, 4), array([0, 1, 2, 3, 4]))
    """
    place = Path(path)
    chosen = _format(place)
    wanted = Wanted(key, labels, size, color, lazy, default_memory() if max_bytes is None else max_bytes)
    _check_arguments(place, chosen, wanted)
    with reading(place):
        samples = chosen.read(place, wanted)
        X = _turned(samples.X, sample_axis, lazy=lazy)
        known = samples.labels
        if known is not None:
            known = as_labels(known, X.shape[0], labels or "subfolders")
    if sample_shape is not None:
        X = _folded(X, tuple(sample_shape), column_major=place.suffix.lower() == ".mat", lazy=lazy)
    return replace(samples, X=X, labels=known)


def default_memory() -> int:
    """Half of the machine's memory; 4 GB where it cannot be told."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 2**32


def _format(path: Path) -> Format:
    """Choose the reader, or say what is missing."""
    if not path.exists():
        raise DataError(f"{path} does not exist.")
    chosen = FORMATS.get(path.suffix.lower())
    if path.is_dir() and (chosen is None or path.suffix.lower() != ".zarr"):
        return _FOLDER
    if chosen is None:
        hint = (
            "put images into a folder and give its path" if path.suffix.lower() in SUFFIXES else "convert it"
        )
        raise DataError(f"{path} is of no format that is read ({', '.join(FORMATS)}, a folder): {hint}.")
    return chosen


def _check_arguments(path: Path, chosen: Format, wanted: Wanted) -> None:
    """Refuse what has no meaning for the format, rather than leave it unheard."""
    given = {
        "key": wanted.key is not None,
        "labels": wanted.labels is not None,
        "size": wanted.size is not None,
        "color": wanted.color,
        "lazy": wanted.lazy,
    }
    for name, set_by_user in given.items():
        if set_by_user and name not in chosen.takes:
            takes = ", ".join(sorted(chosen.takes))
            raise InputError(name, repr(getattr(wanted, name)), f"nothing for {path}, which takes {takes}")
    if wanted.size is not None and min(wanted.size) < 1:
        raise InputError("size", str(wanted.size), "a height and a width of at least 1")
    if wanted.max_bytes < 1:
        raise InputError("max_bytes", str(wanted.max_bytes), "at least 1")


def _turned(X: Any, axis: int, *, lazy: bool) -> Any:
    """Bring the samples to the first axis and numbers into the machine's byte order."""
    order = len(X.shape)
    if not -order <= axis < order:
        raise InputError("sample_axis", str(axis), f"an axis of the array of shape {X.shape}")
    if axis % order and lazy:
        raise InputError("sample_axis", str(axis), "0 with lazy=True")
    if lazy:
        return X
    if axis % order:
        X = X.T if hasattr(X, "tocsr") else np.moveaxis(X, axis, 0)
    if hasattr(X, "tocsr"):
        return X.tocsr()
    if X.dtype.kind not in NUMBERS:
        raise RefusedError(f"holds entries of type {X.dtype}, not numbers")
    return np.ascontiguousarray(X, dtype=X.dtype.newbyteorder("="))


def _folded(X: Any, shape: tuple[int, ...], *, column_major: bool, lazy: bool) -> Any:
    """Fold rows; MATLAB counts down the columns of an image."""
    if lazy or hasattr(X, "tocsr"):
        given = f"{shape} for data that are {'not read' if lazy else 'sparse'}"
        raise InputError("sample_shape", given, "None: give it to the estimator")
    folded = X.reshape(len(X), *check_sample_shape(shape[::-1] if column_major else shape, X.shape))
    if not column_major:
        return folded
    return np.ascontiguousarray(folded.transpose(0, *range(folded.ndim - 1, 0, -1)))
