"""
Filling in missing pixels
=========================

Three tenths of the pixels were lost. ``missing="ignore"`` leaves them out of every sum, NaN says where they are, and ``fit_impute`` returns the images with
their holes filled. Nothing is guessed beforehand.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.impute import KNNImputer, SimpleImputer

from gwntf import GWNTF, neighbor_graph
from gwntf.datasets import load_digits_tensor

X, _ = load_digits_tensor()
rows = X[:1000].reshape(1000, -1)
hidden = np.random.default_rng(0).random(rows.shape) < 0.3
holed = np.where(hidden, np.nan, rows)

# %%
# A high rank and a light graph fill best (see the page on missing data): the graph lets an image borrow from images like it. Images with holes have noisy
# neighbours, so a second fit takes the graph of the filled ones.

model = GWNTF(
    160,
    costs=(None, None),
    graph_reg=1,
    n_neighbors=8,
    graph_weight="self-tuning",
    max_iter=150,
    tol=0,
    missing="ignore",
    random_state=0,
)
first = model.fit_impute(holed)
second = model.set_params(graph=neighbor_graph(first, 8, weight="self-tuning")).fit_impute(holed)
filled = {
    "mean of the pixel": SimpleImputer(keep_empty_features=True).fit_transform(holed),
    "KNNImputer": KNNImputer(n_neighbors=5, keep_empty_features=True).fit_transform(holed),
    "GWNTF": first,
    "GWNTF, second graph": second,
}
errors = {
    name: np.linalg.norm((values - rows)[hidden]) / np.linalg.norm(rows[hidden]) for name, values in filled.items()
}

# %%
# The error is ``|X - filled| / |X|`` over the lost pixels.

shown = np.arange(8) + 20
figure, axes = plt.subplots(6, 8, figsize=(8.5, 6), layout="constrained")
lines = {"true": rows, "with holes": holed, **filled}
for row, (name, values) in zip(axes, lines.items(), strict=True):
    for ax, sample in zip(row, shown, strict=True):
        ax.set_facecolor("tab:orange")
        ax.imshow(values[sample].reshape(8, 8), cmap="Greys", vmin=0, vmax=rows.max())
        ax.set(xticks=[], yticks=[])
    label = name if name not in errors else f"{name}\nerror {errors[name]:.2f}"
    row[0].set_ylabel(label, rotation=0, ha="right", va="center")
plt.show()
