"""The methods that the paper compares GWNTF with, each a choice of loss, order and graph.

| class | loss | order | graph |
|---|---|---|---|
| `NMF` | least squares | matrix | no |
| `GNMF` | least squares | matrix | yes |
| `SDNMF` | transport between pixels | matrix | yes |
| `NCP` | least squares | tensor | no |
| `GNCP` | least squares | tensor | yes |
| `SWIFT` | transport along every mode | tensor | no |
"""

from dataclasses import dataclass
from typing import Any

from gwntf.estimators.parts import Graph, LeastSquares, Matrix, PerModeTransport, PixelTransport, Tensor


@dataclass(eq=False, repr=False, kw_only=True)
class NMF(Matrix, LeastSquares):
    r"""Nonnegative matrix factorization with the least-squares loss.

    .. math:: F = \tfrac12 \lVert X - A B^\top \rVert^2

    by multiplicative updates (D. D. Lee and H. S. Seung, *Learning the parts of objects by non-negative
    matrix factorization*, Nature 401, 1999). Samples of any shape are taken as rows. At the end the columns
    of B are scaled to length one.

    Parameters
    ----------
    n_components : int, default=10
        Rank.
    **others
        `sample_norm`, `missing`, `init`, `n_init`, `max_iter`, `tol`, `n_clusters`, `assign_labels`,
        `engine`, `device`, `dtype`, `precision`, `callbacks`, `progress`, `checkpoint` and `random_state` are those
        of `GWNTF`, with the same defaults; ``init="graph"`` needs a class with a graph.

    Attributes
    ----------
    factors_, embedding_, components_, objective_, objective_curve_, n_iter_, status_, ...
        As for `GWNTF`, without `costs_`.

    Examples
    --------
    >>> from gwntf import NMF, datasets
    >>> X, _ = datasets.load_digits_tensor()
    >>> NMF(10, max_iter=50, tol=0, random_state=0).fit_transform(X[:100]).shape
    (100, 10)
    """


@dataclass(eq=False, repr=False, kw_only=True)
class GNMF(Graph, Matrix, LeastSquares):
    r"""Graph-regularized nonnegative matrix factorization.

    .. math::

        F = \tfrac12 \lVert X - A B^\top \rVert^2 + \tfrac{\mu}{4} \sum_{ij} V_{ij} \lVert a_i - a_j \rVert^2

    (D. Cai, X. He, J. Han and T. S. Huang, *Graph regularized nonnegative matrix factorization for data
    representation*, IEEE TPAMI 33, 2011). Samples of any shape are taken as rows. The columns of B are
    scaled to length one once, at the end, as its authors do.

    Parameters
    ----------
    n_components : int, default=10
        Rank.
    graph_reg : float, default=0.1
        Weight mu; the authors' value for clusters is 100.
    n_neighbors, graph_weight, graph_metric, graph, refine_labels
        The graph, as for `GWNTF`.
    **others
        As for `NMF`.

    Examples
    --------
    >>> from gwntf import GNMF, datasets
    >>> X, _ = datasets.load_digits_tensor()
    >>> GNMF(10, max_iter=50, tol=0, random_state=0).fit_predict(X[:100]).shape
    (100,)
    """


@dataclass(eq=False, repr=False, kw_only=True)
class NCP(Tensor, LeastSquares):
    r"""Nonnegative CP decomposition with the least-squares loss.

    .. math:: F = \tfrac12 \lVert X - [[A^{(1)}, \ldots, A^{(N)}]] \rVert^2

    by multiplicative updates, factors in turn (A. Shashua and T. Hazan, *Non-negative tensor factorization
    with applications to statistics and computer vision*, ICML 2005). At the end the columns of all but the
    sample factor are scaled to length one.

    Parameters
    ----------
    n_components : int, default=10
        Rank.
    sample_shape : tuple of int, optional
        Shape into which each row of a 2-D X is folded.
    **others
        As for `NMF`.

    Examples
    --------
    >>> from gwntf import NCP, datasets
    >>> X, _ = datasets.load_digits_tensor()
    >>> [factor.shape for factor in NCP(5, max_iter=50, tol=0, random_state=0).fit(X[:100]).factors_]
    [(100, 5), (8, 5), (8, 5)]
    """


