"""Costs between the entries of a mode, the kernels computed from them, and the graph on the samples.

May import `data`, `backends` and `core`. Start with `costs` and `axis_cost`, then `build`, `kernels` and `axis_kernels`
(linear maps without a stored matrix, where possible); `near_far` and its kernel are for modes too long to compare all
pairs. `graph` is independent of these, and
`ties` extends it to new samples.
"""

from gwntf.geometry.axis_cost import AxisCost
from gwntf.geometry.axis_kernels import CircleKernel, LineKernel
from gwntf.geometry.build import build_kernel
from gwntf.geometry.costs import (
    COSTS_OF_SLICES,
    NAMED_COSTS,
    Cost,
    CostSpec,
    SeparableCost,
    check_cost,
    check_costs,
    grid_cost,
    resolve_cost,
    resolve_costs,
)
from gwntf.geometry.features import GRAPH_METRICS, GraphMetric
from gwntf.geometry.graph import GRAPH_WEIGHTS, SampleGraph, check_graph, neighbor_graph, split_graph
from gwntf.geometry.kernels import DenseKernel, Kernel, NearFarKernel
from gwntf.geometry.knn import KNNGraph
from gwntf.geometry.near_far import NearFarCost, Points, near_far_parts, near_pairs
from gwntf.geometry.separable_kernel import SeparableKernel
from gwntf.geometry.squared_kernels import BandKernel, CellKernel
from gwntf.geometry.ties import SampleTies, Ties, TrainingSamples
