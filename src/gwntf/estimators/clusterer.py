"""TensorClustering: clustering of images and other multi-way samples."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin, clone
from sklearn.utils.validation import check_is_fitted

from gwntf.backends import to_host
from gwntf.clustering import ASSIGN_LABELS, assign, check_clusters, most_modular, nearest_label
from gwntf.core import FloatArray
from gwntf.estimators.base import Model, check_parameters
from gwntf.estimators.constraints import AT_LEAST_ONE, CONSTRAINTS
from gwntf.estimators.nested import NestedDefaults
from gwntf.estimators.notices import warn_graph_parts
from gwntf.estimators.parts import Graph
from gwntf.estimators.sklearn_compat import StrOptions, count_samples, unweighted
from gwntf.estimators.tensor import GWNTF
from gwntf.geometry import CostSpec, KNNGraph
from gwntf.io import check_target
from gwntf.losses import Plain

COMPONENTS_PER_CLUSTER = 3
_ROW_STEPS = 10


@dataclass(eq=False)
class TrainingRows:
    """Training data of `predict`, in a separate object so that `predict` sets no attribute of the clusterer."""

    samples: Any = None  # the X of `fit`, until the rows are computed
    rows: FloatArray | None = None  # embedding of the training samples as new ones


def _auto_graph() -> KNNGraph:
    """Return the graph for which "auto" is a shorthand."""
    return KNNGraph(metric="auto", weight="self-tuning")


class TensorClustering(ClusterMixin, NestedDefaults):  # type: ignore[misc]
    """Clustering of images, spectra or other nonnegative samples, by a factorization with a large graph weight.

    A neighbour graph, whose metric is chosen without labels, gives the initial factors of a `GWNTF` with a large graph
    weight; its embedding is labelled, and the labels are refined on the graph. The defaults are the same for all data
    (`docs/clustering.md` has results and the effect of each step).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_components : int, optional
        Number of components of the factorization; three per cluster by default.
    graph : "auto", KNNGraph, array or sparse matrix, default="auto"
        Graph on the samples. "auto" is ``KNNGraph(metric="auto", weight="self-tuning")``.
    graph_reg : float, default=4e4
        Weight of the graph.
    costs : "auto" or sequence, default="auto"
        Ground costs of the axes, as for `GWNTF`.
    sample_shape : tuple of int, optional
        Shape into which each row of a 2-D X is folded, for example (28, 28).
    missing : {"error", "ignore"}, default="error"
        Whether NaN, or the mask of a masked array, raises an error or marks entries that were not observed.
    max_iter : int, default=10
        Number of iterations. With a large graph weight more iterations oversmooth the embedding.
    assign_labels : {"discretize", "kmeans", "cluster_qr"}, default="discretize"
        Method that labels the embedding.
    refine_labels : bool, default=True
        Whether single samples are then moved to clusters of their neighbours while that raises the modularity of the
        labels on the graph; a spectral clustering refined in the same way is used instead if its modularity is higher.
    engine : {"auto", "cpu", "numpy", "torch"}, default="auto"
        Library for the computations, as for `GWNTF`.
    device : str, optional
        Torch device: "cuda", "cuda:1" or "cpu". By default that of X if X is a tensor.
    dtype : {"float32", "float64"}, optional
        Number type of the computations; by default that of X, or float32 with torch.
    callbacks : list, optional
        Objects that follow the fit: a `ProgressBar`, a `Checkpoint`, or functions, which are called with an `Iteration`
        after every iteration and stop the fit by returning True.
    random_state : int, RandomState or None, default=None
        Seed of the initial factors, of the choice of the metric and of the labels.

    Attributes
    ----------
    labels_ : (n_samples,) array
        Cluster of every training sample, from 0.
    model_ : GWNTF
        The fitted factorization, with embedding, components and reconstructions.
    graph_metric_ : str
        Chosen metric of the graph, if the metric is "auto".
    modularity_ : dict
        Modularity of the clusters of every candidate metric, if the metric is "auto".
    n_iter_ : int
        Number of iterations of the factorization.
    n_features_in_ : int
        Size of the second axis of X, as scikit-learn counts.

    Examples
    --------
    >>> from gwntf import TensorClustering, datasets
    >>> X, y = datasets.load_digits_tensor()
    >>> clusterer = TensorClustering(n_clusters=10, random_state=0)
    >>> labels = clusterer.fit_predict(X[:300])
    >>> clusterer.predict(X[300:303]).shape
    (3,)
    """

    labels_: NDArray[np.int_]
    _training: TrainingRows

    _shorthands: ClassVar = {"graph": ("auto", _auto_graph)}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: CONSTRAINTS[name]
            for name in ("graph_reg", "costs", "sample_shape", "missing", "max_iter", "engine", "device", "dtype")
        },
        "n_clusters": [AT_LEAST_ONE],
        "n_components": [AT_LEAST_ONE, None],
        "graph": [StrOptions({"auto"}), KNNGraph, "array-like", "sparse matrix"],
        "assign_labels": [StrOptions(set(ASSIGN_LABELS))],
        "refine_labels": ["boolean"],
        "callbacks": CONSTRAINTS["callbacks"],
        "random_state": CONSTRAINTS["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        graph: str | KNNGraph | Any = "auto",
        graph_reg: float = 4e4,
        costs: str | Sequence[CostSpec] = "auto",
        sample_shape: Sequence[int] | None = None,
        missing: str = "error",
        max_iter: int = 10,
        assign_labels: str = "discretize",
        refine_labels: bool = True,
        engine: str = "auto",
        device: str | None = None,
        dtype: str | None = None,
        callbacks: Sequence[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.graph = graph
        self.graph_reg = graph_reg
        self.costs = costs
        self.sample_shape = sample_shape
        self.missing = missing
        self.max_iter = max_iter
        self.assign_labels = assign_labels
        self.refine_labels = refine_labels
        self.engine = engine
        self.device = device
        self.dtype = dtype
        self.callbacks = callbacks
        self.random_state = random_state

    def factorization(self) -> GWNTF:
        """Return the unfitted factorization used by `fit`."""
        graph: Any = self.graph
        if isinstance(graph, str):
            graph = _auto_graph()
        elif isinstance(graph, KNNGraph):
            graph = clone(graph)  # parameters that are set later must not change the fitted model
        model = GWNTF(
            self.n_components or COMPONENTS_PER_CLUSTER * self.n_clusters,
            costs=self.costs,
            graph=graph,
            graph_reg=self.graph_reg,
            sample_shape=self.sample_shape,
            missing=self.missing,
            init="graph",
            max_iter=self.max_iter,
            tol=0,
            engine=self.engine,
            device=self.device,
            dtype=self.dtype,
            callbacks=self.callbacks,
            random_state=self.random_state,
        )
        model._plain = Plain(row_steps=_ROW_STEPS)  # `max_iter` counts its iterations
        return for_clusters(model, self.n_clusters)

    @unweighted
    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Find the clusters of X.

        Parameters
        ----------
        X : array-like, sparse array or chunked array of shape (n_samples, I_1, ..., I_{N-1})
            Nonnegative data, samples first, as for `GWNTF`.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        check_parameters(self)
        model = self.factorization()
        check_clusters(self.n_clusters, count_samples(X), model.n_components, self.assign_labels)
        model.fit(X)
        self.set_fitted(model, self._labels(model))
        self._training.samples = X
        return self

    @unweighted
    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int_]:
        """Find the clusters of X and return `labels_`.

        Parameters
        ----------
        X : array-like, sparse array or chunked array of shape (n_samples, I_1, ..., I_{N-1})
            Nonnegative data, samples first.
        y : None
            Ignored.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.fit(X, y).labels_

    def set_fitted(self, model: GWNTF, labels: NDArray[np.int_]) -> None:
        """Set the fitted attributes from a fitted factorization and the labels of its samples."""
        for name in ("graph_metric_", "modularity_", "n_iter_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        self.model_, self.labels_ = model, labels
        self._training = TrainingRows()

    def _labels(self, model: GWNTF) -> NDArray[np.int_]:
        graph = model.graph_
        if graph is not None and self.graph_reg > 0:
            warn_graph_parts(graph, self.n_clusters)
        labels = assign(to_host(model.factors_[0]), self.n_clusters, self.assign_labels, self.random_state)
        if not self.refine_labels or graph is None:
            return labels
        return most_modular(graph, labels, self.n_clusters, self.random_state)

    def predict(self, X: Any) -> NDArray[np.int_]:
        """Return the clusters of new samples.

        Each sample gets the label of the training sample whose embedding has the nearest direction, both embedded as
        new samples. The clusterer keeps a reference to the X of `fit`, which must not change, until the first call.

        Parameters
        ----------
        X : array-like
            Samples of the shape seen in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return nearest_label(self.model_._rows_as_new(X), self._training_rows(), self.labels_)

    def _training_rows(self) -> FloatArray:
        """Return the embedding of the training samples as new ones, computed on first use."""
        training = self._training
        if training.rows is None:
            training.rows, training.samples = self.model_._rows_as_new(training.samples), None
        return training.rows

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted clusterer to a file that `gwntf.load` reads.

        The training samples are embedded as new ones first, unless `predict` was called before.

        Parameters
        ----------
        path : path
            File to write, usually with the suffix ".gwntf".
        """
        from gwntf.estimators.files import write_clusterer  # imports this module

        check_is_fitted(self)
        check_target(path)
        write_clusterer(self, path, self._training_rows())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "ignore"
        return tags


def for_clusters(model: Model, n_clusters: int) -> Model:
    """Set the number of clusters for ``init="graph"`` and ``KNNGraph(metric="auto")``; return the model."""
    if isinstance(model, Graph):
        model._clusters = n_clusters
    return model
