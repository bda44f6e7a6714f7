"""Reading the example data of GAMMA_FLOW: a zip archive of NumPy files, each a pickled list of dictionaries.

One dictionary is one spectrum: ``spectrum``, ``labels``, ``calibration`` (``offset``, ``slope``, ``quad``) and
``detector`` (``left``, ``right`` or ``simulated``). Unpickling may run any code, so that only NumPy arrays and plain
values are created here; objects of any other class become empty placeholders.
"""

import pickle
import re
import zipfile
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

NAMES = ("Am241", "Co60", "Cs137", "Eu152", "background")
_CALIBRATION = ("offset", "slope", "quad")
_MAX_BYTES = 2**28  # of one file in the archive, uncompressed
_NUMPY = re.compile(r"numpy\.(_core|core)\.multiarray")


class _Placeholder:
    """Object of a class that is not loaded."""

    def __new__(cls, *_: Any, **__: Any) -> "_Placeholder":
        return super().__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def _ignore(self, *_: Any) -> None:
        pass

    __setstate__ = __setitem__ = append = extend = _ignore


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if _NUMPY.fullmatch(module) and name in ("_reconstruct", "scalar"):
            return getattr(np._core.multiarray, name)  # type: ignore[attr-defined]
        return _Placeholder


def read_archive(archive: zipfile.ZipFile) -> dict[str, NDArray[Any]]:
    """Return the spectra of the left detector, and the mean simulated spectrum of every isotope.

    Raises
    ------
    Exception
        One of `values.DAMAGED` if the archive does not have the layout described above.
    """
    spectra, labels, source, calibration = [], [], [], []
    simulated: dict[str, list[NDArray[np.float64]]] = {name: [] for name in NAMES[:-1]}
    for member in sorted(archive.infolist(), key=lambda member: PurePosixPath(member.filename).name):
        path = PurePosixPath(member.filename)
        if path.suffix != ".npy" or "__MACOSX" in path.parts:
            continue
        for entry in _entries(archive, member):
            if entry["detector"] == "left":
                spectra.append(np.asarray(entry["spectrum"], dtype=np.float64))
                labels.append([name in entry["labels"] for name in NAMES])
                source.append(path.stem.removesuffix("_left"))
                calibration.append([float(entry["calibration"][name]) for name in _CALIBRATION])
            elif entry["detector"] == "simulated":
                (isotope,) = set(entry["labels"]) & set(simulated)
                values = np.asarray(entry["spectrum"], dtype=np.float64)
                simulated[isotope].append(values / values.sum())
    empty = [name for name, values in simulated.items() if not values]
    if empty or not spectra:
        raise ValueError(f"no spectra of {', '.join(empty or ['the left detector'])}")
    return {
        "spectra": _counts(spectra),
        "labels": np.array(labels, dtype=np.bool_),
        "isotopes": np.array(NAMES),
        "source": np.array(source),
        "calibration": np.array(calibration, dtype=np.float32),
        "references": np.stack([np.mean(values, axis=0) for values in simulated.values()]),
    }


def _entries(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterable[dict[str, Any]]:
    if member.file_size > _MAX_BYTES:
        raise ValueError(f"{member.filename} has {member.file_size} bytes, more than {_MAX_BYTES}")
    with archive.open(member) as file:
        content = _unpickle(file)
    entries = content.ravel().tolist() if isinstance(content, np.ndarray) else content
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{member.filename} is not a list of dictionaries")
    return entries


def _unpickle(file: IO[bytes]) -> Any:
    """Return the content of a NumPy file of Python objects."""
    version = npy.read_magic(file)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    _, _, dtype = read_header(file)
    if not dtype.hasobject:
        raise ValueError("an array of numbers where a list of dictionaries was expected")
    try:
        return _Unpickler(file).load()
    except (pickle.UnpicklingError, ImportError) as error:
        raise ValueError(f"not a NumPy file of Python objects: {error}") from error


def _counts(spectra: list[NDArray[np.float64]]) -> NDArray[np.uint32]:
    counts = np.stack(spectra)
    if counts.min() < 0 or counts.max() >= 2**32 or (counts != np.floor(counts)).any():
        raise ValueError("the spectra are not counts")
    return counts.astype(np.uint32)
