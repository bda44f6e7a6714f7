"""Transport plans between matching columns, held as their scalings and formed only when asked for."""

from dataclasses import dataclass

import numpy as np

from gwntf.backends import get_backend
from gwntf.core import FloatArray
from gwntf.geometry import Cost, Kernel
from gwntf.transport import Scaled


@dataclass(frozen=True)
class Plans:
    """Plans T = diag(u) K diag(v) with K = exp(-C / reg - 1), one for every pair of columns."""

    cost: Cost  # C, shared by all columns
    reg: float  # 1/lam
    kernel: Kernel  # K, which applies itself
    scaled: Scaled  # Log U, log V and the marginals Phi = T1 and Psi = T'1

    def total(self) -> FloatArray:
        """Sum of the plans of all columns, (I, I): rows are places of the data, columns places of the model."""
        matrix = self.cost if isinstance(self.cost, np.ndarray) else self.cost.to_matrix()
        log_kernel = -matrix / self.reg - 1
        summed = np.zeros(matrix.shape)
        for log_u, log_v in zip(self.scaled.log_u.T, self.scaled.log_v.T, strict=True):
            summed += np.exp(log_u[:, None] + log_kernel + log_v[None, :])
        return summed

    def mean_places(self, places: FloatArray) -> FloatArray:
        """Mean place to which the mass of every entry goes, Tp / T1; NaN where there is no mass.

        It is u (K (v p)) / Phi on logarithms: no plan is formed.

        Parameters
        ----------
        places : (I,) array
            p, the place of every entry, nonnegative.

        Returns
        -------
        (I, M) array
        """
        with get_backend("numpy").quiet():
            arrived = self.kernel.log_matmul(self.scaled.log_v + np.log(places)[:, None])
            means: FloatArray = np.exp(self.scaled.log_u + arrived - np.log(self.scaled.data_marginal))
        return means
