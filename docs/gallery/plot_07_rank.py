"""
How many parts do the data have?
================================

The error of the reconstruction falls with every further part and never says stop. Fits from different random starts do: as long as the data have as many parts, all of
them find the same ones, and beyond that each splits them its own way. ``stability_curve`` measures how far fits agree.
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
    plot_stability(curve, ax=ax).set_title(f"a tensor of rank {rank} with noise; found: {curve.best_rank}")
plt.show()

# %%
# Solid lines are means over all pairs of fits, bands one deviation. On the left agreement is full up to the true rank and falls right after it, where the error has
# stopped falling too. On the right the rule of ``best_rank`` errs: it stops at the first fall, and agreement is full once more at five, where the error stops falling.
# So look at the curve, not only at the number.