@dataclass(eq=False, repr=False, kw_only=True)
class GNCP(Graph, Tensor, LeastSquares):
    r"""Graph-regularized nonnegative CP decomposition.

    .. math::

        F = \tfrac12 \lVert X - [[A^{(1)}, \ldots, A^{(N)}]] \rVert^2
            + \tfrac{\mu}{4} \sum_{ij} V_{ij} \lVert a_i - a_j \rVert^2

    the tensor form of `GNMF`, as compared with in the GWNTF paper.

    Parameters
    ----------
    n_components : int, default=10
        Rank.
    graph_reg : float, default=0.1
        Weight mu; the paper's value for clusters is 1e4.
    n_neighbors, graph_weight, graph_metric, graph, refine_labels
        The graph, as for `GWNTF`.
    sample_shape : tuple of int, optional
        Shape into which each row of a 2-D X is folded.
    **others
        As for `NMF`.

    Examples
    --------
    >>> from gwntf import GNCP, datasets
    >>> X, _ = datasets.load_digits_tensor()
    >>> GNCP(5, max_iter=50, tol=0, random_state=0).fit(X[:100]).components_.shape
    (5, 64)
    """


@dataclass(eq=False, repr=False, kw_only=True)
class SDNMF(Graph, PixelTransport):
    r"""Sinkhorn-distance nonnegative matrix factorization with a graph.

    .. math:: F = \sum_i W(x_i, \hat x_i) + \tfrac{\mu}{4} \sum_{ij} V_{ij} \lVert a_i - a_j \rVert^2

    with one transport per sample between all its entries (W. Qian, B. Hong, D. Cai, X. He and X. Li,
    *Non-negative matrix factorization with Sinkhorn distance*, IJCAI 2016). The default cost between pixels
    is |di| + |dj| scaled to at most one, whose kernel is applied one axis at a time and never formed.

    Parameters
    ----------
    n_components : int, default=10
        Rank.
    cost : "grid", another named cost, an array, a SeparableCost or None, default="grid"
        Ground cost between the entries of a sample; "grid" is the city-block distance on the sample's own
        shape, "grid2" the squared Euclidean one, both scaled to at most one.
    sample_shape : tuple of int, optional
        Shape of a sample where X is 2-D.
    graph_reg : float, default=0.1
        Weight mu; the authors' value for clusters is 10.
    transport_max_iter : int, default=15
        Scalings per transport step, the authors' value.
    n_neighbors, graph_weight, graph_metric, graph, reg, reg_m_data, reg_m_model, update, inner_iter,
    transport_tol, kernel_tol, warm_start_memory
        As for `GWNTF`.
    **others
        As for `NMF`.

    Examples
    --------
    >>> from gwntf import SDNMF, datasets
    >>> X, _ = datasets.load_digits_tensor()
    >>> SDNMF(5, max_iter=5, tol=0, random_state=0).fit_transform(X[:100]).shape
    (100, 5)
    """

    transport_max_iter: int = 15


@dataclass(eq=False, repr=False, kw_only=True)
class SWIFT(PerModeTransport):
    r"""Wasserstein nonnegative tensor factorization of counts.

    .. math:: F = \sum_n \sum_{\text{fibers}} W(x, \hat x)

    (A. Afshar, K. Yin, S. Yan, C. Qian, J. C. Ho, H. Park and J. Sun, *SWIFT: Scalable Wasserstein
    factorization for sparse nonnegative tensors*, AAAI 2021): `GWNTF` without a graph, with cosine costs
    between the slices of every mode and counts taken as they are.

    Parameters
    ----------
    n_components : int, default=10
        Rank.
    costs : "auto" or sequence, default="auto"
        As for `GWNTF`, but "auto" is "cosine" on every mode but the samples.
    sample_norm : {"l2", "l1"} or None, default=None
        Norm to which samples are scaled.
    sample_shape, reg, reg_m_data, reg_m_model, update, inner_iter, transport_max_iter, transport_tol, kernel_tol,
    warm_start_memory
        As for `GWNTF`.
    **others
        As for `NMF`.

    Examples
    --------
    >>> import numpy as np
    >>> from gwntf import SWIFT
    >>> counts = np.random.default_rng(0).poisson(1.0, (30, 6, 5))
    >>> SWIFT(3, max_iter=20, tol=0, random_state=0).fit(counts).components_.shape
    (3, 30)
    """

    sample_norm: str | None = None

    def _default_costs(self, shape: tuple[int, ...]) -> Any:
        return [None, *["cosine"] * (len(shape) - 1)]
