"""The parts that methods are put together from: an order, a loss, a graph."""

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gwntf import losses
from gwntf.clustering import choose_graph, clearest, cut, start_from_cut
from gwntf.core import InputError, Relaxation
from gwntf.data import DataTensor, check_sample_shape
from gwntf.estimators.base import AT_LEAST_ONE, NONNEGATIVE, Factorization, parameter
from gwntf.estimators.notices import warn_all_pairs, warn_graph_parts
from gwntf.estimators.sklearn_compat import Interval, StrOptions
from gwntf.geometry import (
    GRAPH_METRICS,
    GRAPH_WEIGHTS,
    CostSpec,
    GraphMetric,
    SeparableCost,
    Ties,
    TrainingSamples,
    check_cost,
    check_costs,
    check_graph,
    neighbor_graph,
)
from gwntf.geometry.costs import COMPARED_COSTS, PAIRS_LIMIT
from gwntf.losses import UPDATES, Loss, SimplexLoss, transport_loss
from gwntf.solver import INITS, resolve_long_costs, with_mass_of
from gwntf.transport import TransportLimits

POSITIVE = Interval(numbers.Real, 0, None, closed="neither")

_MAX_SCALINGS = 16  # scalings of a transport at most where they adapt

_CUT_SEED = 0
"""Of the spectral clustering from which fits may start: the same for all fits, whatever their own random numbers."""


@dataclass(eq=False, repr=False, kw_only=True)
class Tensor(Factorization):
    """Order: samples keep their axes; the rows of a 2-D X are folded to `sample_shape`."""

    sample_shape: tuple[int, ...] | None = parameter(None, tuple, list, None)

    def _fold(self, data: DataTensor) -> tuple[DataTensor, tuple[int, ...]]:
        if self.sample_shape is not None:
            data = data.reshape(check_sample_shape(self.sample_shape, data.shape))
        return data, data.shape[1:]


@dataclass(eq=False, repr=False, kw_only=True)
class Matrix(Factorization):
    """Order: every sample is one row, whatever its axes."""

    def _fold(self, data: DataTensor) -> tuple[DataTensor, tuple[int, ...]]:
        return data.reshape((math.prod(data.shape[1:]),)), data.shape[1:]


@dataclass(eq=False, repr=False, kw_only=True)
class FixedLoss(Factorization):
    """Loss: one without parameters of its own, the same for new samples; `loss` of the class says which."""

    loss: ClassVar[Loss]

    @property
    def _degrees(self) -> tuple[int, int]:
        return 2, 2

    def _loss(self, checked: None, tensor: DataTensor) -> Loss:  # noqa: ARG002
        return self.loss

    def _loss_of_new_samples(self) -> Loss:
        return self.loss


@dataclass(eq=False, repr=False, kw_only=True)
class LeastSquares(FixedLoss):
    """Loss: 1/2 |X - X^|^2."""

    loss = losses.LeastSquares()


@dataclass(eq=False, repr=False, kw_only=True)
class Transport(Factorization):
    """Loss: entropic transport with relaxed marginals along the modes that have a cost."""

    reg: float = parameter(0.01, POSITIVE)
    reg_m_data: float = parameter(1.0, Interval(numbers.Real, 0, None, closed="right"))
    reg_m_model: float = parameter(1.0, POSITIVE)
    update: str = parameter("mm", StrOptions(set(UPDATES)))
    inner_iter: int = parameter(1, AT_LEAST_ONE)
    transport_max_iter: int | str = parameter(10, AT_LEAST_ONE, StrOptions({"auto"}))
    transport_tol: float = parameter(1e-6, NONNEGATIVE)
    kernel_tol: float = parameter(0.02, Interval(numbers.Real, 0, 1, closed="left"))
    warm_start_memory: float = parameter(2.0**29, Interval(numbers.Real, 0, None, closed="both"))

    def _loss(self, checked: tuple[CostSpec, ...], tensor: DataTensor) -> Loss:
        relaxation = Relaxation(self.reg, self.reg_m_data, self.reg_m_model)
        self.costs_ = resolve_long_costs(checked, tensor, relaxation, self.kernel_tol)
        for mode, (spec, cost) in enumerate(zip(checked, self.costs_, strict=True)):
            near_far = isinstance(spec, str) and spec in COMPARED_COSTS and self.kernel_tol > 0
            if near_far and isinstance(cost, np.ndarray) and len(cost) > PAIRS_LIMIT:
                warn_all_pairs(mode, len(cost), self.kernel_tol)
        return self._transport_loss()

    def _loss_of_new_samples(self) -> SimplexLoss:
        return self._transport_loss().for_new_samples()

    def _transport_loss(self) -> SimplexLoss:
        adaptive = self.transport_max_iter == "auto"
        return transport_loss(
            self.costs_,
            Relaxation(self.reg, self.reg_m_data, self.reg_m_model),
            TransportLimits(_MAX_SCALINGS if adaptive else int(self.transport_max_iter), self.transport_tol),
            update=self.update,
            inner_iter=self.inner_iter,
            warm_limit=self.warm_start_memory,
            adaptive=adaptive,
        )


