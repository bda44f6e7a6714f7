"""GWNTF: a Wasserstein loss on every mode and a graph on the samples."""

import numbers
from dataclasses import dataclass
from typing import Any, Self

from gwntf.core import InputError
from gwntf.estimators.parts import Graph, PerModeTransport

CLUSTERING_PRESET: dict[str, Any] = {
    "update": "mm",
    "graph_reg": 4e4,
    "graph_metric": "auto",
    "graph_weight": "self-tuning",
    "init": "graph",
    "inner_iter": 10,
    "max_iter": 10,
    "tol": 0,
    "transport_max_iter": "auto",
    "assign_labels": "discretize",
    "refine_labels": True,
}
"""Parameters that `GWNTF.for_clustering` sets besides the rank."""


@dataclass(eq=False, repr=False, kw_only=True)
class GWNTF(Graph, PerModeTransport):
    r"""Wasserstein nonnegative tensor factorization with manifold regularization.

    Fits a nonnegative CP model X^ = [[A(1), ..., A(N)]] to samples-first data X by minimising

    .. math::

        F(A) = \sum_n \sum_{\text{fibers}} W(x, \hat x)
               + \tfrac{\mu}{4} \sum_{ij} V_{ij} \lVert a_i - a_j \rVert^2,

    where W is the entropic, KL-relaxed transport cost between a fiber of the data and the same fiber of the
    model, a_i are the rows of the sample factor and V is a p-nearest-neighbour graph on the samples.
    `docs/mathematics.md` derives every step.

    Parameters
    ----------
    n_components : int, default=10
        Rank R of the model.
    costs : "auto" or sequence, default="auto"
        One ground cost per axis of X (after folding), samples first: "grid" (|i - j|), "grid2" (its square), "cosine"
        or "euclidean" (between slices of the data), each scaled to at most one; an (I, I) array, taken as given; a
        `SeparableCost`; or None for a mode that is not transported. All None is the KL loss. "auto" is None for the
        samples and "grid" for every other mode.
    reg : float, default=0.01
        Entropic weight 1/lambda.
    reg_m_data, reg_m_model : float, default=1.0
        Weights alpha and beta of the relaxed marginals; `reg_m_data` may be ``inf``.
    graph_reg : float, default=0.1
        Weight mu of the graph; 0 leaves the graph out. `docs/new_samples.md` measures the default.
    n_neighbors : int, default=5
        p; at most ``n_samples - 1`` are used.
    graph_weight : {"binary", "cosine", "self-tuning"}, default="binary"
        Weights of the edges.
    graph_metric : str or callable, default="cosine"
        Which samples are near: "cosine" or "euclidean" between their entries; for images "orientation", with its
        variants "orientation-coarse" and "orientation-fine", and "gradient"; "wasserstein" is the transport distance of
        fibers; a callable takes samples, all or some of them, and returns one row each, compared by their distance.
        "auto" chooses by the modularity of the graph (`docs/clustering.md`): see `graph_metric_` and `modularity_`.
        New samples are joined to those of the fit by the same metric (`docs/new_samples.md`), for which the estimator
        keeps the normalised training samples.
    graph : sparse matrix or array of shape (n_samples, n_samples), optional
        A ready symmetric graph in place of the neighbour graph.
    sample_shape : tuple of int, optional
        Shape into which each row of a 2-D X is folded.
    sample_norm : {"l2", "l1"} or None, default="l2"
        Norm to which samples are scaled before anything else.
    missing : {"error", "ignore"}, default="error"
        Whether NaN, or the mask of a masked array, is an error or says that an entry was not observed.
    init : {"random", "nndsvd", "graph"} or list of arrays, default="random"
        Starting factors, samples first. "graph" assigns components to clusters of a spectral clustering.
    n_init : int, default=1
        Random starts; the lowest objective is kept.
    update : {"mm", "multiplicative", "paper"}, default="mm"
        Factor rule. "mm" never raises F while the transports are solved to their tolerance; "multiplicative" is the
        classic ratio; "paper" is Algorithm 1 as printed, which diverges.
    inner_iter : int, default=1
        Steps of the sample factor for each transport step; they cost little.
    max_iter, tol : int, float, default=1000, 1e-4
        Stop after so many outer iterations, or when F falls by at most ``tol * max(|F|, sum(X))``; ``tol=0`` runs all.
    transport_max_iter : int or "auto", default=10
        Scalings for each transport step (they start from the last ones). "auto" starts with two and doubles them, up to
        16, as the objective converges: the same result for less work.
    transport_tol : float, default=1e-6
        Relative change of a marginal at which its scalings stop.
    kernel_tol : float, default=0.02
        Relative error of a marginal that an approximate kernel may make. From 1000 samples on a "cosine" or "euclidean"
        cost between them is exact for near pairs and approximated for far ones (`costs_[0].error`); 0 uses all pairs.
    warm_start_memory : float, default=2**29
        Memory in bytes for scalings kept for the next transport step; if they need more, every step starts afresh.
    n_clusters : int, optional
        Clusters of `fit_predict`; `n_components` by default.
    assign_labels : {"kmeans", "discretize", "cluster_qr"}, default="kmeans"
        How `fit_predict` labels the embedding.
    refine_labels : bool, default=False
        Whether `fit_predict` then moves single samples to clusters of their neighbours while that raises the modularity
        of the labels on the graph, and keeps a spectral clustering refined in the same way if its modularity is higher.
    engine : {"auto", "cpu", "numpy", "torch", "dask"}, default="auto"
        Where the arithmetic runs: "cpu" is compiled and uses all cores (the first fit takes some time to compile),
        "numpy" is the reference, "torch" runs the whole fit on a GPU or another `device` (`docs/gpu.md`), "dask" on the
        workers of the current `distributed.Client` (`docs/scaling.md`). "auto" is "torch" for tensors and where a
        device is given, else "cpu" where numba is installed.
    device : str, optional
        For "torch": "cpu", "cuda" or "cuda:N"; by default that of a tensor X, and "cpu" for other X. For "dask":
        the same, on every worker, which then uses torch.
    dtype : {"float32", "float64"}, optional
        Number type; by default that of X, and float32 with engine "torch".
    precision : {"highest", "high"}, default="highest"
        For "torch": "high" lets products of float32 matrices on a GPU use TF32, which has three digits.
    callbacks : list of callables, optional
        Called with an `Iteration` after every outer iteration; a true return value ends the fit.
    progress : bool, default=False
        Whether to show a progress bar.
    checkpoint : path or Checkpoint, optional
        File to which the fit writes its state every 30 seconds, or as a `Checkpoint` says, and on Ctrl-C or SIGTERM. A
        fit that finds the file resumes from it, with the same result to the bit, and removes it at the end. A file of
        other data or settings is refused.
    random_state : int, RandomState or None, default=None
        Seed of the starting factors and of the labelling.

    Attributes
    ----------
    factors_ : list of (I_n, R) arrays
        Model of the normalised samples, samples first; columns of all others sum to one. These, `embedding_`,
        `components_` and `sample_scale_` are tensors on the device of X if X is a tensor.
    embedding_ : (n_samples, R) array
        How much each component adds to the sum of each sample: the sample factor in the units of X.
    components_ : (R, n_features) array
        Products of the other factors, one flattened component per row, each of sum one; ``embedding_ @ components_`` is
        the model of X.
    labels_ : (n_samples,) array
        Set by `fit_predict`; always a NumPy array.
    graph_ : csr_array or None
        V, full and symmetric.
    costs_ : tuple
        Resolved cost of every axis; a near-far cost has ``to_matrix()``, ``n_clusters`` and ``error``.
    objective_, objective_curve_, objective_terms_
        F at `factors_`; its values from the start on; its last value term by term.
    n_iter_, status_
        Outer iterations done and why they ended (``status_.message`` says what to change).
    reconstruction_err_ : float
        |X - X^| / |X| on the normalised training data.
    sample_scale_ : (n_samples,) array
        Norm of each training sample.
    sample_shape_ : tuple
        Shape of one sample.
    n_features_in_ : int
        Size of the second axis of X, as scikit-learn counts; a sample has the shape `sample_shape_`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gwntf import GWNTF
    >>> X = load_digits().images[:100]
    >>> model = GWNTF(n_components=10, graph_reg=10, max_iter=30, tol=1e-2, random_state=0)
    >>> model.fit_transform(X).shape
    (100, 10)
    >>> model.transform(X[:5]).shape
    (5, 10)
    """

    @classmethod
    def for_clustering(cls, n_clusters: int, **params: Any) -> Self:
        """Return an estimator set up for `fit_predict`.

        Three components a cluster, a graph chosen without labels that also gives the start and refines the labels, and
        ten iterations of ten steps of the samples (`docs/clustering.md`). Those in `params` replace these.

        Parameters
        ----------
        n_clusters : int
            Clusters to find.
        **params
            Any parameter of the class.

        Examples
        --------
        >>> from gwntf import GWNTF
        >>> model = GWNTF.for_clustering(n_clusters=10, random_state=0)
        >>> model.n_components, model.graph_weight
        (30, 'self-tuning')
        """
        given: Any = n_clusters
        if isinstance(given, bool) or not isinstance(given, numbers.Integral) or given < 1:
            raise InputError("n_clusters", repr(n_clusters), "a whole number of at least 1")
        preset = {**CLUSTERING_PRESET, "n_components": 3 * int(n_clusters), "n_clusters": int(n_clusters)}
        return cls(**{**preset, **params})
