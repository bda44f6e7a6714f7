"""The factorizations as scikit-learn estimators.

May import `distances`, `solvers` and everything below them. Start with `methods` and `gwntf`: each class is
put together from `parts` (an order, a loss, a graph) over `base`, which holds the fit of all factorizations,
and `fitted`, what they do afterwards; `files` writes and loads
models; `sklearn_compat` is the one file that touches scikit-learn's less public parts.
"""

from gwntf.estimators.files import load
from gwntf.estimators.gwntf import GWNTF
from gwntf.estimators.many import fit_many
from gwntf.estimators.methods import GNCP, GNMF, NCP, NMF, SDNMF, SWIFT

__all__ = ["GNCP", "GNMF", "GWNTF", "NCP", "NMF", "SDNMF", "SWIFT", "fit_many", "load"]
