"""The table of formats, and `read_data`, which chooses the reader."""

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gwntf.core import DataError, InputError
from gwntf.data import check_sample_shape
from gwntf.readers import images
from gwntf.readers.arrays import read_npy, read_npz, read_zarr
from gwntf.readers.limits import NUMERIC_KINDS, RefusedError
from gwntf.readers.matlab import read_hdf5, read_mat
from gwntf.readers.samples import Samples, as_labels, read_errors
from gwntf.readers.tables import Column, read_csv, read_parquet

FORMATS: dict[str, Callable[..., Samples]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".mat": read_mat,
    ".h5": read_hdf5,
    ".hdf5": read_hdf5,
    ".csv": read_csv,
    ".parquet": read_parquet,
    ".zarr": read_zarr,
}
"""Readers by suffix; each takes a path, the maximum size of an array in bytes, and its options of `read_data`."""


def read_data(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    labels: str | None = None,
    id_column: Column | None = None,
    label_column: Column | None = None,
    columns: Column | Sequence[Column] | None = None,
    sample_shape: tuple[int, ...] | None = None,
    sample_axis: int = 0,
    size: tuple[int, int] | None = None,
    color: bool = False,
    lazy: bool = False,
    max_bytes: int | None = None,
) -> Samples:
    """Read samples from a file or a folder of images.

    Files are not trusted: nothing is unpickled, executed or unpacked to disk, links to other files are not followed,
    and declared sizes are checked before memory is allocated. An invalid file raises a `DataError` that names it.

    Parameters
    ----------
    path : path
        .npy, .npz, .mat (all versions), .h5, .csv, .parquet, .zarr, or a folder of PNG and JPEG images.
    key : str, optional
        Name of the array in a .npz, .mat, .h5 or .zarr file; required if several have two or more axes.
    labels : str, optional
        Class of each sample: the name of an array in a .npz, .mat, .h5 or .zarr file, or the path of a .npy file for a
        .npy or .zarr file. The labels of images in subfolders are always the names of the subfolders.
    id_column, label_column : str or int, optional
        Columns of a .csv or .parquet file with an identifier and with the class of each sample: a name, or a
        position from 0 (-1 is the last). The identifiers become the `names` of the samples.
    columns : str, int or sequence of them, optional
        Data columns of a .csv or .parquet file by name or position; "h00:h31" is all columns from h00 to h31. By
        default all columns except those of identifiers and labels.
    sample_shape : tuple of int, optional
        Shape into which each row of a 2-D array is folded: (32, 32) for images of 1024 columns. Rows of a .mat file
        are folded column by column, as MATLAB does.
    sample_axis : int, default=0
        Axis of the array that counts the samples, before any folding.
    size : (height, width), optional
        Size to which images are resized; by default all must have the same size.
    color : bool, default=False
        Whether images keep red, green and blue as a last axis.
    lazy : bool, default=False
        Whether to open a .npy file as a memory map, or a .zarr file as a zarr array, without reading the entries.
    max_bytes : int, optional
        Maximum memory of an array in bytes; by default half of the memory of the machine.

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
    source, suffix = Path(path), Path(path).suffix.lower()
    if not source.exists():
        raise DataError(f"{source} does not exist.")
    is_folder = source.is_dir() and suffix != ".zarr"
    if not is_folder and suffix not in FORMATS:
        hint = "put images into a folder and give its path" if suffix in images.FORMATS else "convert it"
        raise DataError(f"{source} has an unknown format; expected {', '.join(FORMATS)} or a folder: {hint}.")
    reader: Callable[..., Samples] = images.read_images if is_folder else FORMATS[suffix]
    options: dict[str, Any] = {"key": key, "labels": labels, "size": size, "color": color or None, "lazy": lazy or None}
    options |= {"id_column": id_column, "label_column": label_column, "columns": columns}
    given = {name: value for name, value in options.items() if value is not None}
    accepted = [name for name in options if name in inspect.signature(reader).parameters]
    for name, value in given.items():
        if name not in accepted:
            raise InputError(name, repr(value), f"the default: options for {source} are {', '.join(accepted)}")
    limit = default_memory() if max_bytes is None else max_bytes
    if limit < 1:
        raise InputError("max_bytes", str(limit), "at least 1")
    with read_errors(source):
        samples = reader(source, limit, **given)
        X = _samples_first(samples.X, sample_axis, lazy=lazy)
        moved = sample_axis % len(samples.X.shape) != 0
        if moved and (id_column is not None or label_column is not None):
            raise InputError("sample_axis", str(sample_axis), "0 with id_column or label_column, one entry per row")
        known = samples.labels
        if known is not None:
            where = "subfolders" if label_column is None else f"column {label_column}"
            known = as_labels(known, X.shape[0], labels or where)
    if sample_shape is not None:
        X = _fold(X, tuple(sample_shape), column_major=suffix == ".mat", lazy=lazy)
    return replace(samples, X=X, labels=known, names=None if moved else samples.names)


def default_memory() -> int:
    """Return half of the machine's memory in bytes; 4 GB where it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 2**32


def _samples_first(X: Any, axis: int, *, lazy: bool) -> Any:
    """Move the axis of the samples to the front and convert to the native byte order; lazy arrays are not changed."""
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
    if X.dtype.kind not in NUMERIC_KINDS:
        raise RefusedError(f"has entries of type {X.dtype}, not numbers")
    return np.ascontiguousarray(X, dtype=X.dtype.newbyteorder("="))


def _fold(X: Any, shape: tuple[int, ...], *, column_major: bool, lazy: bool) -> Any:
    """Fold rows into samples of a shape, column by column for MATLAB."""
    if lazy or hasattr(X, "tocsr"):
        given = f"{shape} for {'lazy' if lazy else 'sparse'} data"
        raise InputError("sample_shape", given, "None: pass it to the estimator")
    folded = X.reshape(len(X), *check_sample_shape(shape[::-1] if column_major else shape, X.shape))
    if not column_major:
        return folded
    return np.ascontiguousarray(folded.transpose(0, *range(folded.ndim - 1, 0, -1)))
