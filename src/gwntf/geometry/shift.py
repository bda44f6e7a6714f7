"""By how much to lift a kernel, U and V, so that a number type holds them.

Data have zeros where their model has none, so V has to be large far away from the data, and U small at them: held as
they are, both would leave float32 at one end while the other end is empty.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def lifting_shift(smallest: float, largest: float, dtype: Any) -> tuple[float, bool]:
    """Return s >= 0 that makes exp(s + smallest) a normal number of that type, and whether there is room for it.

    exp(s + largest) stays below the square root of the largest number, to leave room for U and V.
    """
    info = np.finfo(dtype)
    wanted = max(0.0, math.log(float(info.smallest_normal)) + 1 - smallest)
    room = max(0.0, 0.5 * math.log(float(info.max)) - largest)
    return min(wanted, room), wanted <= room


def split_shift(shift: float, dtype: Any) -> tuple[float, float]:
    """Return (a, b) with a + b = s: U is held as exp(-a) U and V as exp(-b) V, U lifted and V lowered."""
    gauge = 0.3 * math.log(float(np.finfo(dtype).max))
    return shift / 2 - gauge, shift / 2 + gauge
