"""Handwritten digits, bundled with scikit-learn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from gwntf.core import FloatArray


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