@dataclass(eq=False, repr=False, kw_only=True)
class PerModeTransport(Tensor, Transport):
    """A Wasserstein loss with one cost per axis."""

    costs: str | Sequence[CostSpec] = parameter("auto", StrOptions({"auto"}), list, tuple)

    def _check_loss(self, shape: tuple[int, ...]) -> tuple[CostSpec, ...]:
        return check_costs(self._default_costs(shape) if self.costs == "auto" else self.costs, shape)

    def _default_costs(self, shape: tuple[int, ...]) -> Any:  # noqa: ARG002
        return "auto"


@dataclass(eq=False, repr=False, kw_only=True)
class PixelTransport(Matrix, Transport):
    """A Wasserstein loss with one cost between all entries of a sample; samples are not transported."""

    cost: CostSpec = "grid"
    sample_shape: tuple[int, ...] | None = parameter(None, tuple, list, None)

    def _fold(self, data: DataTensor) -> tuple[DataTensor, tuple[int, ...]]:
        if self.sample_shape is None:
            return super()._fold(data)
        return data, check_sample_shape(self.sample_shape, data.shape)

    def _check_loss(self, shape: tuple[int, ...]) -> tuple[CostSpec, ...]:
        cost = self.cost
        if isinstance(cost, str) and cost in ("grid", "grid2"):
            cost = SeparableCost.on_grid(self.sample_shape_, power=1 if cost == "grid" else 2)
        return None, check_cost(cost, shape[1], "cost")


@dataclass(eq=False, repr=False, kw_only=True)
class Graph(Factorization):
    """A penalty that draws the embeddings of neighbouring samples together."""

    graph_reg: float = parameter(0.1, NONNEGATIVE)
    n_neighbors: int = parameter(5, AT_LEAST_ONE)
    graph_weight: str = parameter("binary", StrOptions(set(GRAPH_WEIGHTS)))
    graph_metric: GraphMetric = parameter("cosine", StrOptions({*GRAPH_METRICS, "auto"}), callable)
    graph: Any = None
    init: str | Sequence[Any] = parameter("random", StrOptions({*INITS, "graph"}), list, tuple)
    refine_labels: bool = parameter(False, "boolean")

    @property
    def _degrees(self) -> tuple[int, int]:
        low, high = super()._degrees
        return low, 2 if self.graph_reg > 0 else high

    def _check_graph(self, n_samples: int) -> csr_array | None:
        if self.init == "graph":
            if self.graph is None and self.graph_reg == 0:
                raise InputError("init", "'graph' without a graph", "a graph, or another start")
            if self.n_init > 1:
                raise InputError("n_init", repr(self.n_init), "1 with init='graph'")
        if self.graph is None:
            return None
        return check_graph(self.graph, n_samples)

    def _build_graph(self, given: csr_array | None, tensor: DataTensor) -> tuple[csr_array | None, float]:
        self._training: TrainingSamples | None = None
        if given is not None or self.graph_reg == 0:
            return given, self.graph_reg
        samples = tensor.reshape(self.sample_shape_)
        metric = self.graph_metric
        if metric == "auto":
            self.graph_metric_, graph, self.modularity_ = choose_graph(
                samples, self.n_neighbors, self.graph_weight, self._clusters, self.random_state
            )
            metric = self.graph_metric_
        else:
            graph = neighbor_graph(samples, self.n_neighbors, weight=self.graph_weight, metric=metric)
        if samples.in_memory:
            self._training = TrainingSamples(samples, self.n_neighbors, self.graph_weight, metric)
        return graph, self.graph_reg

    def _ties(self, tensor: DataTensor) -> Ties | None:
        if self._training is None:
            return None
        return Ties(self._training.ties(tensor.reshape(self.sample_shape_)), self.factors_[0], float(self.graph_reg))

    @property
    def _graph_left_out(self) -> bool:
        return self.graph_ is not None and self.graph_reg > 0 and self._training is None

    def _prepare_start(self, tensor: DataTensor) -> None:
        if self.init == "graph":
            graph = csr_array((tensor.shape[0],) * 2) if self.graph_ is None else self.graph_
            self._cut = cut(graph, self._clusters, _CUT_SEED)

    def _start(self, tensor: DataTensor, rng: np.random.RandomState) -> Any:
        if self.init != "graph":
            return self.init
        return with_mass_of(tensor, start_from_cut(self._cut, tensor.shape, self.n_components, rng))

    def _assign_labels(self) -> NDArray[np.int_]:
        if self.graph_ is not None and self.graph_reg > 0:
            warn_graph_parts(self.graph_, self._clusters)
        labels = super()._assign_labels()
        if not self.refine_labels or self.graph_ is None:
            return labels
        return clearest(self.graph_, labels, self._clusters, self.random_state)
