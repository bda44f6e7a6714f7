"""The factorizations as scikit-learn estimators.

May import `distances`, `solvers` and everything below them. Start with `gwntf`, a preset over `base`, which
holds what all factorizations share; `sklearn_compat` is the one file that touches scikit-learn's less
public parts.
"""

from gwntf.estimators.gwntf import GWNTF

__all__ = ["GWNTF"]
