"""The samples in two dimensions."""

from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from gwntf.backends import to_host
from gwntf.core import FloatArray, InputError
from gwntf.data import as_real_array
from gwntf.estimators import TensorClustering
from gwntf.plots.frames import check_axes, check_model, new_axes

MAX_LEGEND = 20  # largest number of classes that are named in a legend


def plot_embedding(model_or_Z: Any, labels: Any = None, *, projection: Any = None, ax: Any = None) -> Any:
    """Draw samples as points in two dimensions, coloured by class.

    Parameters
    ----------
    model_or_Z : fitted factorization, fitted TensorClustering or (n, R) array
        Model whose `embedding_` is drawn, a clusterer (the `embedding_` of its `model_`), or an embedding, for example
        from `transform`.
    labels : (n,) array, optional
        Class of each sample, of any type that can be sorted; up to 20 classes are named in a legend. For a clusterer
        its `labels_` by default.
    projection : callable or transformer, optional
        Projection to two dimensions: a function from (n, R) to (n, 2), such as `flatten_embedding` (t-SNE), or an
        object with `fit_transform`; `principal_plane` by default.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from gwntf import GWNTF, datasets, plots
    >>> X, y = datasets.load_digits_tensor()
    >>> model = GWNTF(4, costs=(None, "grid", "grid"), max_iter=5, tol=0, random_state=0).fit(X[:60])
    >>> plots.plot_embedding(model, y[:60], ax=Figure().subplots()).get_xlabel()
    'principal component 1'
    """
    check_axes(ax)
    if isinstance(model_or_Z, TensorClustering):
        if not hasattr(model_or_Z, "model_"):
            raise InputError("model_or_Z", "a TensorClustering that is not fitted", "a fitted one")
        labels = model_or_Z.labels_ if labels is None else labels
        model_or_Z = model_or_Z.model_
    if hasattr(model_or_Z, "get_params"):
        check_model(model_or_Z)
        embedding = np.asarray(to_host(model_or_Z.embedding_), dtype=np.float64)
    else:
        allowed = "a fitted factorization or clusterer, or an embedding of shape (n_samples, n_components)"
        embedding = as_real_array(model_or_Z, "model_or_Z", allowed).astype(np.float64)
        if embedding.ndim != 2 or embedding.size == 0:
            raise InputError("model_or_Z", f"shape {embedding.shape}", allowed)
        if not np.isfinite(embedding).all():
            raise InputError("model_or_Z", "entries that are not finite", "finite numbers")
    if labels is not None and np.shape(labels) != (len(embedding),):
        raise InputError("labels", f"shape {np.shape(labels)}", f"one label for each of the {len(embedding)} samples")
    transform = getattr(projection, "fit_transform", principal_plane if projection is None else projection)
    if not callable(transform):
        allowed = "a function from (n, R) to (n, 2) or an object with fit_transform"
        raise InputError("projection", repr(projection), allowed)
    points = np.asarray(transform(embedding), dtype=np.float64)
    if points.shape != (len(embedding), 2):
        returns = "a projection that returns shape"
        raise InputError("projection", f"{returns} {points.shape}", f"{returns} {(len(embedding), 2)}")
    ax = new_axes(ax)
    if labels is None:
        ax.scatter(*points.T, s=8, linewidths=0, color="C0")
    else:
        names, codes = np.unique(np.asarray(labels), return_inverse=True)
        cmap = "tab10" if len(names) <= 10 else "tab20" if len(names) <= MAX_LEGEND else "nipy_spectral"
        top = {"tab10": 9, "tab20": 19}.get(cmap, max(len(names) - 1, 1))
        drawn = ax.scatter(*points.T, c=codes, cmap=cmap, vmin=0, vmax=top, s=8, linewidths=0)
        if len(names) <= MAX_LEGEND:
            handles, _ = drawn.legend_elements(num=list(range(len(names))))
            texts = [str(name).replace("$", "\\$") for name in names]
            place = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
            ax.legend(handles, texts, fontsize="small", frameon=False, **place)
    if projection is None:
        ax.set(xlabel="principal component 1", ylabel="principal component 2")
    ax.set(xticks=[], yticks=[])
    return ax


def principal_plane(embedding: FloatArray) -> FloatArray:
    """Return two principal components of the rows scaled to length one; the largest coordinate of each is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from gwntf.plots import principal_plane
    >>> principal_plane(np.random.default_rng(0).random((10, 4))).shape
    (10, 2)
    """
    rows = normalize(embedding.astype(np.float64))
    left, values, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    points = np.zeros((len(rows), 2))
    kept = min(2, len(values))
    points[:, :kept] = left[:, :kept] * values[:kept]
    largest = points[np.abs(points).argmax(axis=0), [0, 1]]
    return points * np.where(largest < 0, -1, 1)


def flatten_embedding(embedding: FloatArray) -> FloatArray:
    """Project an embedding to two dimensions by t-SNE of its rows scaled to length one, with a fixed seed.

    Examples
    --------
    >>> import numpy as np
    >>> from gwntf.plots import flatten_embedding
    >>> flatten_embedding(np.random.default_rng(0).random((20, 4))).shape
    (20, 2)
    """
    from sklearn.manifold import TSNE

    perplexity = min(30.0, max(1.0, (len(embedding) - 1) / 4))
    init = "pca" if min(embedding.shape) >= 2 else "random"
    plane = TSNE(perplexity=perplexity, init=init, random_state=0, max_iter=500)
    return np.asarray(plane.fit_transform(normalize(embedding.astype(np.float64))))
