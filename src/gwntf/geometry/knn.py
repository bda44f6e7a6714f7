"""KNNGraph: the parameters of a neighbour graph."""

from __future__ import annotations

import numbers
from typing import Any

from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from gwntf.core import InputError
from gwntf.data import as_data
from gwntf.geometry.features import GRAPH_METRICS, GraphMetric
from gwntf.geometry.graph import GRAPH_WEIGHTS, neighbor_graph


class KNNGraph(BaseEstimator):  # type: ignore[misc]
    """Nearest-neighbour graph: every sample is joined to its nearest neighbours, and the graph is symmetrised.

    Pass it as the `graph` of an estimator, which builds the graph from the normalised samples and extends it to new
    samples. In a parameter search its parameters have names such as ``graph__n_neighbors``.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of nearest neighbours; at most ``n_samples - 1`` are used.
    metric : str or callable, default="cosine"
        Distance between samples: "cosine" or "euclidean" between their entries; for images "orientation", with its
        variants "orientation-coarse" and "orientation-fine", and "gradient"; "wasserstein" is the transport distance
        between fibers. "auto" chooses by the modularity of the graph (see the clustering guide). A callable takes an
        array of samples and returns one feature vector for each, compared by the Euclidean distance; it must treat
        every sample independently.
    weight : {"binary", "cosine", "self-tuning"}, default="binary"
        Weights of the edges: 1, the cosine of the two samples, or exp(-d_ij^2 / (s_i s_j)) with s_i the distance of a
        sample to its 7th neighbour.

    Examples
    --------
    >>> from gwntf import GWNTF, KNNGraph
    >>> model = GWNTF(10, graph=KNNGraph(n_neighbors=7, weight="self-tuning"))
    >>> model.get_params()["graph__n_neighbors"]
    7
    """

    def __init__(self, n_neighbors: int = 5, *, metric: GraphMetric = "cosine", weight: str = "binary") -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.weight = weight

    def check(self) -> None:
        """Raise `InputError` for invalid parameters."""
        count: Any = self.n_neighbors
        if isinstance(count, bool) or not isinstance(count, numbers.Integral) or count < 1:
            raise InputError("n_neighbors", repr(count), "a whole number of at least 1")
        if not callable(self.metric) and self.metric not in (*GRAPH_METRICS, "auto"):
            allowed = f"one of {', '.join(map(repr, GRAPH_METRICS))}, 'auto' or a function"
            raise InputError("metric", repr(self.metric), allowed)
        if self.weight not in GRAPH_WEIGHTS:
            raise InputError("weight", repr(self.weight), f"one of {', '.join(map(repr, GRAPH_WEIGHTS))}")

    def build(self, X: Any, *, missing: str = "error") -> csr_array:
        """Build the graph of the samples X, for example to reuse it in several fits.

        Parameters
        ----------
        X : array-like, sparse array or chunked array of shape (n_samples, I_1, ..., I_{N-1})
            Nonnegative data, samples first. Estimators first divide samples by their norm, which affects "euclidean"
            and callables. A `numpy.memmap`, zarr or Dask array is read one block at a time.
        missing : {"error", "ignore"}
            Whether NaN, or the mask of a masked array, raises an error or marks entries that were not observed; two
            samples are then compared on the entries observed in both.

        Returns
        -------
        csr_array of shape (n_samples, n_samples)

        Examples
        --------
        >>> from gwntf import KNNGraph
        >>> KNNGraph(1).build([[1.0, 0.0], [2.0, 0.1], [0.0, 3.0], [0.1, 1.0]]).toarray().astype(int)
        array([[0, 1, 0, 0],
               [1, 0, 0, 0],
               [0, 0, 0, 1],
               [0, 0, 1, 0]])
        """
        self.check()
        if missing not in ("error", "ignore"):
            raise InputError("missing", repr(missing), "'error' or 'ignore'")
        if self.metric == "auto":
            raise InputError("metric", "'auto', which only estimators support", "a named metric or a function")
        return neighbor_graph(as_data(X, missing=missing), self.n_neighbors, weight=self.weight, metric=self.metric)
