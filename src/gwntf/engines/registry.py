"""Engines by name."""

from __future__ import annotations

from gwntf.core import InputError
from gwntf.engines.numpy_engine import NumpyEngine
from gwntf.engines.protocol import Engine

ENGINES = ("auto", "numpy")


def get_engine(name: str) -> Engine:
    """Return the engine of that name; "auto" is the best one for this machine."""
    if name in ("auto", "numpy"):
        return NumpyEngine()
    raise InputError("engine", repr(name), f"one of {', '.join(map(repr, ENGINES))}")
