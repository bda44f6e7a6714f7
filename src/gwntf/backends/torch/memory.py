"""Out-of-memory errors: blocks of work are halved until they fit, and the final error names the sizes."""

import gc
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

from gwntf.backends.protocol import Result
from gwntf.core import DeviceMemoryError

_GIB = 2.0**30


class Halving:
    """Processes blocks of work in order, split in halves once a block does not fit in memory.

    All later blocks are split as often (`depth`), so that the blocks are the same in every pass.
    """

    def __init__(self) -> None:
        self.depth = 0

    def map(self, function: Callable[[slice], Result], blocks: Iterable[slice]) -> list[Result]:
        """Return the results for all blocks, or for the parts into which they were split, in order."""
        results: list[Result] = []
        waiting = [(block, 0) for block in blocks][::-1]
        while waiting:
            block, depth = waiting.pop()
            middle = (block.start + block.stop) // 2
            if depth < self.depth and block.start < middle:
                waiting += [(slice(middle, block.stop), depth + 1), (slice(block.start, middle), depth + 1)]
                continue
            try:
                results.append(function(block))
            except RuntimeError as error:
                if not is_out_of_memory(error) or block.start == middle:
                    raise
                self.depth += 1
                waiting.append((block, depth))
            else:
                continue
            _free_cache()  # outside of the handler: the exception refers to the arrays of the failed call
        return results


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether torch failed to allocate memory."""
    return isinstance(error, torch.cuda.OutOfMemoryError) or "can't allocate memory" in str(error)


def memory_error(error: RuntimeError, device: Any, given: Any, depth: int) -> DeviceMemoryError:
    """Return the error for the user: requested memory, free memory, and size of the data."""
    shape = tuple(getattr(given, "shape", ()))
    entries = math.prod(map(int, shape))
    requested = str(error).split(". GPU")[0].split("\n")[0]
    available = ""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        available = f" {free / _GIB:.2f} of {total / _GIB:.2f} GiB are free."
    return DeviceMemoryError(
        f"{device} has too little memory for X of shape {shape}: its {entries} entries take "
        f"{4 * entries / _GIB:.2f} GiB in float32, twice that in float64, and a fit several times as much. "
        f"Blocks of work had been reduced to 1/{2**depth} of their size. {requested}.{available} "
        "Use fewer samples, dtype='float32', a smaller `max_memory` of `TransportOptions`, or device='cpu'."
    )


def _free_cache() -> None:
    """Return unused cached memory to the device."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
