"""What every reader returns, and what it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.core import DataError, GwntfError, MissingLibraryError
from gwntf.readers.apart import NUMBERS, RefusedError


@dataclass(frozen=True)
class Samples:
    """Data of a user, samples first.

    Attributes
    ----------
    X : array of shape (n_samples, ...)
        A NumPy array; a SciPy sparse array where the file held one; with ``lazy=True`` a memory map or a zarr array.
    labels : (n_samples,) array or None
        Class of each sample, whole numbers or strings, where they were asked for or are names of subfolders.
    names : tuple of str or None
        Of the samples: paths of images within their folder.
    note : str
        What a user should know about the reading, for example how many files were left out.
    """

    X: Any
    labels: NDArray[Any] | None = None
    names: tuple[str, ...] | None = None
    note: str = ""


@dataclass(frozen=True)
class Wanted:
    """What a reader is asked for; `read.read_data` documents each."""

    key: str | None
    labels: str | None
    size: tuple[int, int] | None
    color: bool
    lazy: bool
    max_bytes: int


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a library makes of a damaged file into an error of ours that names the file."""
    try:
        yield
    except RefusedError as reason:
        raise DataError(f"{path} {reason}.") from reason
    except GwntfError:
        raise
    except MemoryError as error:
        raise DataError(f"{path} could not be read: the memory was too small for it.") from error
    except Exception as error:
        told = f"{type(error).__name__}: {error}"[:300]
        raise DataError(f"{path} could not be read ({told}): is the file whole?") from error


def require(library: str, path: Path) -> None:
    """Raise a clear error where the library for a format is not installed."""
    if find_spec(library) is None:
        extra = "zarr" if library == "zarr" else "io"
        raise MissingLibraryError(f"{path} needs {library}: pip install 'gwntf[{extra}]'")


def as_labels(values: Any, n_samples: int, what: str) -> NDArray[Any]:
    """Check labels: one for each sample, whole numbers or strings."""
    labels = np.asarray(values)
    labels = labels.ravel() if labels.size == max(labels.shape, default=0) else labels
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    if labels.dtype.kind not in NUMBERS + "U":
        raise RefusedError(f"has labels ({what}) of type {labels.dtype}; expected whole numbers or strings")
    if labels.shape != (n_samples,):
        raise RefusedError(f"has labels ({what}) of shape {labels.shape} for {n_samples} samples")
    if labels.dtype.kind == "f":
        if not np.all(np.isfinite(labels) & (labels == np.round(labels)) & (np.abs(labels) < 2**53)):
            raise RefusedError(f"has labels ({what}) that are not whole numbers")
        labels = labels.astype(np.int64)
    return labels
