"""Arrays of other libraries: whether they are on a device, and their conversion to NumPy.

torch tensors are recognised by their type, others by the DLPack protocol, without importing any library.
"""

import sys
from typing import Any

import numpy as np

_HOST_MEMORY = (1, 3)
"""DLPack device types of host memory, pageable and pinned."""


def is_tensor(values: Any) -> bool:
    """Whether this is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def is_foreign(values: Any) -> bool:
    """Whether this is an array of a library other than NumPy that supports DLPack."""
    return hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray | np.generic)


def is_on_device(values: Any) -> bool:
    """Whether an array is in memory that NumPy cannot read."""
    return is_foreign(values) and int(values.__dlpack_device__()[0]) not in _HOST_MEMORY


def to_host(values: Any) -> Any:
    """Convert an array of another library to NumPy; return anything else unchanged."""
    if is_tensor(values):
        return values.detach().cpu().numpy()
    if is_on_device(values):
        from gwntf.backends.torch.arrays import as_tensor

        return as_tensor(values).cpu().numpy()
    return values
