"""Types, statuses and errors that every other room speaks of.

Imports nothing from the package. Start with `errors` (how bad input is reported), `notices` (what is warned of) and
`status` (why a fit stopped).
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
from gwntf.core.notices import (
    CoarseKernelWarning,
    DisconnectedGraphWarning,
    EmptyComponentWarning,
    GwntfWarning,
    UnevenSamplesWarning,
)
from gwntf.core.relaxation import Relaxation
from gwntf.core.status import Status
from gwntf.core.types import Array, FloatArray

__all__ = [
    "Array",
    "CoarseKernelWarning",
    "DataError",
    "DeviceMemoryError",
    "DisconnectedGraphWarning",
    "EmptyComponentWarning",
    "FileWriteError",
    "FloatArray",
    "GwntfError",
    "GwntfWarning",
    "InputError",
    "MissingLibraryError",
    "ModelFileError",
    "Relaxation",
    "Status",
    "UnevenSamplesWarning",
]
