"""The result of every reader, its summary, and the checks and errors that readers share."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.core import DataError, GwntfError, MissingLibraryError
from gwntf.readers.limits import NUMERIC_KINDS, RefusedError


@dataclass(frozen=True)
class Samples:
    """Data read from a file or folder, samples first.

    Attributes
    ----------
    X : array of shape (n_samples, ...)
        A NumPy array, a SciPy sparse array if the file contains one, or with ``lazy=True`` a memory map or zarr array.
    labels : (n_samples,) array or None
        Class of each sample, a whole number or a string, if requested or if images are in subfolders.
    names : tuple of str or None
        Names of the samples: identifiers from a column of a table, paths of images within their folder.
    note : str
        A remark for the user, for example how many files were skipped.
    """

    X: Any
    labels: NDArray[Any] | None = None
    names: tuple[str, ...] | None = None
    note: str = ""


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Convert all exceptions caused by a damaged file to a DataError that names the file."""
    try:
        yield
    except RefusedError as reason:
        raise DataError(f"{path} {reason}.") from reason
    except GwntfError:
        raise
    except MemoryError as error:
        raise DataError(f"{path} could not be read: there is not enough memory.") from error
    except Exception as error:
        message = f"{type(error).__name__}: {error}"[:300]
        raise DataError(f"{path} could not be read ({message}): is the file complete?") from error


def require(library: str, path: Path) -> None:
    """Raise an error with the command to install a library, unless it is installed."""
    if find_spec(library) is None:
        extra = "zarr" if library == "zarr" else "io"
        raise MissingLibraryError(f"{path} needs {library}: pip install 'gwntf[{extra}]'")


def as_labels(values: Any, n_samples: int, what: str) -> NDArray[Any]:
    """Return labels as an array of integers or strings, one for each sample; `what` names them in errors."""
    labels = np.asarray(values)
    labels = labels.ravel() if labels.size == max(labels.shape, default=0) else labels
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    if labels.dtype.kind not in NUMERIC_KINDS + "U":
        raise RefusedError(f"has labels ({what}) of type {labels.dtype}; expected whole numbers or strings")
    if labels.shape != (n_samples,):
        raise RefusedError(f"has labels ({what}) of shape {labels.shape} for {n_samples} samples")
    if labels.dtype.kind == "f":
        if not np.all(np.isfinite(labels) & (labels == np.round(labels)) & (np.abs(labels) < 2**53)):
            raise RefusedError(f"has labels ({what}) that are not whole numbers")
        labels = labels.astype(np.int64)
    return labels


_BLOCK_ENTRIES = 2**22


@dataclass
class Summary:
    """Shape and dtype of an array, range of its finite entries, and counts of zero, missing and other entries."""

    shape: tuple[int, ...]
    dtype: str
    sparse: bool  # whether it is a SciPy sparse array
    smallest: float = math.nan  # NaN without finite entries
    largest: float = math.nan
    zeros: int = 0
    missing: int = 0  # NaN
    infinite: int = 0
    negative: int = 0
    entries: int = 0  # total number


def summarise(X: Any) -> Summary:
    """Return the summary of an array, read in blocks of samples where it is on disk."""
    shape = tuple(map(int, X.shape))
    found = Summary(shape, str(X.dtype), hasattr(X, "tocsr"), entries=math.prod(shape))
    rows = max(1, _BLOCK_ENTRIES * shape[0] // max(1, found.entries))
    blocks = [X.data] if found.sparse else (X[start : start + rows] for start in range(0, shape[0], rows))
    if found.sparse and X.nnz < found.entries:
        found.zeros, found.smallest, found.largest = found.entries - X.nnz, 0.0, 0.0
    for block in map(np.asarray, blocks):
        finite = block[np.isfinite(block)]
        found.missing += int(np.isnan(block).sum())
        found.infinite += int(np.isinf(block).sum())
        found.zeros += int((finite == 0).sum())
        found.negative += int((finite < 0).sum())
        if finite.size:
            found.smallest = float(np.fmin(found.smallest, finite.min()))
            found.largest = float(np.fmax(found.largest, finite.max()))
    return found
