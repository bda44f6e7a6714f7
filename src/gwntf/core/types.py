"""Type names used throughout."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = Any
"""An array of whatever engine is at work: a NumPy array, a torch tensor."""

FloatArray: TypeAlias = NDArray[np.floating[Any]]
"""A NumPy array of float32 or float64."""
