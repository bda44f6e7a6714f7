"""
Embedding and clustering new samples
====================================

Spectral clustering does not extend to new images. A factorization does: ``transform`` embeds them with the parts of the
fit, and ``predict`` of ``TensorClustering`` assigns them to its clusters. The graph joins every new image to the most
similar training images.
"""

import matplotlib.pyplot as plt
import numpy as np

from gwntf import TensorClustering
from gwntf.datasets import load_digits_tensor
from gwntf.evaluation import clustering_accuracy
from gwntf.plots import principal_plane

X, y = load_digits_tensor()
train, new = X[:1200], X[1200:1500]
clusterer = TensorClustering(10, random_state=0)
labels = clusterer.fit_predict(train)
predicted = clusterer.predict(new)
model = clusterer.model_
print(f"accuracy on the training images {clustering_accuracy(y[:1200], labels):.3f}")
print(f"accuracy on the new images      {clustering_accuracy(y[1200:1500], predicted):.3f}")

# %%
# Left: the embedding of the training images, coloured by cluster. Right: the new images in the same plane, embedded one
# by one and coloured by predicted cluster.

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
