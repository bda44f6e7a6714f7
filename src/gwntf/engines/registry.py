"""Engines by name."""

from __future__ import annotations

from importlib.util import find_spec

from gwntf.core import InputError, MissingLibraryError
from gwntf.engines.numpy_engine import NumpyEngine
from gwntf.engines.protocol import Engine

ENGINES = ("auto", "numpy", "cpu")


def get_engine(name: str) -> Engine:
    """Return the engine of that name; "auto" is the compiled one where numba is installed, else the reference."""
    if name not in ENGINES:
        raise InputError("engine", repr(name), f"one of {', '.join(map(repr, ENGINES))}")
    compiled = find_spec("numba") is not None
    if name == "numpy" or (name == "auto" and not compiled):
        return NumpyEngine()
    if not compiled:
        raise MissingLibraryError("engine='cpu' needs numba: pip install numba")
    from gwntf.engines.cpu.engine import CpuEngine

    return CpuEngine()
