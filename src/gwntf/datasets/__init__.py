"""Data sets as samples-first tensors with their labels.

May import what lies below `estimators`. Start with `images`: scikit-learn's digits and the research sets, found
on disk or downloaded. `synthetic` makes tensors with known factors.
"""

from gwntf.datasets.images import load_coil20, load_digits_tensor, load_pie_pose27
from gwntf.datasets.synthetic import make_kruskal_tensor

__all__ = ["load_coil20", "load_digits_tensor", "load_pie_pose27", "make_kruskal_tensor"]
