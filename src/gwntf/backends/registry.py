"""Backends by name."""

from importlib.util import find_spec
from typing import Any

from gwntf.backends.interchange import is_on_device, is_tensor
from gwntf.backends.numpy_backend import NumpyBackend
from gwntf.backends.protocol import Backend
from gwntf.core import InputError, MissingLibraryError

BACKENDS = ("auto", "numpy", "cpu", "torch")


def get_backend(name: str, *, device: str | None = None, given: Any = None) -> Backend:
    """Return the backend of that name.

    Parameters
    ----------
    name : {"auto", "numpy", "cpu", "torch"}
        "auto" is "torch" if a device is given, or if the data are a torch tensor or on a device; otherwise "cpu" if
        numba is installed, else "numpy".
    device : str, optional
        Device of torch: "cpu", "cuda" or "cuda:N"; by default that of the data.
    given : object, optional
        The data as passed by the user.
    """
    if name not in BACKENDS:
        raise InputError("engine", repr(name), f"one of {', '.join(map(repr, BACKENDS))}")
    if name == "auto" and (device is not None or is_tensor(given) or is_on_device(given)):
        name = "torch"
    if name == "torch":
        return _torch_backend(device, given)
    if device is not None:
        raise InputError("device", f"{device!r} with engine={name!r}", "None, or engine='torch'")
    return _host_backend(name)


def _host_backend(name: str) -> Backend:
    compiled = find_spec("numba") is not None
    if name == "numpy" or (name == "auto" and not compiled):
        return NumpyBackend()
    if not compiled:
        raise MissingLibraryError("engine='cpu' needs numba: pip install numba")
    from gwntf.backends.cpu.backend import CpuBackend

    return CpuBackend()


def _torch_backend(device: str | None, given: Any) -> Backend:
    if find_spec("torch") is None:
        raise MissingLibraryError("engine='torch' needs torch: pip install torch")
    from gwntf.backends.torch.arrays import as_tensor
    from gwntf.backends.torch.backend import TorchBackend

    if device is None:
        device = str(as_tensor(given).device) if is_tensor(given) or is_on_device(given) else "cpu"
    return TorchBackend(device)
