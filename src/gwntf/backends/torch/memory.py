"""Too little memory on a device: blocks of work are halved until they fit, and the last error names the sizes."""

import gc
from collections.abc import Callable, Iterable
from typing import Any

import torch

from gwntf.backends.protocol import Answer
from gwntf.core import DeviceMemoryError

_GIB = 2.0**30


class Halving:
    """Goes through blocks of work one after the other, in halves as soon as a block does not fit.

    All blocks that follow are halved as often, so that the cuts are the same every time.
    """

    def __init__(self) -> None:
        self.cuts = 0

    def map(self, function: Callable[[slice], Answer], blocks: Iterable[slice]) -> list[Answer]:
        """Return the answers for all blocks, or for the parts into which they were cut, in order."""
        answers: list[Answer] = []
        waiting = [(block, 0) for block in blocks][::-1]
        while waiting:
            block, cuts = waiting.pop()
            middle = (block.start + block.stop) // 2
            if cuts < self.cuts and block.start < middle:
                waiting += [(slice(middle, block.stop), cuts + 1), (slice(block.start, middle), cuts + 1)]
                continue
            try:
                answers.append(function(block))
            except RuntimeError as error:
                if not is_shortage(error) or block.start == middle:
                    raise
                self.cuts += 1
                waiting.append((block, cuts))
            else:
                continue
            _clear()  # only now are the arrays of the failed attempt free
        return answers


def is_shortage(error: RuntimeError) -> bool:
    """Whether torch could not get the memory it asked for."""
    return isinstance(error, torch.cuda.OutOfMemoryError) or "can't allocate memory" in str(error)


def shortage(error: RuntimeError, device: Any, given: Any, cuts: int) -> DeviceMemoryError:
    """Return the error for the user: what was asked for, what there is, and how large the data are."""
    shape = tuple(getattr(given, "shape", ()))
    entries = 1
    for size in shape:
        entries *= int(size)
    asked = str(error).split(". GPU")[0].split("\n")[0]
    room = ""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        room = f" {free / _GIB:.2f} of {total / _GIB:.2f} GiB are free."
    return DeviceMemoryError(
        f"{device} has too little memory for X of shape {shape}: its {entries} entries take "
        f"{4 * entries / _GIB:.2f} GiB in float32, twice that in float64, and a fit several times as much. "
        f"Blocks of work had been cut to 1/{2**cuts} of their size. {asked}.{room} "
        "Use fewer samples, dtype='float32', a smaller `warm_start_memory`, or device='cpu'."
    )


def _clear() -> None:
    """Give memory that is cached and not used back to the device."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
