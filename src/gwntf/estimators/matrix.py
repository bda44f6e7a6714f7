"""Matrix methods: every sample is one row."""

from collections.abc import Sequence
from typing import Any, ClassVar

from gwntf.estimators.constraints import NO_GRAPH_INIT
from gwntf.estimators.options import TransportOptions
from gwntf.estimators.parts import Graph, LeastSquares, Matrix, PixelTransport
from gwntf.geometry import CostSpec, KNNGraph


class NMF(Matrix, LeastSquares):
    r"""Nonnegative matrix factorization with the least-squares loss.

    .. math:: F = \tfrac12 \lVert X - A B^\top \rVert^2

    by sweeps over the components (HALS) with extrapolation; the model is that of D. D. Lee and H. S. Seung, *Learning
    the parts of objects by non-negative matrix factorization*, Nature 401, 1999. Samples of any shape are flattened to
    rows.

    Parameters
    ----------
    n_components : int, default=10
        Number of components (the rank of the model).
    parts : array or list of arrays, optional
        Known parts that the fit keeps: the first components, in this order; all others are free. They are known up to
        scale. An array has one part per row.
    alpha : float or pair of floats, default=0.0
        Weight of the penalty on the factors, as in scikit-learn: alpha (l1_ratio |A|_1 + (1 - l1_ratio)/2 |A|^2) on the
        embedding of the normalised samples, and n_samples times as much on every other factor. A pair gives the weights
        for the embedding and for the parts.
    l1_ratio : float in [0, 1], default=0.0
        Mix of the penalty: 0 is the sum of squares (L2), 1 the sum of absolute values (L1), which makes factors sparse.
        Where the other factors have columns of sum one (transport and KL losses), L1 applies to the embedding only.
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
    >>> from gwntf import NMF, datasets
    >>> X, _ = datasets.load_digits_tensor()
    >>> NMF(10, random_state=0).fit_transform(X[:100]).shape
    (100, 10)
    """

    _own_constraints: ClassVar = {"init": NO_GRAPH_INIT}

    def __init__(
        self,
        n_components: int = 10,
        *,
        parts: Any = None,
        alpha: float | tuple[float, float] = 0.0,
        l1_ratio: float = 0.0,
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


class GNMF(Graph, Matrix, LeastSquares):
    r"""Graph-regularized nonnegative matrix factorization.

    .. math::

        F = \tfrac12 \lVert X - A B^\top \rVert^2 + \tfrac{\mu}{4} \sum_{ij} V_{ij} \lVert a_i - a_j \rVert^2

    with a graph V on the samples of weight :math:`\mu` = `graph_reg` (D. Cai, X. He, J. Han and T. S. Huang, *Graph
    regularized nonnegative matrix factorization for data representation*, IEEE TPAMI 33, 2011, who use a weight of 100
    for clustering). Samples of any shape are flattened to rows.

    Parameters
    ----------
    n_components : int, default=10
        Number of components (the rank of the model).
    parts : array or list of arrays, optional
        Known parts that the fit keeps: the first components, in this order; all others are free. They are known up to
        scale. An array has one part per row.
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
    >>> from gwntf import GNMF, KNNGraph, datasets
    >>> X, _ = datasets.load_digits_tensor()
    >>> GNMF(10, graph=KNNGraph(n_neighbors=7), random_state=0).fit_transform(X[:100]).shape
    (100, 10)
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


class SDNMF(Graph, PixelTransport):
    r"""Sinkhorn-distance nonnegative matrix factorization with a graph.

    .. math:: F = \sum_i W(x_i, \hat x_i) + \tfrac{\mu}{4} \sum_{ij} V_{ij} \lVert a_i - a_j \rVert^2

    with one transport per sample between all its entries (W. Qian, B. Hong, D. Cai, X. He and X. Li, *Non-negative
    matrix factorization with Sinkhorn distance*, IJCAI 2016, who use a graph of weight 10 and 15 scalings). The kernel
    of a grid cost is applied one axis at a time and never formed.

    Parameters
    ----------
    n_components : int, default=10
        Number of components (the rank of the model).
    parts : array or list of arrays, optional
        Known parts that the fit keeps: the first components, in this order; all others are free. They are known up to
        scale. An array has one part per row.
    cost : "grid", another named cost, array, AxisCost, SeparableCost or None, default="grid"
        Ground cost between the entries of a sample. "grid" is the city-block distance on the shape of the sample,
        "grid2" the squared Euclidean one, both scaled to at most one; None is the Kullback-Leibler divergence.
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
        Shape of a sample where X is 2-D.
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
    >>> from gwntf import SDNMF, datasets
    >>> X, _ = datasets.load_digits_tensor()
    >>> SDNMF(5, max_iter=5, tol=0, random_state=0).fit_transform(X[:100]).shape
    (100, 5)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        parts: Any = None,
        cost: CostSpec = "grid",
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
        self.cost = cost
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
