"""Measured gamma spectra of four isotopes and of background, with the references to unmix them with."""

import os
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.core import DataError, FloatArray
from gwntf.datasets.gamma_archive import read_archive
from gwntf.datasets.remote import RemoteFile, check_url, create_file, download_file, find_data_home
from gwntf.datasets.values import DAMAGED, load_arrays, save_arrays, values_digest

FILE = "gamma_left.npz"
ARCHIVE = "example_dataset.zip"
URL = f"https://raw.githubusercontent.com/Schlavioner/gamma_flow/91c1194bba740d5a1d4b6857e94d02ba17da6cee/{ARCHIVE}"

DTYPES = {"spectra": "<u4", "labels": "|b1", "isotopes": "text", "source": "text", "calibration": "<f4"}
DIGEST = "01a903578f723ee35fdbdd851a5c6b6d57119b1120981e378397116c001ca17b"
"""SHA-256 of the values of these arrays."""
REFERENCE_CHANNELS = (8.077572409428036, 102.72529029090327, 59.41998782779682, 62.60290103312734)
"""Mean channel of the reference of each isotope; its tolerance allows for rounding only."""

_BACKGROUND = "background_20240124"


@dataclass(frozen=True, eq=False)
class GammaSpectra:
    """Gamma spectra with known isotopes, from `load_gamma_spectra`.

    Attributes
    ----------
    spectra : (4750, 256) array
        Counts in every channel.
    references : (5, 256) array
        One spectrum of sum one for each name: the mean simulated spectra of the isotopes, and the mean of the 613
        measured spectra of background alone, which are also among `spectra`.
    names : tuple of 5 str
        Names of the references: four isotopes and ``"background"``.
    labels : (4750, 5) array of bool
        Which of them a spectrum contains, as its authors labelled it. The amounts are not known.
    source : (4750,) array of str
        The measurement from which a spectrum is.
    calibration : (4750, 3) array
        Offset, slope and quadratic term of the energy in keV as a function of the channel.

    Examples
    --------
    >>> import numpy as np
    >>> from gwntf.datasets import GammaSpectra
    >>> one = GammaSpectra(np.ones((1, 4)), np.full((1, 4), 0.25), ("Cs137",), np.ones((1, 1), bool),
    ...                    np.array(["example"]), np.array([[-10.0, 8.0, 0.001]]))
    >>> one.energies.round(3)
    array([[-10.   ,  -1.999,   6.004,  14.009]])
    """

    spectra: FloatArray
    references: FloatArray
    names: tuple[str, ...]
    labels: NDArray[np.bool_]
    source: NDArray[np.str_]
    calibration: FloatArray

    @property
    def channels(self) -> NDArray[np.int_]:
        """Numbers of the channels, from 0."""
        return np.arange(self.spectra.shape[1])

    @property
    def energies(self) -> FloatArray:
        """Energy of every channel in keV, one row per spectrum."""
        offset, slope, quadratic = self.calibration.T[:, :, None]
        energies: FloatArray = offset + self.channels * (slope + self.channels * quadratic)
        return energies


def load_gamma_spectra(
    data_home: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    url: str | None = None,
    progress: bool = True,
) -> GammaSpectra:
    """Load 4750 measured gamma spectra of 256 channels, which contain none to two of four isotopes and background.

    The spectra were measured with the left one of two detectors; the references of the isotopes were simulated, so that
    they differ from the measured ones.

    Parameters
    ----------
    data_home : path, optional
        Folder of ``gamma_left.npz``; by default the environment variable ``GWNTF_DATA``, else ``~/gwntf_data``. A
        copy of the original ``example_dataset.zip`` in this folder is used if there is no such file.
    download : bool
        Whether to download and convert the original archive if there is neither file.
    url : str, optional
        Address of the archive or of ``gamma_left.npz``: ``https://``, ``http://`` or ``file://``.
    progress : bool
        Whether to show a progress bar while downloading.

    Returns
    -------
    GammaSpectra

    Raises
    ------
    DataError
        If the data are absent and cannot be downloaded, or are not the expected ones.

    Notes
    -----
    Federal Office for Radiation Protection (Bundesamt für Strahlenschutz), Berlin: example data of GAMMA_FLOW,
    https://github.com/Schlavioner/gamma_flow, licence `Data licence Germany, attribution, version 2.0
    <https://www.govdata.de/dl-de/by-2-0>`__. Changes: spectra of the left detector only, and the mean of the simulated
    spectra of each isotope, each scaled to sum one. To cite: V. Rädle, T. Hartwig, B. Oesen, J. Vogt, E. Gericke, E. A.
    Kröger and M. Baron, GAMMA_FLOW: Guided Analysis of Multi-label spectra by Matrix factorization for Lightweight
    Operational Workflows, 2024.

    The archive is that of a fixed commit, read in the layout that GAMMA_FLOW documents. Its SHA-256 is not known to
    this library. The converted values are checked instead: spectra, labels, names and calibration must have the
    expected SHA-256, wherever the file comes from, and the references their known mean channels. From the archive only
    arrays, numbers, texts, lists and dictionaries are read.

    Examples
    --------
    >>> from gwntf import DataError, datasets
    >>> try:
    ...     shape = datasets.load_gamma_spectra(download=False).spectra.shape
    ... except DataError:                                    # the file is not on this machine
    ...     shape = (4750, 256)
    >>> shape
    (4750, 256)
    """
    folder = find_data_home(data_home)
    path, archive = folder / FILE, folder / ARCHIVE
    address = URL if url is None else check_url("url", url)
    advice = f"put {ARCHIVE} from {address} into {folder}"
    if not path.exists():
        if archive.is_file():
            return _spectra(_read(archive))
        if not download:
            raise DataError(f"{FILE} is not in {folder}: {advice}")
        create_file(path, lambda temporary: _download(address, temporary, progress), advice)
    return _spectra(_read(path))


def _download(url: str, target: Path, progress: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        original = Path(folder) / ARCHIVE
        download_file(RemoteFile(ARCHIVE, url, None), original, progress)
        arrays = _read(original, url)
    save_arrays(target, {name: arrays[name] for name in (*DTYPES, "references")})


def _read(path: Path, origin: str | None = None) -> dict[str, NDArray[Any]]:
    """Return the checked arrays of a file of either kind."""
    where = origin or str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            converted = "spectra.npy" in archive.namelist()
            arrays = load_arrays(path, (*DTYPES, "references")) if converted else read_archive(archive)
        means = arrays["references"] @ np.arange(arrays["references"].shape[1])
        expected = values_digest(arrays, DTYPES) == DIGEST
    except DAMAGED as error:
        raise DataError(f"{where} cannot be read as {FILE} or {ARCHIVE} ({error}): remove it") from error
    if not expected or not np.allclose(means, REFERENCE_CHANNELS, rtol=1e-7, atol=0):
        raise DataError(f"{where} does not contain the expected gamma spectra (the SHA-256 of its values differs)")
    return arrays


def _spectra(arrays: Mapping[str, NDArray[Any]]) -> GammaSpectra:
    spectra = arrays["spectra"].astype(np.float64)
    background = spectra[arrays["source"] == _BACKGROUND]
    mean = (background / background.sum(axis=1, keepdims=True)).mean(axis=0)
    return GammaSpectra(
        spectra,
        np.vstack([arrays["references"], mean]),
        tuple(map(str, arrays["isotopes"])),
        arrays["labels"],
        arrays["source"],
        arrays["calibration"].astype(np.float64),
    )
