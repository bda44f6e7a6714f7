"""The paper's Wasserstein distances as plain functions of arrays.

May import `solver` and everything below it. Start with `functions` (equations 2 and 3, definitions 1 and 2, the
objective), which use the distances between columns of `columns`.
"""

from gwntf.distances.columns import Distance
from gwntf.distances.functions import (
    entropic_wasserstein_distance,
    objective,
    wasserstein_distance,
    wasserstein_matrix_distance,
    wasserstein_tensor_distance,
)

__all__ = [
    "Distance",
    "entropic_wasserstein_distance",
    "objective",
    "wasserstein_distance",
    "wasserstein_matrix_distance",
    "wasserstein_tensor_distance",
]
