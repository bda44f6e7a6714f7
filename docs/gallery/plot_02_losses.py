"""
What are digits made of, under three losses?
============================================

The same tensor model with the same rank, fitted to the same images: a part is the product of a column profile and a row profile. What differs is what counts as a misfit.
Least squares counts squared grey values, KL counts grey values relative to the model, and transport counts how far ink has to move.
"""

import matplotlib.pyplot as plt

from gwntf import GWNTF, NCP
from gwntf.datasets import load_digits_tensor
from gwntf.plots import plot_images

X, _ = load_digits_tensor()
X = X[:600]
common = {"n_components": 20, "tol": 0, "max_iter": 200, "random_state": 0}
models = {
    "least squares": NCP(**common),
    "KL": GWNTF(costs=(None, None, None), graph_reg=0, **common),
    "transport": GWNTF(costs=(None, "grid", "grid"), graph_reg=0, **common),
}

figure, axes = plt.subplots(2, 3, figsize=(9, 4.6), layout="constrained", height_ratios=[2, 1])
for (name, model), (top, bottom) in zip(models.items(), axes.T, strict=True):
    model.fit(X)
    parts = model.components_.reshape(-1, 8, 8)[model.embedding_.sum(axis=0).argsort()[::-1]]
    plot_images(parts, columns=5, ax=top).set_title(f"{name}\nparts")
    plot_images(model.reconstruct(X[:5]), columns=5, ax=bottom).set_title("five digits, rebuilt")
plt.show()

# %%
# Under transport the parts are sharper than the digits themselves: the loss forgives ink that lies a pixel beside its place, so the model does not have to spend
# parts on every place where a stroke may lie. That is what it is for, and also its price: as a copy of the pixels its reconstruction is the worst of the three.

for name, model in models.items():
    print(f"{name:14} relative error of the pixels {model.reconstruction_err_:.2f}")
