"""Data sets as samples-first tensors with their labels.

May import what lies below `estimators`. One file: `digits`.
"""

from gwntf.datasets.digits import load_digits_tensor

__all__ = ["load_digits_tensor"]
