"""Engines by name."""

from __future__ import annotations

from importlib.util import find_spec

from gwntf.core import InputError, MissingLibraryError
from gwntf.engines.numpy_engine import NumpyEngine
from gwntf.engines.protocol import Engine

ENGINES = ("auto", "numpy", "cpu")


def get_engine(name: str) -> Engine:
    """Return the engine of that name; "auto" is the reference engine."""
    if name in ("auto", "numpy"):
        return NumpyEngine()
    if name == "cpu":
        if find_spec("numba") is None:
            raise MissingLibraryError("engine='cpu' needs numba: pip install 'gwntf[fast]'")
        from gwntf.engines.cpu.engine import CpuEngine

        return CpuEngine()
    raise InputError("engine", repr(name), f"one of {', '.join(map(repr, ENGINES))}")
