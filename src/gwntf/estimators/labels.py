"""From an embedding to cluster labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from gwntf.core import FloatArray, InputError
from gwntf.estimators.sklearn_compat import cluster_qr, discretize

ASSIGN_LABELS = ("kmeans", "discretize", "cluster_qr")


def check_clusters(n_clusters: int, n_samples: int, n_components: int, how: str) -> None:
    """Check that so many clusters can be told apart."""
    if n_clusters > n_samples:
        raise InputError("n_clusters", str(n_clusters), f"at most the number of samples, {n_samples}")
    if how != "kmeans" and n_clusters > n_components:
        allowed = f"at most n_components={n_components} with assign_labels={how!r}"
        raise InputError("n_clusters", str(n_clusters), allowed)


def assign(
    embedding: FloatArray, n_clusters: int, how: str, random_state: Any, kmeans_starts: int = 20
) -> NDArray[np.int_]:
    """Label the rows of an embedding.

    "kmeans" takes them as they are (the paper's labelling). "discretize" and "cluster_qr" normalise the
    rows, take the leading left singular vectors and rotate them to labels, which holds up better with many
    clusters.
    """
    if how == "kmeans":
        means = KMeans(n_clusters, n_init=kmeans_starts, random_state=random_state)
        labels: NDArray[np.int_] = means.fit_predict(embedding)
        return labels
    rows = normalize(embedding.astype(np.float64))
    vectors = np.linalg.svd(rows, full_matrices=False)[0][:, :n_clusters]
    found = discretize(vectors, random_state=random_state) if how == "discretize" else cluster_qr(vectors)
    return np.asarray(found, dtype=np.int_)
