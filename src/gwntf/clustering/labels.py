"""Cluster labels from an embedding."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.cluster._spectral import cluster_qr, discretize
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from gwntf.core import FloatArray, InputError
from gwntf.geometry.neighbors import near_one, nearest_of

ASSIGN_LABELS = ("kmeans", "discretize", "cluster_qr")


def check_clusters(n_clusters: int, n_samples: int, n_components: int, how: str) -> None:
    """Check the number of clusters against the numbers of samples and components."""
    if n_clusters > n_samples:
        raise InputError("n_clusters", str(n_clusters), f"at most the number of samples, {n_samples}")
    if how != "kmeans" and n_clusters > n_components:
        allowed = f"at most n_components={n_components} with assign_labels={how!r}"
        raise InputError("n_clusters", str(n_clusters), allowed)


def assign(
    embedding: FloatArray, n_clusters: int, how: str, random_state: Any, kmeans_starts: int = 20
) -> NDArray[np.int_]:
    """Label the rows of an embedding.

    "kmeans" clusters the rows as in the paper. "discretize" and "cluster_qr" normalise the rows, compute the leading
    left singular vectors and rotate them to labels, which is better with many clusters. Runs on one thread, since the
    rounding depends on the number of threads.
    """
    with threadpool_limits(1):
        if how == "kmeans":
            means = KMeans(n_clusters, n_init=kmeans_starts, random_state=random_state)
            found = means.fit_predict(_near_one(embedding))
        else:
            rows = normalize(_near_one(embedding).astype(np.float64))
            vectors = np.linalg.svd(rows, full_matrices=False)[0][:, :n_clusters]
            vectors[~vectors.any(axis=1)] = 1  # a row of zeros has no direction, and the rotation divides by lengths
            rotate = {"discretize": partial(discretize, random_state=random_state), "cluster_qr": cluster_qr}
            found = rotate[how](vectors)
    return np.asarray(found, dtype=np.int_)


def _near_one(rows: FloatArray) -> FloatArray:
    """Divide by the power of two that brings the largest entry near one, to prevent overflow of squares."""
    _, exponent = np.frexp(rows.max())
    scaled: FloatArray = np.ldexp(rows, -exponent)
    return scaled


def nearest_label(embedding: FloatArray, rows: FloatArray, labels: NDArray[np.int_]) -> NDArray[np.int_]:
    """Return for every embedded sample the label of the row with the nearest direction."""
    new, known = (normalize(near_one(part.astype(np.float64))) for part in (embedding, rows))
    _, nearest = nearest_of(new, known, 1)
    found: NDArray[np.int_] = labels[nearest[:, 0]]
    return found
