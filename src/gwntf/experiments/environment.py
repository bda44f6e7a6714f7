"""Versions and machine, for the record."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from gwntf._version import __version__


def environment() -> dict[str, str]:
    """Versions and machine, for the record."""
    found = {"gwntf": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for package in ("numpy", "scipy", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
