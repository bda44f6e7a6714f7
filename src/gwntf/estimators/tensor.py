"""Tensor methods: samples keep their axes."""

from collections.abc import Sequence
from typing import Any, ClassVar

from gwntf.estimators.constraints import NO_GRAPH_INIT
from gwntf.estimators.options import TransportOptions
from gwntf.estimators.parts import Graph, LeastSquares, PerModeTransport, Tensor
from gwntf.geometry import CostSpec, KNNGraph


class NCP(Tensor, LeastSquares):
    r"""Nonnegative CP decomposition with the least-squares loss.

    .. math:: F = \tfrac12 \lVert X - [[A^{(1)}, \ldots, A^{(N)}]] \rVert^2

    by sweeps over the components of every factor in turn (HALS) with extrapolation; the model is that of A. Shashua and
    T. Hazan, *Non-negative tensor factorization with applications to statistics and computer vision*, ICML 2005.

    Parameters
    ----------
    n_components : int, default=10
        Number of components (the rank of the model).
    parts : array or list of arrays, optional
        Known parts that the fit keeps: the first components, in this order; all others are free. They are known up to
        scale. An array has one part per row, of the shape of a sample; a list has one (I_n, n_parts) factor per axis.
        If all components are given, the parts may be any tensors, otherwise they must be of rank one.
    alpha : float or pair of floats, default=0.0
        Weight of the penalty on the factors, as in scikit-learn: alpha (l1_ratio |A|_1 + (1 - l1_ratio)/2 |A|^2) on the
        embedding of the normalised samples, and n_samples times as much on every other factor. A pair gives the weights
        for the embedding and for the parts.
    l1_ratio : float in [0, 1], default=0.0
        Mix of the penalty: 0 is the sum of squares (L2), 1 the sum of absolute values (L1), which makes factors sparse.
        Where the other factors have columns of sum one (transport and KL losses), L1 applies to the embedding only.
    sample_shape : tuple of int, optional
        Shape into which each row of a 2-D X is folded, for example (28, 28).
    sample_norm : {"l2", "l1"} or None, default="l2"
        Norm by which every sample is divided before the fit, so that all have equal influence.
    missing : {"error", "ignore"}, default="error"
        Whether NaN, or the mask of a masked array, raises an error or marks entries that were not observed.
    init : {"random", "nndsvd"} or list of arrays, default="random"
        Initial factors. A list has one array per axis, samples first.
    n_init : int, default=1
        Number of random starts; the one with the lowest objective is kept.
    max_iter : int, default=2000
        Maximum number of iterations.
    tol : float, default=1e-4
        The fit stops when the objective is predicted to decrease, in all further iterations, by at most ``tol`` times
        the larger of its size and that of the data; 0 runs `max_iter` iterations.
    engine : {"auto", "cpu", "numpy", "torch"}, default="auto"
        Library for the computations: "cpu" is compiled code on all cores, "numpy" the slow reference, "torch" runs on a
        GPU or on tensors. "auto" is "torch" for tensors and if a `device` is given, else "cpu" if numba is
        installed. A Dask array is processed by the workers of the current `distributed.Client`, if there is one.
    device : str, optional
        Torch device: "cuda", "cuda:1" or "cpu". By default that of X if X is a tensor.
    dtype : {"float32", "float64"}, optional
        Number type of the computations; by default that of X, or float32 with torch.
    callbacks : list, optional
        Objects that follow the fit: a `ProgressBar`, a `Checkpoint`, or functions, which are called with an `Iteration`
        after every iteration and stop the fit by returning True.
    random_state : int, RandomState or None, default=None
        Seed of the random initial factors.

    Attributes
    ----------
    embedding_ : (n_samples, n_components) array
        Contribution of each component to the sum of each sample, in the units of X.
    components_ : (n_components, n_features) array
        The parts, one flattened component per row, each of sum one; ``embedding_ @ components_`` is the model of X.
    factors_ : list of (I_n, n_components) arrays
        Model of the normalised samples, samples first; columns of all others have length one. These, `embedding_`,
        `components_` and `sample_scale_` are tensors on the device of X if X is a tensor.
    objective_, objective_curve_, objective_terms_
        Objective at `factors_`; its values at the start and after every iteration; its terms at the end.
    n_iter_, status_
        Number of iterations and why they ended (``status_.message`` is a sentence).
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
    >>> from gwntf import NCP, datasets
    >>> X, _ = datasets.load_digits_tensor()
    >>> [factor.shape for factor in NCP(5, random_state=0).fit(X[:100]).factors_]
    [(100, 5), (8, 5), (8, 5)]
    """

    _own_constraints: ClassVar = {"init": NO_GRAPH_INIT}

    def __init__(
        self,
        n_components: int = 10,
        *,
        parts: Any = None,
        alpha: float | tuple[float, float] = 0.0,
        l1_ratio: float = 0.0,
        sample_shape: Sequence[int] | None = None,
        sample_norm: str | None = "l2",
        missing: str = "error",
        init: str | Sequence[Any] = "random",
        n_init: int = 1,
        max_iter: int = 2000,
        tol: float = 1e-4,
        engine: str = "auto",
        device: str | None = None,
        dtype: str | None = None,
        callbacks: Sequence[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.parts = parts
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.sample_shape = sample_shape
        self.sample_norm = sample_norm
        self.missing = missing
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.engine = engine
        self.device = device
        self.dtype = dtype
        self.callbacks = callbacks
        self.random_state = random_state


class GNCP(Graph, Tensor, LeastSquares):
    r"""Graph-regularized nonnegative CP decomposition.

    .. math::

        F = \tfrac12 \lVert X - [[A^{(1)}, \ldots, A^{(N)}]] \rVert^2
            + \tfrac{\mu}{4} \sum_{ij} V_{ij} \lVert a_i - a_j \rVert^2

    the tensor form of `GNMF`, a baseline of the GWNTF paper (which uses a weight of 1e4 for clustering).

    Parameters
    ----------
    n_components : int, default=10
        Number of components (the rank of the model).
    parts : array or list of arrays, optional
        Known parts that the fit keeps: the first components, in this order; all others are free. They are known up to
        scale. An array has one part per row, of the shape of a sample; a list has one (I_n, n_parts) factor per axis.
        If all components are given, the parts may be any tensors, otherwise they must be of rank one.
    graph : "knn", KNNGraph, array, sparse matrix or None, default="knn"
        Graph on the samples. "knn" is ``KNNGraph()``, a neighbour graph with its default parameters; a symmetric
        (n_samples, n_samples) matrix is used as given, but cannot be extended to new samples; None is no graph.
    graph_reg : float, default=0.1
        Weight of the graph, for samples of norm one; 0 is no graph.
    alpha : float or pair of floats, default=0.0
        Weight of the penalty on the factors, as in scikit-learn: alpha (l1_ratio |A|_1 + (1 - l1_ratio)/2 |A|^2) on the
        embedding of the normalised samples, and n_samples times as much on every other factor. A pair gives the weights
        for the embedding and for the parts.
    l1_ratio : float in [0, 1], default=0.0
        Mix of the penalty: 0 is the sum of squares (L2), 1 the sum of absolute values (L1), which makes factors sparse.
        Where the other factors have columns of sum one (transport and KL losses), L1 applies to the embedding only.
    sample_shape : tuple of int, optional
        Shape into which each row of a 2-D X is folded, for example (28, 28).
    sample_norm : {"l2", "l1"} or None, default="l2"
        Norm by which every sample is divided before the fit, so that all have equal influence.
    missing : {"error", "ignore"}, default="error"
        Whether NaN, or the mask of a masked array, raises an error or marks entries that were not observed.
    init : {"random", "nndsvd", "graph"} or list of arrays, default="random"
        Initial factors. "graph" assigns components to the clusters of a spectral clustering of the graph; a list has
        one array per axis, samples first.
    n_init : int, default=1
        Number of random starts; the one with the lowest objective is kept.
    max_iter : int, default=2000
        Maximum number of iterations.
    tol : float, default=1e-4
        The fit stops when the objective is predicted to decrease, in all further iterations, by at most ``tol`` times
        the larger of its size and that of the data; 0 runs `max_iter` iterations.
    engine : {"auto", "cpu", "numpy", "torch"}, default="auto"
        Library for the computations: "cpu" is compiled code on all cores, "numpy" the slow reference, "torch" runs on a
        GPU or on tensors. "auto" is "torch" for tensors and if a `device` is given, else "cpu" if numba is
        installed. A Dask array is processed by the workers of the current `distributed.Client`, if there is one.
    device : str, optional
        Torch device: "cuda", "cuda:1" or "cpu". By default that of X if X is a tensor.
    dtype : {"float32", "float64"}, optional
        Number type of the computations; by default that of X, or float32 with torch.
    callbacks : list, optional
        Objects that follow the fit: a `ProgressBar`, a `Checkpoint`, or functions, which are called with an `Iteration`
        after every iteration and stop the fit by returning True.
    random_state : int, RandomState or None, default=None
        Seed of the random initial factors.

    Attributes
    ----------
    embedding_ : (n_samples, n_components) array
        Contribution of each component to the sum of each sample, in the units of X.
    components_ : (n_components, n_features) array
        The parts, one flattened component per row, each of sum one; ``embedding_ @ components_`` is the model of X.
    factors_ : list of (I_n, n_components) arrays
        Model of the normalised samples, samples first; columns of all others have length one. These, `embedding_`,
        `components_` and `sample_scale_` are tensors on the device of X if X is a tensor.
    graph_ : csr_array or None
        The graph, a symmetric matrix with both triangles stored.
    graph_metric_, modularity_
        With a `KNNGraph` of metric "auto": the chosen metric, and the modularity of every candidate.
    objective_, objective_curve_, objective_terms_
        Objective at `factors_`; its values at the start and after every iteration; its terms at the end.
    n_iter_, status_
        Number of iterations and why they ended (``status_.message`` is a sentence).
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
    >>> from gwntf import GNCP, datasets
    >>> X, _ = datasets.load_digits_tensor()
    >>> GNCP(5, random_state=0).fit(X[:100]).components_.shape
    (5, 64)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        parts: Any = None,
        graph: str | KNNGraph | Any = "knn",
        graph_reg: float = 0.1,
        alpha: float | tuple[float, float] = 0.0,
        l1_ratio: float = 0.0,
        sample_shape: Sequence[int] | None = None,
        sample_norm: str | None = "l2",
        missing: str = "error",
        init: str | Sequence[Any] = "random",
        n_init: int = 1,
        max_iter: int = 2000,
        tol: float = 1e-4,
        engine: str = "auto",
        device: str | None = None,
        dtype: str | None = None,
        callbacks: Sequence[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.parts = parts
        self.graph = graph
        self.graph_reg = graph_reg
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.sample_shape = sample_shape
        self.sample_norm = sample_norm
        self.missing = missing
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.engine = engine
        self.device = device
        self.dtype = dtype
        self.callbacks = callbacks
        self.random_state = random_state


class SWIFT(PerModeTransport):
    r"""Wasserstein nonnegative tensor factorization of counts.

    .. math:: F = \sum_n \sum_{\text{fibers}} W(x, \hat x)

    (A. Afshar, K. Yin, S. Yan, C. Qian, J. C. Ho, H. Park and J. Sun, *SWIFT: Scalable Wasserstein factorization for
    sparse nonnegative tensors*, AAAI 2021): `GWNTF` without a graph, with cosine costs between the slices of every axis
    but the samples, and counts taken as they are.

    Parameters
    ----------
    n_components : int, default=10
        Number of components (the rank of the model).
    parts : array or list of arrays, optional
        Known parts that the fit keeps: the first components, in this order; all others are free. They are known up to
        scale. An array has one part per row, of the shape of a sample; a list has one (I_n, n_parts) factor per axis.
        If all components are given, the parts may be any tensors, otherwise they must be of rank one.
    costs : "auto" or sequence, default="auto"
        One ground cost per axis of X (after folding), samples first: "grid" (|i - j|), "grid2" (its square), "cosine"
        or "euclidean" (between slices of the data), each scaled to at most one; an `AxisCost`, in the units of the
        axis; an (I, I) array, used as given; a `SeparableCost`; or None for an axis that is not transported. With None
        for every axis the loss is the
        Kullback-Leibler divergence. "auto" is None for the samples and "cosine" for every other axis.
    reg : float, default=0.01
        Weight of the entropy, in the units of the costs.
    reg_m : float or pair of floats, default=1.0
        Weight of the relaxed marginals: creating or destroying a unit of mass costs about this much. A pair gives the
        weights for the data and for the model; that of the data may be ``inf`` (exact marginal).
    alpha : float or pair of floats, default=0.0
        Weight of the penalty on the factors, as in scikit-learn: alpha (l1_ratio |A|_1 + (1 - l1_ratio)/2 |A|^2) on the
        embedding of the normalised samples, and n_samples times as much on every other factor. A pair gives the weights
        for the embedding and for the parts.
    l1_ratio : float in [0, 1], default=0.0
        Mix of the penalty: 0 is the sum of squares (L2), 1 the sum of absolute values (L1), which makes factors sparse.
        Where the other factors have columns of sum one (transport and KL losses), L1 applies to the embedding only.
    sample_shape : tuple of int, optional
        Shape into which each row of a 2-D X is folded, for example (28, 28).
    sample_norm : {"l2", "l1"} or None, default=None
        Norm by which every sample is divided before the fit; None uses the data unscaled.
    missing : {"error", "ignore"}, default="error"
        Whether NaN, or the mask of a masked array, raises an error or marks entries that were not observed.
    init : {"random", "nndsvd"} or list of arrays, default="random"
        Initial factors. A list has one array per axis, samples first.
    n_init : int, default=1
        Number of random starts; the one with the lowest objective is kept.
    max_iter : int, default=2000
        Maximum number of iterations.
    tol : float, default=1e-4
        The fit stops when the objective is predicted to decrease, in all further iterations, by at most ``tol`` times
        the larger of its size and that of the data; 0 runs `max_iter` iterations.
    transport : TransportOptions, optional
        Expert options of the transport solver.
    engine : {"auto", "cpu", "numpy", "torch"}, default="auto"
        Library for the computations: "cpu" is compiled code on all cores, "numpy" the slow reference, "torch" runs on a
        GPU or on tensors. "auto" is "torch" for tensors and if a `device` is given, else "cpu" if numba is
        installed. A Dask array is processed by the workers of the current `distributed.Client`, if there is one.
    device : str, optional
        Torch device: "cuda", "cuda:1" or "cpu". By default that of X if X is a tensor.
    dtype : {"float32", "float64"}, optional
        Number type of the computations; by default that of X, or float32 with torch.
    callbacks : list, optional
        Objects that follow the fit: a `ProgressBar`, a `Checkpoint`, or functions, which are called with an `Iteration`
        after every iteration and stop the fit by returning True.
    random_state : int, RandomState or None, default=None
        Seed of the random initial factors.

    Attributes
    ----------
    embedding_ : (n_samples, n_components) array
        Contribution of each component to the sum of each sample, in the units of X.
    components_ : (n_components, n_features) array
        The parts, one flattened component per row, each of sum one; ``embedding_ @ components_`` is the model of X.
    factors_ : list of (I_n, n_components) arrays
        Model of the normalised samples, samples first; columns of all others sum to one. These, `embedding_`,
        `components_` and `sample_scale_` are tensors on the device of X if X is a tensor.
    costs_ : tuple
        Resolved cost of every axis; a near-far cost has ``to_matrix()``, ``n_clusters`` and ``error``.
    objective_, objective_curve_, objective_terms_
        Objective at `factors_`; its values at the start and after every iteration; its terms at the end.
    n_iter_, status_
        Number of iterations and why they ended (``status_.message`` is a sentence).
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
    >>> import numpy as np
    >>> from gwntf import SWIFT
    >>> counts = np.random.default_rng(0).poisson(1.0, (30, 6, 5))
    >>> SWIFT(3, random_state=0).fit(counts).components_.shape
    (3, 30)
    """

    _own_constraints: ClassVar = {"init": NO_GRAPH_INIT}

    def __init__(
        self,
        n_components: int = 10,
        *,
        parts: Any = None,
        costs: str | Sequence[CostSpec] = "auto",
        reg: float = 0.01,
        reg_m: float | tuple[float, float] = 1.0,
        alpha: float | tuple[float, float] = 0.0,
        l1_ratio: float = 0.0,
        sample_shape: Sequence[int] | None = None,
        sample_norm: str | None = None,
        missing: str = "error",
        init: str | Sequence[Any] = "random",
        n_init: int = 1,
        max_iter: int = 2000,
        tol: float = 1e-4,
        transport: TransportOptions | None = None,
        engine: str = "auto",
        device: str | None = None,
        dtype: str | None = None,
        callbacks: Sequence[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.parts = parts
        self.costs = costs
        self.reg = reg
        self.reg_m = reg_m
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.sample_shape = sample_shape
        self.sample_norm = sample_norm
        self.missing = missing
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.transport = transport
        self.engine = engine
        self.device = device
        self.dtype = dtype
        self.callbacks = callbacks
        self.random_state = random_state

    def _default_costs(self, shape: tuple[int, ...]) -> Any:
        return [None, *["cosine"] * (len(shape) - 1)]


class GWNTF(Graph, PerModeTransport):
    r"""Wasserstein nonnegative tensor factorization with manifold regularization.

    Fits a nonnegative CP model :math:`\hat X = [[A^{(1)}, \ldots, A^{(N)}]]` to samples-first data X by minimising

    .. math::

        F(A) = \sum_n \sum_{\text{fibers}} W(x, \hat x)
               + \tfrac{\mu}{4} \sum_{ij} V_{ij} \lVert a_i - a_j \rVert^2,

    where W is the entropic, KL-relaxed transport cost between a fiber of the data and the same fiber of the model, a_i
    are the rows of the sample factor and V is a graph on the samples of weight :math:`\mu` = `graph_reg`.
    `docs/mathematics.md` derives every step.

    Parameters
    ----------
    n_components : int, default=10
        Number of components (the rank of the model).
    parts : array or list of arrays, optional
        Known parts that the fit keeps: the first components, in this order; all others are free. They are known up to
        scale. An array has one part per row, of the shape of a sample; a list has one (I_n, n_parts) factor per axis.
        If all components are given, the parts may be any tensors, otherwise they must be of rank one.
    costs : "auto" or sequence, default="auto"
        One ground cost per axis of X (after folding), samples first: "grid" (|i - j|), "grid2" (its square), "cosine"
        or "euclidean" (between slices of the data), each scaled to at most one; an `AxisCost`, in the units of the
        axis; an (I, I) array, used as given; a `SeparableCost`; or None for an axis that is not transported. With None
        for every axis the loss is the
        Kullback-Leibler divergence. "auto" is None for the samples and "grid" for every other axis.
    reg : float, default=0.01
        Weight of the entropy, in the units of the costs.
    reg_m : float or pair of floats, default=1.0
        Weight of the relaxed marginals: creating or destroying a unit of mass costs about this much. A pair gives the
        weights for the data and for the model; that of the data may be ``inf`` (exact marginal).
    graph : "knn", KNNGraph, array, sparse matrix or None, default="knn"
        Graph on the samples. "knn" is ``KNNGraph()``, a neighbour graph with its default parameters; a symmetric
        (n_samples, n_samples) matrix is used as given, but cannot be extended to new samples; None is no graph.
    graph_reg : float, default=0.1
        Weight of the graph, for samples of norm one; 0 is no graph.
    alpha : float or pair of floats, default=0.0
        Weight of the penalty on the factors, as in scikit-learn: alpha (l1_ratio |A|_1 + (1 - l1_ratio)/2 |A|^2) on the
        embedding of the normalised samples, and n_samples times as much on every other factor. A pair gives the weights
        for the embedding and for the parts.
    l1_ratio : float in [0, 1], default=0.0
        Mix of the penalty: 0 is the sum of squares (L2), 1 the sum of absolute values (L1), which makes factors sparse.
        Where the other factors have columns of sum one (transport and KL losses), L1 applies to the embedding only.
    sample_shape : tuple of int, optional
        Shape into which each row of a 2-D X is folded, for example (28, 28).
    sample_norm : {"l2", "l1"} or None, default="l2"
        Norm by which every sample is divided before the fit, so that all have equal influence.
    missing : {"error", "ignore"}, default="error"
        Whether NaN, or the mask of a masked array, raises an error or marks entries that were not observed.
    init : {"random", "nndsvd", "graph"} or list of arrays, default="random"
        Initial factors. "graph" assigns components to the clusters of a spectral clustering of the graph; a list has
        one array per axis, samples first.
    n_init : int, default=1
        Number of random starts; the one with the lowest objective is kept.
    max_iter : int, default=2000
        Maximum number of iterations.
    tol : float, default=1e-4
        The fit stops when the objective is predicted to decrease, in all further iterations, by at most ``tol`` times
        the larger of its size and that of the data; 0 runs `max_iter` iterations.
    transport : TransportOptions, optional
        Expert options of the transport solver.
    engine : {"auto", "cpu", "numpy", "torch"}, default="auto"
        Library for the computations: "cpu" is compiled code on all cores, "numpy" the slow reference, "torch" runs on a
        GPU or on tensors. "auto" is "torch" for tensors and if a `device` is given, else "cpu" if numba is
        installed. A Dask array is processed by the workers of the current `distributed.Client`, if there is one.
    device : str, optional
        Torch device: "cuda", "cuda:1" or "cpu". By default that of X if X is a tensor.
    dtype : {"float32", "float64"}, optional
        Number type of the computations; by default that of X, or float32 with torch.
    callbacks : list, optional
        Objects that follow the fit: a `ProgressBar`, a `Checkpoint`, or functions, which are called with an `Iteration`
        after every iteration and stop the fit by returning True.
    random_state : int, RandomState or None, default=None
        Seed of the random initial factors.

    Attributes
    ----------
    embedding_ : (n_samples, n_components) array
        Contribution of each component to the sum of each sample, in the units of X.
    components_ : (n_components, n_features) array
        The parts, one flattened component per row, each of sum one; ``embedding_ @ components_`` is the model of X.
    factors_ : list of (I_n, n_components) arrays
        Model of the normalised samples, samples first; columns of all others sum to one. These, `embedding_`,
        `components_` and `sample_scale_` are tensors on the device of X if X is a tensor.
    graph_ : csr_array or None
        The graph, a symmetric matrix with both triangles stored.
    graph_metric_, modularity_
        With a `KNNGraph` of metric "auto": the chosen metric, and the modularity of every candidate.
    costs_ : tuple
        Resolved cost of every axis; a near-far cost has ``to_matrix()``, ``n_clusters`` and ``error``.
    objective_, objective_curve_, objective_terms_
        Objective at `factors_`; its values at the start and after every iteration; its terms at the end.
    n_iter_, status_
        Number of iterations and why they ended (``status_.message`` is a sentence).
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
    >>> from gwntf import GWNTF, datasets
    >>> X, _ = datasets.load_digits_tensor()
    >>> model = GWNTF(n_components=10, random_state=0)
    >>> model.fit_transform(X[:100]).shape
    (100, 10)
    >>> model.transform(X[100:105]).shape
    (5, 10)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        parts: Any = None,
        costs: str | Sequence[CostSpec] = "auto",
        reg: float = 0.01,
        reg_m: float | tuple[float, float] = 1.0,
        graph: str | KNNGraph | Any = "knn",
        graph_reg: float = 0.1,
        alpha: float | tuple[float, float] = 0.0,
        l1_ratio: float = 0.0,
        sample_shape: Sequence[int] | None = None,
        sample_norm: str | None = "l2",
        missing: str = "error",
        init: str | Sequence[Any] = "random",
        n_init: int = 1,
        max_iter: int = 2000,
        tol: float = 1e-4,
        transport: TransportOptions | None = None,
        engine: str = "auto",
        device: str | None = None,
        dtype: str | None = None,
        callbacks: Sequence[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.parts = parts
        self.costs = costs
        self.reg = reg
        self.reg_m = reg_m
        self.graph = graph
        self.graph_reg = graph_reg
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.sample_shape = sample_shape
        self.sample_norm = sample_norm
        self.missing = missing
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.transport = transport
        self.engine = engine
        self.device = device
        self.dtype = dtype
        self.callbacks = callbacks
        self.random_state = random_state
