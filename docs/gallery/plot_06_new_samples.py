"""
Samples that come after the fit
===============================

A spectral clustering has no place for tomorrow's images. A factorization has: ``transform`` embeds them with the parts that were found, and ``predict``
gives them the clusters of the fit. Every new image is also joined by the graph to the training images most like it.
"""

import matplotlib.pyplot as plt
import numpy as np

from gwntf import GWNTF
from gwntf.datasets import load_digits_tensor
from gwntf.evaluation import clustering_accuracy
from gwntf.plots import principal_plane

X, y = load_digits_tensor()
train, new = X[:1200], X[1200:1500]
model = GWNTF.for_clustering(10, random_state=0)
labels = model.fit_predict(train)
predicted = model.predict(new)
print(f"accuracy on the training images {clustering_accuracy(y[:1200], labels):.3f}")
print(f"accuracy on the new ones        {clustering_accuracy(y[1200:1500], predicted):.3f}")

# %%
# Left: the embedding of the fit, coloured by cluster. Right: the new images in the same plane, embedded one by one, coloured by the cluster that they were given.

points = principal_plane(np.concatenate([model.embedding_, model.transform(new)]))
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), sharex=True, sharey=True, layout="constrained")
axes[0].scatter(*points[:1200].T, c=labels, cmap="tab10", s=8)
axes[0].set_title("training images")
axes[1].scatter(*points[:1200].T, color="0.88", s=8)
axes[1].scatter(*points[1200:].T, c=predicted, cmap="tab10", vmin=0, vmax=9, s=8)
axes[1].set_title("new images (grey: training images)")
for ax in axes:
    ax.set(xticks=[], yticks=[], xlabel="principal component 1")
axes[0].set_ylabel("principal component 2")
plt.show()
