"""
The effect of the entropy
=========================

``reg`` is the weight of the entropy in the transport. With a small weight mass moves only along the cheapest paths;
with a large weight every position sends some of its mass to all others.
"""

import matplotlib.pyplot as plt
import numpy as np

from gwntf import GWNTF

# %%
# Two hundred curves with one peak each, near one of three positions.

position = np.arange(60)
rng = np.random.default_rng(0)
centre = rng.choice([12, 30, 47], 200) + rng.normal(0, 1.5, 200)
X = np.exp(-(((position - centre[:, None]) / 3) ** 2) / 2)

regs = (0.002, 0.01, 0.05, 0.2)
figure, axes = plt.subplots(1, 4, figsize=(10, 2.8), sharey=True, layout="constrained")
for ax, reg in zip(axes, regs, strict=True):
    model = GWNTF(3, costs=(None, "grid"), reg=reg, graph_reg=0, max_iter=150, tol=0, random_state=0).fit(X)
    ax.plot(position, X[:40].T / X.sum(axis=1).mean(), color="0.8", linewidth=0.5)
    ax.plot(position, model.components_.T)
    ax.set(title=f"reg = {reg}", xlabel="position")
axes[0].set_ylabel("share of the mass")
plt.show()

# %%
# Grey: the data. Coloured: the three parts. With a small weight a part only has to be near the mass; its shape is not
# determined by the data and is jagged. With a large weight the plans spread the mass over the axis, and the parts
# become as wide as the plans. The default, one hundredth of the largest cost, is a good first value; where shapes
# matter, compare several values.
