"""Types, statuses, errors and warnings that all subpackages share.

Imports nothing from the package. Start with `errors` (how bad input is reported), then `types` (the parameters of the
transport problem, and why a fit stopped).
"""

from gwntf.core.errors import (
    CheckpointWarning,
    CoarseKernelWarning,
    DataError,
    DependentPartsWarning,
    DeviceMemoryError,
    DisconnectedGraphWarning,
    EmptyComponentWarning,
    FileWriteError,
    GraphNotExtendedWarning,
    GwntfError,
    GwntfWarning,
    InputError,
    MissingLibraryError,
    ModelFileError,
    SamplesLastWarning,
    UnevenSamplesWarning,
)
from gwntf.core.types import Array, FloatArray, Relaxation, Status, marginal_weights
