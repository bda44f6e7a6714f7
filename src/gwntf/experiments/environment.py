"""Versions and machine that a result was computed with."""

import platform
from importlib.metadata import PackageNotFoundError, version

from gwntf._version import __version__


def environment(device: str | None = None) -> dict[str, str]:
    """Return versions and machine, and the device if one was used."""
    found = {"gwntf": __version__, "python": platform.python_version(), "machine": platform.machine()}
    packages = ["numpy", "scipy", "scikit-learn"]
    if device is not None:
        from gwntf.engines.torch.arrays import device_name

        found["device"] = device_name(device)
        packages += ["torch", "triton"]
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
