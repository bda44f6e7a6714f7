"""Proton NMR spectra of three mixtures with weighed amounts, and of their components."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gwntf.core import DataError, FloatArray
from gwntf.datasets.remote import RemoteFile, check_url, create_file, download_file, find_data_home
from gwntf.datasets.values import DAMAGED, load_arrays, save_arrays, values_digest

FILE = "nmr.npz"
URL = "https://raw.githubusercontent.com/BDomzal/magnetstein_data/5cb29247b1936df803e94eeed44d12efd7df62bd"
"""Folder of the original files at a fixed commit."""

DTYPES = {"ppm": "<f8", "mix": "<f4", "components": "<f4"}


class _Experiment(NamedTuple):
    number: int
    files: str  # path of the original files, up to mix.csv, comp0.csv, comp1.csv, ...
    names: tuple[str, ...]
    protons: tuple[int, ...]
    molar: tuple[float, ...]
    digest: str  # SHA-256 of the values


_METABOLITES = ("Lactate", "Alanine", "Creatine", "Creatinine", "Choline chloride")
_METABOLITE_PROTONS = (4, 4, 5, 5, 13)
_METABOLITE_SHARES = (0.3022, 0.224, 0.1253, 0.2028, 0.1457)
EXPERIMENTS = (
    _Experiment(
        3,
        "experiment_3_perfumes_and_absent_components/preprocessed_",
        ("Isopropyl myristate", "Benzyl benzoate", "Alpha pinene", "Limonene"),
        (34, 12, 16, 16),
        (0.7264578344443725, 0.10578603326645526, 0.081968804608116, 0.08578732768105625),
        "282a3afd9f44c5c18af8c3a3eb5b5d7d7bb70e8f272fffb7c9010749802b664f",
    ),
    _Experiment(
        4,
        "experiment_9_and_4_shim/preprocessed_exp4_",
        _METABOLITES,
        _METABOLITE_PROTONS,
        _METABOLITE_SHARES,
        "5a6fdc66c8b767a2db1ee322a5718900e666eb27d19cf3a1caa9f4b52bc2f071",
    ),
    _Experiment(
        9,
        "experiment_9_and_4_shim/preprocessed_exp9_",
        _METABOLITES,
        _METABOLITE_PROTONS,
        _METABOLITE_SHARES,
        "bbd3fbe11d1f886f20dabe5b07ad31a06c9a2a364b86f2843030992d06852bd8",
    ),
)


@dataclass(frozen=True, eq=False)
class NMRMixture:
    """NMR spectrum of a mixture and of its components, from `load_nmr_mixtures`.

    Attributes
    ----------
    experiment : int
        Number of the experiment in the publication.
    ppm : (n_positions,) array
        Chemical shifts, ascending, at uneven distances.
    mixture : (n_positions,) array
        Spectrum of the mixture, of sum one.
    references : (n_references, n_positions) array
        Spectra of the components, each of sum one.
    names : tuple of str
        Names of the components.
    protons : (n_references,) array
        Number of protons of a molecule that are seen in its spectrum.
    truth_molar : (n_references,) array
        Weighed amounts, as molar shares.

    Examples
    --------
    >>> import numpy as np
    >>> from gwntf.datasets import NMRMixture
    >>> flat = np.full(4, 0.25)
    >>> case = NMRMixture(0, np.arange(4.0), flat, np.stack([flat, flat]), ("A", "B"), np.array([2, 6]),
    ...                   np.array([0.5, 0.5]))
    >>> case.truth_signal                                     # B has three times as many protons
    array([0.25, 0.75])
    """

    experiment: int
    ppm: FloatArray
    mixture: FloatArray
    references: FloatArray
    names: tuple[str, ...]
    protons: NDArray[np.int_]
    truth_molar: FloatArray

    @property
    def truth_signal(self) -> FloatArray:
        """Shares of the components in the area of the spectrum: molar shares times protons, of sum one."""
        signal = self.truth_molar * self.protons
        shares: FloatArray = signal / signal.sum()
        return shares


def load_nmr_mixtures(
    data_home: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    url: str | None = None,
    progress: bool = True,
) -> list[NMRMixture]:
    """Load measured proton NMR spectra of three mixtures whose components were weighed, and of the components.

    Experiment 3 has four perfume ingredients and 12,449 positions, experiments 4 and 9 have five metabolites and 27,129
    positions. Peaks of the mixtures are shifted relative to those of the pure components; in experiments 4 and 9 the
    magnetic field was adjusted (shimmed) differently.

    Parameters
    ----------
    data_home : path, optional
        Folder of ``nmr.npz``; by default the environment variable ``GWNTF_DATA``, else ``~/gwntf_data``.
    download : bool
        Whether to download the original files, 20 MB, if it is not there.
    url : str, optional
        Address of the folder of the original files, or of ``nmr.npz``: ``https://``, ``http://`` or ``file://``.
    progress : bool
        Whether to show a progress bar while downloading.

    Returns
    -------
    list of NMRMixture
        Experiments 3, 4 and 9.

    Raises
    ------
    DataError
        If the data are absent and cannot be downloaded, or are not the expected ones.

    Notes
    -----
    B. Domżał et al., Magnetstein: An Open-Source Tool for Quantitative NMR Mixture Analysis Robust to Low Resolution,
    Distorted Lineshapes, and Peak Shifts, Analytical Chemistry, 2023, https://doi.org/10.1021/acs.analchem.3c03594.
    Data of https://github.com/BDomzal/magnetstein, MIT licence, and https://github.com/BDomzal/magnetstein_data, which
    asks to cite the publication. The spectra are preprocessed by their authors (solvent peaks removed, common axis,
    negative values set to zero, sum one) and stored here as float32.

    The original files are those of a fixed commit. Their values, as stored here, must have the expected SHA-256,
    wherever a file comes from.

    Examples
    --------
    >>> from gwntf import DataError, datasets
    >>> try:
    ...     names = datasets.load_nmr_mixtures(download=False)[0].names
    ... except DataError:                                    # the file is not on this machine
    ...     names = ("Isopropyl myristate", "Benzyl benzoate", "Alpha pinene", "Limonene")
    >>> names[0]
    'Isopropyl myristate'
    """
    path = find_data_home(data_home) / FILE
    address = (URL if url is None else check_url("url", url)).rstrip("/")
    if not path.exists():
        if not download:
            raise DataError(f"{FILE} is not in {path.parent}: allow its download from {address} with download=True")
        advice = f"check the connection, or name a copy of {address} with url="
        create_file(path, lambda temporary: _download(address, temporary, progress), advice)
    return _read(path)


def _download(address: str, target: Path, progress: bool) -> None:
    if address.endswith(".npz"):
        download_file(RemoteFile(FILE, address, None), target, progress)
        _read(target, address)
        return
    arrays: dict[str, NDArray[Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for experiment in EXPERIMENTS:
            files = ["mix.csv", *(f"comp{k}.csv" for k in range(len(experiment.names)))]
            urls = [f"{address}/{experiment.files}{name}" for name in files]
            values = _convert([_table(url, Path(folder), progress) for url in urls], address)
            _check(experiment, values, address)
            arrays.update({f"{experiment.number}/{name}": values[name] for name in DTYPES})
    save_arrays(target, arrays)


def _table(url: str, folder: Path, progress: bool) -> FloatArray:
    """Download a file of two columns, chemical shift and intensity."""
    path = folder / "table.csv"
    name = url.rsplit("/", 1)[-1]
    download_file(RemoteFile(name, url, None), path, progress)
    try:
        table = np.loadtxt(path, delimiter=",", ndmin=2)
    except ValueError as error:
        raise DataError(f"{url} is not a table of numbers: {error}") from error
    if table.shape[1] != 2:
        raise DataError(f"{url} has {table.shape[1]} columns instead of 2")
    return table


def _convert(tables: list[FloatArray], where: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of an experiment from its tables, the mixture first; all must have the same axis."""
    mix, *components = tables
    if any(not np.array_equal(table[:, 0], mix[:, 0]) for table in components):
        raise DataError(f"{where} does not contain the expected spectra: a component has another axis than its mixture")
    intensities = np.stack([table[:, 1] for table in components]).astype(np.float32)
    return {"ppm": mix[:, 0], "mix": mix[:, 1].astype(np.float32), "components": intensities}


