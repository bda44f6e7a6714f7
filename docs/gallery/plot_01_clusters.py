"""
Which images show the same thing?
=================================

Nine hundred handwritten digits, and nobody says which is which. ``GWNTF.for_clustering`` is set up for this: it builds a graph on the images, chooses its metric
without labels, factorizes over it and cuts the embedding into clusters. k-means and NMF are what one would try first.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from gwntf import GWNTF, NMF
from gwntf.datasets import load_digits_tensor
from gwntf.evaluation import clustering_accuracy

X, y = load_digits_tensor()
X, y = X[:900], y[:900]
rows = X.reshape(len(X), -1)

# %%
# Three ways to ten clusters. The accuracy is that of the best one-to-one matching of clusters and digits.

labels = {
    "k-means": KMeans(10, n_init=10, random_state=0).fit_predict(rows),
    "NMF, then k-means": NMF(10, max_iter=200, tol=0, n_clusters=10, random_state=0).fit_predict(X),
    "GWNTF.for_clustering": GWNTF.for_clustering(10, random_state=0).fit_predict(X),
}
for name, found in labels.items():
    print(f"{name:22} {clustering_accuracy(y, found):.3f}")

# %%
# The clusters of GWNTF, one a row: images drawn at random from each. Red ones are not of the commonest digit of their cluster.

found = labels["GWNTF.for_clustering"]
rng = np.random.default_rng(0)
figure, axes = plt.subplots(10, 18, figsize=(9, 5.2))
for row, cluster in zip(axes, np.unique(found), strict=True):
    members = np.flatnonzero(found == cluster)
    usual = np.bincount(y[members]).argmax()
    for ax, sample in zip(row, rng.choice(members, 18, replace=False), strict=True):
        ax.imshow(X[sample], cmap="Greys" if y[sample] == usual else "Reds")
        ax.set_axis_off()
figure.suptitle(f"ten clusters, {100 * clustering_accuracy(y, found):.0f}% right")
plt.show()
