"""The factorizations and the clusterer as scikit-learn estimators.

May import `distances`, `solver` and everything below them. Start with `matrix` and `tensor`: each class lists its
parameters and combines mixins of `parts` (an order, a loss, a graph) with `base`, the fit of all factorizations, and
`fitted`, their methods for new samples. `clusterer` uses a factorization for clustering, `unmixer` known parts.
`options` has expert options, `constraints` the allowed values of parameters; `files` writes and loads models,
`sklearn_compat` wraps private parts of scikit-learn.
"""

from gwntf.estimators.base import fit_many
from gwntf.estimators.clusterer import TensorClustering
from gwntf.estimators.files import load
from gwntf.estimators.matrix import GNMF, NMF, SDNMF
from gwntf.estimators.mini_batch import MiniBatchGWNTF
from gwntf.estimators.options import TransportOptions
from gwntf.estimators.tensor import GNCP, GWNTF, NCP, SWIFT
from gwntf.estimators.unmixer import Unmixer

__all__ = [
    "GNCP",
    "GNMF",
    "GWNTF",
    "NCP",
    "NMF",
    "SDNMF",
    "SWIFT",
    "MiniBatchGWNTF",
    "TensorClustering",
    "TransportOptions",
    "Unmixer",
    "fit_many",
    "load",
]
