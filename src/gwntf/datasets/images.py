"""Image data sets: the digits of scikit-learn, and COIL20 and PIE_pose27, read from disk or downloaded."""

import os

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from gwntf.core import DataError, FloatArray
from gwntf.datasets.remote import RemoteFile, fetch

COIL20 = RemoteFile(
    "COIL20.mat",
    "http://www.cad.zju.edu.cn/home/dengcai/Data/COIL20/COIL20.mat",
    "2a35c105dbb327492b90389e55612bcbf39187bc7c408252239903e4ce7d6958",
)
PIE_POSE27 = RemoteFile(
    "PIE_pose27.mat",
    "http://www.cad.zju.edu.cn/home/dengcai/Data/PIE/PIE_pose27.mat",
    "035fdd73d5f4234d958b3c88f20bd8aae3871080246139896a23e61487134680",
)

_SIDE = 32


def load_digits_tensor() -> tuple[FloatArray, NDArray[np.int_]]:
    """Return 1797 images of handwritten digits, 8 x 8 pixels from 0 to 16, and the digits they show.

    Returns
    -------
    X : ndarray of shape (1797, 8, 8)
    y : ndarray of shape (1797,)

    Examples
    --------
    >>> from gwntf.datasets import load_digits_tensor
    >>> X, y = load_digits_tensor()
    >>> X.shape
    (1797, 8, 8)
    """
    bunch = load_digits()
    return bunch.images, bunch.target


def load_coil20(
    data_home: str | os.PathLike[str] | None = None, *, download: bool = True, progress: bool = True
) -> tuple[FloatArray, NDArray[np.int_]]:
    """Columbia Object Image Library: 1440 images of 20 objects, 72 views each, grey values 0 to 1.

    Parameters
    ----------
    data_home : path, optional
        Folder of ``COIL20.mat``; by default the environment variable ``GWNTF_DATA``, else ``~/gwntf_data``.
    download : bool
        Whether to download the file if it is not there.
    progress : bool
        Whether to show a progress bar while downloading.

    Returns
    -------
    X : ndarray of shape (1440, 32, 32)
    y : ndarray of shape (1440,)
        Index of the object, from 0 to 19.

    Examples
    --------
    >>> from gwntf import DataError, datasets
    >>> try:
    ...     shape = datasets.load_coil20(download=False)[0].shape
    ... except DataError:                                    # the file is not on this machine
    ...     shape = (1440, 32, 32)
    >>> shape
    (1440, 32, 32)
    """
    return _load(COIL20, data_home, download, progress)


def load_pie_pose27(
    data_home: str | os.PathLike[str] | None = None, *, download: bool = True, progress: bool = True
) -> tuple[FloatArray, NDArray[np.int_]]:
    """CMU PIE, frontal pose 27: 2856 faces of 68 people, 42 lightings each, grey values 0 to 255.

    Parameters and result are those of `load_coil20`, with ``PIE_pose27.mat``, X of shape (2856, 32, 32) and 68 classes.

    Examples
    --------
    >>> from gwntf import DataError, datasets
    >>> try:
    ...     shape = datasets.load_pie_pose27(download=False)[0].shape
    ... except DataError:                                    # the file is not on this machine
    ...     shape = (2856, 32, 32)
    >>> shape
    (2856, 32, 32)
    """
    return _load(PIE_POSE27, data_home, download, progress)


def _load(
    remote: RemoteFile, data_home: str | os.PathLike[str] | None, download: bool, progress: bool
) -> tuple[FloatArray, NDArray[np.int_]]:
    from scipy.io import loadmat

    path = fetch(remote, data_home, download=download, progress=progress)
    try:
        content = loadmat(path, variable_names=["fea", "gnd"])
        rows, labels = content["fea"], content["gnd"].ravel()
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"{path} has no fields fea and gnd: {error}") from error
    column_major = rows.astype(np.float64).reshape(len(rows), _SIDE, _SIDE)
    return np.ascontiguousarray(column_major.transpose(0, 2, 1)), labels.astype(np.int_) - 1
