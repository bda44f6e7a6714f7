"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from scipy.io import loadmat

settings.register_profile("gwntf", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("gwntf")


def load_mat(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 32, 32) and labels of a research data set; pixels lie column by column in the file."""
    home = os.environ.get("GWNTF_DATA")
    path = Path(home or ".") / f"{name}.mat"
    if home is None or not path.exists():
        reason = f"{name}.mat not found: set GWNTF_DATA to the folder that holds it"
        if os.environ.get("GWNTF_REQUIRE_DATA"):
            pytest.fail(reason)
        pytest.skip(reason)
    content = loadmat(path)
    images = content["fea"].astype(np.float64).reshape(-1, 32, 32).transpose(0, 2, 1)
    return np.ascontiguousarray(images), content["gnd"].ravel() - 1


@pytest.fixture(scope="session")
def coil20() -> tuple[np.ndarray, np.ndarray]:
    return load_mat("COIL20")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)
