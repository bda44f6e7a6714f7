"""Versions and machine, for the record."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from gwntf._version import __version__


def environment(device: str | None = None) -> dict[str, str]:
    """Versions and machine, with the device where one was used, for the record."""
    found = {"gwntf": __version__, "python": platform.python_version(), "machine": platform.machine()}
    packages = ["numpy", "scipy", "scikit-learn"]
    if device is not None:
        from gwntf.backends.torch.arrays import device_name

        found["device"] = device_name(device)
        packages += ["torch", "triton"]
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
