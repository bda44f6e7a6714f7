"""
Choosing the number of components
=================================

The reconstruction error decreases with every additional component and does not indicate the right number. The agreement
of fits from different random starts does: up to the true rank all of them find the same components, beyond it each
splits them differently. ``stability_curve`` measures this agreement.
"""

import matplotlib.pyplot as plt

from gwntf import NCP
from gwntf.datasets import make_kruskal_tensor
from gwntf.model_selection import stability_curve
from gwntf.plots import plot_stability

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for ax, rank in zip(axes, (3, 5), strict=True):
    X, _ = make_kruskal_tensor((60, 12, 10), rank, noise=0.1, random_state=rank)
    curve = stability_curve(NCP(max_iter=500, tol=1e-6), X, range(1, 9), n_seeds=5, random_state=0)
    plot_stability(curve, ax=ax).set_title(f"tensor of rank {rank} with noise; estimated: {curve.best_rank}")
plt.show()

# %%
# Solid lines are means over all pairs of fits, bands are one standard deviation. On the left fits agree up to the
# true rank and no longer beyond it, where the error has stopped decreasing too. On the right ``best_rank`` is wrong:
# its rule stops at the first decrease of the agreement, but fits agree again at five, where the error stops
# decreasing. Inspect the curve, not only the number.
