"""Types, statuses and errors that every other room speaks of.

Imports nothing from the package. Start with `errors` (how bad input is reported) and `status` (why a fit
stopped).
"""

from gwntf.core.errors import (
    DataError,
    DeviceMemoryError,
    FileWriteError,
    GwntfError,
    InputError,
    MissingLibraryError,
    ModelFileError,
)
from gwntf.core.relaxation import Relaxation
from gwntf.core.status import Status
from gwntf.core.types import Array, FloatArray

__all__ = [
    "Array",
    "DataError",
    "DeviceMemoryError",
    "FileWriteError",
    "FloatArray",
    "GwntfError",
    "InputError",
    "MissingLibraryError",
    "ModelFileError",
    "Relaxation",
    "Status",
]
