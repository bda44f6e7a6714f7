"""Data sets as samples-first tensors with their labels.

May import the subpackages below `estimators`. Start with `images`: the digits of scikit-learn and the research data
sets, which are read from disk or downloaded. `synthetic` generates tensors with known factors.
"""

from gwntf.datasets.images import load_coil20, load_digits_tensor, load_pie_pose27
from gwntf.datasets.synthetic import make_kruskal_tensor

__all__ = ["load_coil20", "load_digits_tensor", "load_pie_pose27", "make_kruskal_tensor"]
