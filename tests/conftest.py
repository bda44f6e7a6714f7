"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings

from gwntf.core import DataError
from gwntf.datasets import load_coil20, load_pie_pose27

if shutil.which("nvidia-smi") is None:
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when a kernel is defined

collect_ignore = ["fuzz_guided.py"]  # a program of its own, which needs atheris

settings.register_profile("gwntf", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("gwntf")


def load_or_skip(loader):
    """A research data set from the folder in GWNTF_DATA; skip where it is absent, unless it must not be."""
    try:
        return loader(download=False)
    except DataError as error:
        if os.environ.get("GWNTF_REQUIRE_DATA"):
            pytest.fail(str(error))
        return pytest.skip(str(error))


@pytest.fixture(scope="session")
def coil20() -> tuple[np.ndarray, np.ndarray]:
    return load_or_skip(load_coil20)


@pytest.fixture(scope="session")
def pie_pose27() -> tuple[np.ndarray, np.ndarray]:
    return load_or_skip(load_pie_pose27)


@pytest.fixture(autouse=True)
def one_thread_for_torch() -> None:
    """Several test processes on few cores: threads of torch that wait for each other would take the cores away."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C interrupts, as in a terminal; a process that was started in the background may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)
