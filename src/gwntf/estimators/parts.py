"""Mixins of the estimators: an order, a loss, a graph."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from gwntf import losses
from gwntf.clustering import choose_graph, spectral_labels, start_from_labels
from gwntf.core import InputError, Relaxation, marginal_weights
from gwntf.data import DataTensor, check_sample_shape
from gwntf.estimators.base import Factorization
from gwntf.estimators.notices import warn_all_pairs
from gwntf.estimators.options import TransportOptions
from gwntf.geometry import (
    CostSpec,
    KNNGraph,
    SeparableCost,
    Ties,
    TrainingSamples,
    check_cost,
    check_costs,
    check_graph,
    neighbor_graph,
)
from gwntf.geometry.costs import COMPARED_COSTS, PAIRS_LIMIT
from gwntf.losses import Loss, SimplexLoss, transport_loss
from gwntf.solver import resolve_long_costs, with_mass_of
from gwntf.transport import TransportLimits

_MAX_SCALINGS, _FEWER_SCALINGS = 96, 16
"""Maximum number of scalings per transport with max_iter="auto"; fewer for the scheme of the papers, and for new
samples, whose many steps share warm starts."""

_SPECTRAL_SEED = 0
"""Seed of the spectral clustering for ``init="graph"``, the same for all fits."""


class Tensor(Factorization):
    """Tensor order: samples keep their axes; the rows of a 2-D X are folded to `sample_shape`."""

    sample_shape: Sequence[int] | None

    def _fold(self, data: DataTensor) -> tuple[DataTensor, tuple[int, ...]]:
        if self.sample_shape is not None:
            data = data.reshape(check_sample_shape(self.sample_shape, data.shape))
        shape = data.shape[1:]
        if data.sparse and self.parts is not None and len(self._held(shape)) < len(shape):
            return self._flattened(data), shape
        return data, shape

    def _flattened(self, data: DataTensor) -> DataTensor:
        """Return sparse samples as rows, for parts that are not of rank one."""
        return data.reshape((math.prod(data.shape[1:]),))


class Matrix(Factorization):
    """Matrix order: every sample is flattened to a row."""

    def _fold(self, data: DataTensor) -> tuple[DataTensor, tuple[int, ...]]:
        return data.reshape((math.prod(data.shape[1:]),)), data.shape[1:]


class FixedLoss(Factorization):
    """Loss without parameters, given by the class attribute `loss`; the same for new samples."""

    loss: ClassVar[Loss]

    @property
    def _degrees(self) -> tuple[int, int]:
        return 2, 2

    def _loss(self, checked: None, tensor: DataTensor) -> Loss:  # noqa: ARG002
        return self.loss

    def _loss_of_new_samples(self) -> Loss:
        return self.loss


class LeastSquares(FixedLoss):
    """Least-squares loss 1/2 |X - X^|^2."""

    loss = losses.LeastSquares()


class Transport(Factorization):
    """Wasserstein loss: entropic transport with relaxed marginals along the axes with a cost."""

    reg: float
    reg_m: float | tuple[float, float]
    transport: TransportOptions | None

    def _relaxation(self) -> Relaxation:
        weights = marginal_weights(self.reg_m)
        if math.isinf(weights[1]):
            raise InputError("reg_m", repr(self.reg_m), "a finite weight for the model; that of the data may be inf")
        return Relaxation(self.reg, *weights)

    def _options(self) -> TransportOptions:
        options = TransportOptions() if self.transport is None else self.transport
        options.check()
        return options

    def _check_loss(self, shape: tuple[int, ...], names: Sequence[Any] | None = None) -> tuple[CostSpec, ...]:
        self._relaxation()
        self._options()
        return self._check_costs(shape, names)

    def _check_costs(self, shape: tuple[int, ...], names: Sequence[Any] | None) -> tuple[CostSpec, ...]:
        raise NotImplementedError

    def _loss(self, checked: tuple[CostSpec, ...], tensor: DataTensor) -> Loss:
        tol = self._options().kernel_tol
        self.costs_ = resolve_long_costs(checked, tensor, self._relaxation(), tol)
        for mode, (spec, cost) in enumerate(zip(checked, self.costs_, strict=True)):
            near_far = isinstance(spec, str) and spec in COMPARED_COSTS and tol > 0
            if near_far and isinstance(cost, np.ndarray) and len(cost) > PAIRS_LIMIT:
                warn_all_pairs(mode, len(cost), tol)
        return self._transport_loss(_FEWER_SCALINGS if self._plain else _MAX_SCALINGS)

    def _loss_of_new_samples(self) -> SimplexLoss:
        return self._transport_loss(_FEWER_SCALINGS).for_new_samples()

    def _transport_loss(self, most: int) -> SimplexLoss:
        options = self._options()
        adaptive = options.max_iter == "auto"
        return transport_loss(
            self.costs_,
            self._relaxation(),
            TransportLimits(most if adaptive else int(options.max_iter), options.tol),
            warm_limit=options.max_memory,
            adaptive=adaptive,
        )


class PerModeTransport(Tensor, Transport):
    """Wasserstein loss with one cost per axis."""

    costs: str | Sequence[CostSpec]

    def _check_costs(self, shape: tuple[int, ...], names: Sequence[Any] | None) -> tuple[CostSpec, ...]:
        return check_costs(self._default_costs(shape) if self.costs == "auto" else self.costs, shape, names)

    def _default_costs(self, shape: tuple[int, ...]) -> Any:  # noqa: ARG002
        return "auto"

    def _flattened(self, data: DataTensor) -> DataTensor:  # noqa: ARG002
        """Raise an error: the axes of the samples have their own costs."""
        allowed = "parts of rank one, dense samples, or samples with one axis"
        raise InputError("parts", "tensors that are not of rank one, with sparse samples", allowed)


class PixelTransport(Matrix, Transport):
    """Wasserstein loss with one cost between all entries of a sample; samples are not transported."""

    cost: CostSpec
    sample_shape: Sequence[int] | None

    def _fold(self, data: DataTensor) -> tuple[DataTensor, tuple[int, ...]]:
        if self.sample_shape is None:
            return super()._fold(data)
        return data, check_sample_shape(self.sample_shape, data.shape)

    def _check_costs(self, shape: tuple[int, ...], names: Sequence[Any] | None) -> tuple[CostSpec, ...]:
        cost = self.cost
        if isinstance(cost, str) and cost in ("grid", "grid2"):
            cost = SeparableCost.on_grid(self.sample_shape_, power=1 if cost == "grid" else 2)
        return None, check_cost(cost, shape[1], "cost", names)


class Graph(Factorization):
    """Graph penalty on the differences between the embeddings of neighbouring samples."""

    graph: Any
    graph_reg: float
    init: Any

    _shorthands: ClassVar = {**Factorization._shorthands, "graph": ("knn", KNNGraph)}

    _clusters: int | None = None
    """Number of clusters for ``metric="auto"`` and ``init="graph"``; `n_components` by default."""

    @property
    def _degrees(self) -> tuple[int, int]:
        low, high = super()._degrees
        return low, 2 if self.graph_reg > 0 and self.graph is not None else high

    def _rule(self) -> KNNGraph | None:
        """Return the `KNNGraph` to build, or None if the graph is precomputed or not needed."""
        if self.graph_reg == 0 and self.init != "graph":
            return None
        if isinstance(self.graph, str):
            return KNNGraph()
        return self.graph if isinstance(self.graph, KNNGraph) else None

    def _check_graph(self, n_samples: int) -> csr_array | None:
        if isinstance(self.init, str) and self.init == "graph":
            if self.graph is None:
                raise InputError("init", "'graph' with graph=None", "another init, or a graph")
            if self.n_init > 1:
                raise InputError("n_init", repr(self.n_init), "1 with init='graph'")
        rule = self._rule()
        if rule is not None:
            rule.check()
        ready = self.graph is not None and not isinstance(self.graph, str | KNNGraph)
        return check_graph(self.graph, n_samples) if ready else None

    def _build_graph(self, given: csr_array | None, tensor: DataTensor) -> tuple[csr_array | None, float]:
        self._training: TrainingSamples | None = None
        rule = self._rule()
        if rule is None:
            return given, self.graph_reg
        samples = tensor.reshape(self.sample_shape_)
        if rule.metric == "auto":
            clusters = self._clusters or self.n_components
            self.graph_metric_, graph, self.modularity_ = choose_graph(
                samples, rule.n_neighbors, rule.weight, clusters, self.random_state
            )
            rule = clone(rule).set_params(metric=self.graph_metric_)
        else:
            graph = neighbor_graph(samples, rule.n_neighbors, weight=rule.weight, metric=rule.metric)
        if samples.in_memory and self.graph_reg > 0:
            self._training = TrainingSamples(samples, clone(rule))
        return graph, self.graph_reg

    def _ties(self, tensor: DataTensor) -> Ties | None:
        if self._training is None:
            return None
        return Ties(self._training.ties(tensor.reshape(self.sample_shape_)), self.factors_[0], float(self.graph_reg))

    @property
    def _graph_left_out(self) -> bool:
        return self.graph_ is not None and self.graph_reg > 0 and self._training is None

    def _prepare_start(self, tensor: DataTensor) -> None:
        if isinstance(self.init, str) and self.init == "graph":
            graph = csr_array((tensor.shape[0],) * 2) if self.graph_ is None else self.graph_
            self._start_labels = spectral_labels(graph, self._clusters or self.n_components, _SPECTRAL_SEED)

    def _start(self, tensor: DataTensor, rng: np.random.RandomState) -> Any:
        if not isinstance(self.init, str) or self.init != "graph":
            return self.init
        return with_mass_of(tensor, start_from_labels(self._start_labels, tensor.shape, self.n_components, rng))
