"""The factorizations as scikit-learn estimators.

May import `distances`, `solver` and everything below them. Start with `methods` and `gwntf`: each class is put together
from `parts` (an order, a loss, a graph) over `base`, the parameters and the fit of all factorizations, and `fitted`,
their methods for new samples. `files` writes and loads models; `sklearn_compat` wraps scikit-learn's private parts.
"""

from gwntf.estimators.base import fit_many
from gwntf.estimators.files import load
from gwntf.estimators.gwntf import GWNTF
from gwntf.estimators.methods import GNCP, GNMF, NCP, NMF, SDNMF, SWIFT
from gwntf.estimators.mini_batch import MiniBatchGWNTF

__all__ = ["GNCP", "GNMF", "GWNTF", "NCP", "NMF", "SDNMF", "SWIFT", "MiniBatchGWNTF", "fit_many", "load"]
