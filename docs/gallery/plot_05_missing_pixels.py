"""
Imputing missing pixels
=======================

Three tenths of the pixels are missing, marked by NaN. With ``missing="ignore"`` they are left out of the loss, and
``fit_impute`` returns the images with the missing pixels imputed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.impute import KNNImputer, SimpleImputer

from gwntf import GWNTF, KNNGraph
from gwntf.datasets import load_digits_tensor

X, _ = load_digits_tensor()
rows = X[:1000].reshape(1000, -1)
hidden = np.random.default_rng(0).random(rows.shape) < 0.3
observed = np.where(hidden, np.nan, rows)

# %%
# A high rank with a small graph weight gives the best imputation (see the page on missing data): the graph shares
# information between similar images. Missing pixels make the neighbours less reliable, so a second fit uses the graph
# of the imputed images.

graph = KNNGraph(8, weight="self-tuning")
model = GWNTF(
    160,
    costs=(None, None),
    graph=graph,
    graph_reg=1,
    max_iter=150,
    tol=0,
    missing="ignore",
    random_state=0,
)
first = model.fit_impute(observed)
second = model.set_params(graph=graph.build(first)).fit_impute(observed)
filled = {
    "mean of the pixel": SimpleImputer(keep_empty_features=True).fit_transform(observed),
    "KNNImputer": KNNImputer(n_neighbors=5, keep_empty_features=True).fit_transform(observed),
    "GWNTF": first,
    "GWNTF, second graph": second,
}
errors = {
    name: np.linalg.norm((values - rows)[hidden]) / np.linalg.norm(rows[hidden]) for name, values in filled.items()
}

# %%
# The error is ``|X - filled| / |X|`` over the missing pixels.

shown = np.arange(8) + 20
figure, axes = plt.subplots(6, 8, figsize=(8.5, 6), layout="constrained")
lines = {"true": rows, "observed": observed, **filled}
for row, (name, values) in zip(axes, lines.items(), strict=True):
    for ax, sample in zip(row, shown, strict=True):
        ax.set_facecolor("tab:orange")
        ax.imshow(values[sample].reshape(8, 8), cmap="Greys", vmin=0, vmax=rows.max())
        ax.set(xticks=[], yticks=[])
    label = name if name not in errors else f"{name}\nerror {errors[name]:.2f}"
    row[0].set_ylabel(label, rotation=0, ha="right", va="center")
plt.show()