def _check(experiment: _Experiment, values: Mapping[str, NDArray[Any]], where: str) -> None:
    if values_digest(values, DTYPES) != experiment.digest:
        message = f"{where} does not contain the expected spectra of experiment {experiment.number}"
        raise DataError(f"{message} (the SHA-256 of its values differs)")


def _read(path: Path, origin: str | None = None) -> list[NMRMixture]:
    where = origin or str(path)
    try:
        stored = load_arrays(path, [f"{experiment.number}/{name}" for experiment in EXPERIMENTS for name in DTYPES])
    except DAMAGED as error:
        raise DataError(f"{where} cannot be read as {FILE} ({error}): remove it") from error
    mixtures = []
    for experiment in EXPERIMENTS:
        values = {name: stored[f"{experiment.number}/{name}"] for name in DTYPES}
        _check(experiment, values, where)
        mixtures.append(_mixture(experiment, values))
    return mixtures


def _mixture(experiment: _Experiment, values: Mapping[str, NDArray[Any]]) -> NMRMixture:
    return NMRMixture(
        experiment.number,
        values["ppm"].astype(np.float64),
        values["mix"].astype(np.float64),
        values["components"].astype(np.float64),
        experiment.names,
        np.array(experiment.protons),
        np.array(experiment.molar),
    )
