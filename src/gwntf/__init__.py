"""Nonnegative matrix and tensor factorization under optimal-transport losses, with a graph on the samples.

Everything public is here or in `datasets`, `evaluation`, `model_selection` and `plots`. Imports the rooms
below the pictures, and none of the heavy libraries. Start reading with `estimators`; CONTRIBUTING.md has the
map.
"""

from gwntf._version import __version__
from gwntf.core import (
    DataError,
    DeviceMemoryError,
    FileWriteError,
    GwntfError,
    GwntfWarning,
    InputError,
    ModelFileError,
    Status,
)
from gwntf.distances import (
    entropic_wasserstein_distance,
    objective,
    wasserstein_distance,
    wasserstein_matrix_distance,
    wasserstein_tensor_distance,
)
from gwntf.estimators import (
    GNCP,
    GNMF,
    GWNTF,
    NCP,
    NMF,
    SDNMF,
    SWIFT,
    MiniBatchGWNTF,
    TensorClustering,
    TransportOptions,
    Unmixer,
    fit_many,
    load,
)
from gwntf.geometry import AxisCost, KNNGraph, SeparableCost
from gwntf.readers import read_data
from gwntf.solver import Checkpoint, Iteration, ProgressBar
from gwntf.unmixing import Unmixing

__all__ = [
    "GNCP",
    "GNMF",
    "GWNTF",
    "NCP",
    "NMF",
    "SDNMF",
    "SWIFT",
    "AxisCost",
    "Checkpoint",
    "DataError",
    "DeviceMemoryError",
    "FileWriteError",
    "GwntfError",
    "GwntfWarning",
    "InputError",
    "Iteration",
    "KNNGraph",
    "MiniBatchGWNTF",
    "ModelFileError",
    "ProgressBar",
    "SeparableCost",
    "Status",
    "TensorClustering",
    "TransportOptions",
    "Unmixer",
    "Unmixing",
    "__version__",
    "entropic_wasserstein_distance",
    "fit_many",
    "load",
    "objective",
    "read_data",
    "wasserstein_distance",
    "wasserstein_matrix_distance",
    "wasserstein_tensor_distance",
]
