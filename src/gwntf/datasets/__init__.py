"""Data sets as samples-first tensors with their labels.

May import what lies below `estimators`. Start with `digits`, a set that scikit-learn bundles; `images` holds
the loaders of the research sets (found on disk or downloaded through `fetch`), `synthetic` tensors with known
factors.
"""

from gwntf.datasets.digits import load_digits_tensor
from gwntf.datasets.images import load_coil20, load_pie_pose27
from gwntf.datasets.synthetic import make_kruskal_tensor

__all__ = ["load_coil20", "load_digits_tensor", "load_pie_pose27", "make_kruskal_tensor"]
