"""Conversion to tensors from NumPy, torch and libraries with DLPack; devices by name."""

from typing import Any

import numpy as np
import torch

from gwntf.backends.interchange import is_foreign, is_tensor
from gwntf.core import Array, InputError


def as_tensor(values: Any) -> Array:
    """Return a tensor on the device of the values, without a copy if possible."""
    if is_tensor(values):
        return values.detach()
    if is_foreign(values):
        return torch.from_dlpack(values)
    array = np.ascontiguousarray(values)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def torch_dtype(dtype: Any) -> Any:
    """Return the torch dtype for a NumPy dtype."""
    return getattr(torch, np.dtype(dtype).name)


def check_device(name: str) -> Any:
    """Return the device with this name or raise `InputError`; CUDA is only initialised for "cuda" names."""
    allowed = "'cpu', 'cuda' or 'cuda:N'"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError("device", repr(name), allowed) from error
    if device.type not in ("cpu", "cuda"):
        raise InputError("device", repr(name), allowed)
    if device.type == "cpu":
        return device
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise InputError("device", repr(name), f"'cpu': torch {torch.__version__} finds no CUDA device")
    if device.index is not None and device.index >= count:
        raise InputError("device", repr(name), f"'cpu', 'cuda' or 'cuda:N' with N below {count}")
    return torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)


def device_name(name: str) -> str:
    """Return the product name of a device."""
    device = check_device(name)
    return "cpu" if device.type == "cpu" else str(torch.cuda.get_device_name(device))
