"""
What are digits made of, under three losses?
============================================

The same images, the same number of parts, three ideas of a misfit. Least squares counts squared grey values, KL counts grey values relative to those of the model, and
transport counts how far ink has to move across the image (``SDNMF``, here without its graph). Its cost says that three pixels are far: moving ink so far costs as much as
taking it away.
"""

import matplotlib.pyplot as plt
import numpy as np

from gwntf import GWNTF, NMF, SDNMF, SeparableCost
from gwntf.datasets import load_digits_tensor
from gwntf.plots import plot_images

X, _ = load_digits_tensor()
X = X[:400]
rows = X.reshape(400, -1)
apart = np.abs(np.subtract.outer(np.arange(8), np.arange(8))) / 3
cost = SeparableCost([apart, apart])  # |di| / 3 + |dj| / 3
common = {"n_components": 16, "max_iter": 150, "tol": 0, "random_state": 0}
models = {
    "least squares": NMF(**common).fit(rows),
    "KL": GWNTF(costs=(None, None), graph_reg=0, **common).fit(rows),
    "transport": SDNMF(cost=cost, sample_shape=(8, 8), graph_reg=0, reg=0.1, **common).fit(rows),
}

figure, axes = plt.subplots(2, 3, figsize=(9, 5), layout="constrained", height_ratios=[4, 2])
for (name, model), (top, bottom) in zip(models.items(), axes.T, strict=True):
    parts = model.components_.reshape(-1, 8, 8)[model.embedding_.sum(axis=0).argsort()[::-1]]
    plot_images(parts, columns=4, ax=top).set_title(f"{name}: parts")
    rebuilt = model.reconstruct(rows[:8]).reshape(-1, 8, 8)
    plot_images(rebuilt, columns=4, ax=bottom).set_title("eight digits, rebuilt")
plt.show()

# %%
# Digits are centred already, so the three find parts of one kind, strokes, and none needs to be told that a neighbouring pixel is near. As a copy of the pixels transport
# is the worst of them, because a pixel beside its place is nearly right to it. It is the loss for data in which places are not exact, as the next example shows.

for name, model in models.items():
    print(f"{name:14} relative error of the pixels {model.reconstruction_err_:.2f}")
