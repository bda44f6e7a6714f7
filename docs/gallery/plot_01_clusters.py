"""
Which images show the same thing?
=================================

Nine hundred handwritten digits, without their labels. ``TensorClustering`` builds a neighbour graph on the images,
whose metric is selected without labels, fits a factorization with this graph, and assigns clusters from its
embedding. It is compared with k-means on the pixels and on an NMF embedding.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from gwntf import NMF, TensorClustering
from gwntf.datasets import load_digits_tensor
from gwntf.evaluation import clustering_accuracy

X, y = load_digits_tensor()
X, y = X[:900], y[:900]
rows = X.reshape(len(X), -1)

# %%
# Three ways to find ten clusters. The accuracy is that of the best one-to-one matching of clusters and digits.

labels = {
    "k-means": KMeans(10, n_init=10, random_state=0).fit_predict(rows),
    "NMF, then k-means": KMeans(10, n_init=10, random_state=0).fit_predict(NMF(10, random_state=0).fit_transform(X)),
    "TensorClustering": TensorClustering(10, random_state=0).fit_predict(X),
}
for name, found in labels.items():
    print(f"{name:18} {clustering_accuracy(y, found):.3f}")

# %%
# The clusters of ``TensorClustering``, one per row, with images drawn at random from each. Images in red are not of the
# most frequent digit of their cluster.

found = labels["TensorClustering"]
rng = np.random.default_rng(0)
figure, axes = plt.subplots(10, 18, figsize=(9, 5.2))
for row, cluster in zip(axes, np.unique(found), strict=True):
    members = np.flatnonzero(found == cluster)
    usual = np.bincount(y[members]).argmax()
    for ax, sample in zip(row, rng.choice(members, 18, replace=False), strict=True):
        ax.imshow(X[sample], cmap="Greys" if y[sample] == usual else "Reds")
        ax.set_axis_off()
figure.suptitle(f"ten clusters, {100 * clustering_accuracy(y, found):.0f}% correct")
plt.show()
