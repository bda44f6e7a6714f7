"""
Parts of digits under three losses
==================================

The same images and the same number of parts, with three losses. Least squares sums squared differences of grey values,
KL compares grey values relative to those of the model, and transport measures how far mass has to move across the image
(``SDNMF``, here without its graph). In its cost, moving mass by three pixels is as expensive as removing it.
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
    reconstructed = model.reconstruct(rows[:8]).reshape(-1, 8, 8)
    plot_images(reconstructed, columns=4, ax=bottom).set_title("eight digits, reconstructed")
plt.show()

# %%
# The digits are centred, so all three losses find similar parts, strokes, without using the distances between pixels.
# Transport has the largest reconstruction error, because it tolerates mass in a neighbouring pixel. It is the loss for
# data in which positions vary, as the next example shows.

for name, model in models.items():
    print(f"{name:14} relative error of the pixels {model.reconstruction_err_:.2f}")
