"""The paper's Wasserstein distances as plain functions of arrays.

May import `solvers` and everything below it. Start with `vectors` (Eq. 2 and 3), then `arrays`
(Definitions 1 and 2) and `objective` (F itself); `columns` and `plans` are what they stand on.
"""

from gwntf.distances.arrays import wasserstein_matrix_distance, wasserstein_tensor_distance
from gwntf.distances.columns import Distance
from gwntf.distances.objective import objective
from gwntf.distances.vectors import entropic_wasserstein_distance, wasserstein_distance

__all__ = [
    "Distance",
    "entropic_wasserstein_distance",
    "objective",
    "wasserstein_distance",
    "wasserstein_matrix_distance",
    "wasserstein_tensor_distance",
]
