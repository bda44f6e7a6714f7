"""Arrays of other libraries: where they live, and how they come to the host.

torch tensors are known by their type, others by the DLPack protocol. Nothing is imported to find that out.
"""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HOST_MEMORY = (1, 3)
"""DLPack's numbers for the memory of the CPU, plain and pinned."""


def is_tensor(values: Any) -> bool:
    """Whether this is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def is_foreign(values: Any) -> bool:
    """Whether this is an array of a library other than NumPy that can be handed over by DLPack."""
    return hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray | np.generic)


def is_on_device(values: Any) -> bool:
    """Whether an array lives in memory that NumPy cannot read."""
    return is_foreign(values) and int(values.__dlpack_device__()[0]) not in _HOST_MEMORY


def as_given(values: NDArray[Any], given: Any) -> Any:
    """Return a NumPy array as a tensor on the device of `given` if that is a tensor."""
    if not is_tensor(given):
        return values
    from gwntf.backends.torch.arrays import as_tensor

    return as_tensor(values).to(given.device)


def to_host(values: Any) -> Any:
    """Return an array as a NumPy array if another library has it; anything else as it is."""
    if is_tensor(values):
        return values.detach().cpu().numpy()
    if is_on_device(values):
        from gwntf.backends.torch.arrays import as_tensor

        return as_tensor(values).cpu().numpy()
    return values
