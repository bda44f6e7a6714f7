"""
Samples that come after the fit
===============================

A spectral clustering has no place for tomorrow's images. A factorization has: ``transform`` embeds them with the parts that were found, and ``predict``
gives them the clusters of the fit. With ``extend_graph=True`` every new image is also tied to the training images most like it.
"""

import matplotlib.pyplot as plt

from gwntf import GWNTF
from gwntf.datasets import load_digits_tensor
from gwntf.evaluation import clustering_accuracy
from gwntf.plots import plot_embedding, plot_reconstructions

X, y = load_digits_tensor()
train, new = X[:1200], X[1200:1500]
model = GWNTF.for_clustering(10, extend_graph=True, random_state=0)
labels = model.fit_predict(train)
predicted = model.predict(new)
print(f"accuracy on the training images {clustering_accuracy(y[:1200], labels):.3f}")
print(f"accuracy on the new ones        {clustering_accuracy(y[1200:1500], predicted):.3f}")

# %%
# Left: the embedding of the fit, coloured by cluster. Right: new images alone, embedded one by one, coloured by the cluster that they were given.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
plot_embedding(model, labels, ax=left).set_title("training images")
plot_embedding(model.transform(new), predicted, ax=right).set_title("new images")
plt.show()

# %%
# The parts also rebuild new images. At so large a weight the graph makes neighbours alike, so this is what an image has in common with those around it.

plot_reconstructions(model, new[:10])
plt.show()
