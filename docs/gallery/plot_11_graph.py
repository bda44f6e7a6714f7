"""
What does the graph do?
=======================

``graph_reg`` is the weight of a penalty that draws the embeddings of neighbouring samples together. Without it samples are explained each by itself; with much of it
what counts is whose neighbour a sample is.
"""

import matplotlib.pyplot as plt

from gwntf import GWNTF
from gwntf.datasets import load_digits_tensor
from gwntf.evaluation import clustering_accuracy
from gwntf.plots import flatten_embedding, plot_embedding

X, y = load_digits_tensor()
X, y = X[:700], y[:700]

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for ax, weight in zip(axes, (0, 0.1, 1e4), strict=True):
    model = GWNTF(
        20,
        costs=(None, "grid", "grid"),
        graph_reg=weight,
        inner_iter=10,
        max_iter=60,
        tol=0,
        n_clusters=10,
        random_state=0,
    )
    accuracy = clustering_accuracy(y, model.fit_predict(X))
    plot_embedding(model, y, projection=flatten_embedding, ax=ax)
    title = (
        f"graph_reg = {weight:g}\nclusters {100 * accuracy:.0f}% right, pixels {model.reconstruction_err_:.2f} wrong"
    )
    ax.set_title(title, fontsize="medium")
    if ax is not axes[-1]:
        ax.get_legend().remove()
plt.show()

# %%
# Colours are the true digits, which no fit has seen; the plane is t-SNE of the embedding. The graph buys clusters and pays with reconstruction; here a
# weight of 1 has all of the gain and hardly any of the price. The weights of the paper, 1e4, serve clusters alone.
