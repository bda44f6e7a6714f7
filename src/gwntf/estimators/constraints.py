"""Allowed types and values of the parameters of the estimators, in the form that scikit-learn checks."""

import numbers
from typing import Any

from gwntf.estimators.context import ENGINES
from gwntf.estimators.options import TransportOptions
from gwntf.estimators.sklearn_compat import Interval, StrOptions
from gwntf.geometry import KNNGraph
from gwntf.solver import INITS

AT_LEAST_ONE = Interval(numbers.Integral, 1, None, closed="left")
NONNEGATIVE = Interval(numbers.Real, 0, None, closed="left")
POSITIVE = Interval(numbers.Real, 0, None, closed="neither")

CONSTRAINTS: dict[str, list[Any]] = {
    "n_components": [AT_LEAST_ONE],
    "parts": ["array-like", list, tuple, None],
    "costs": [StrOptions({"auto"}), list, tuple],
    "cost": [object],  # checked with the data
    "reg": [POSITIVE],
    "reg_m": [Interval(numbers.Real, 0, None, closed="right"), tuple, list],
    "graph": [StrOptions({"knn"}), KNNGraph, "array-like", "sparse matrix", None],
    "graph_reg": [NONNEGATIVE],
    "alpha": [NONNEGATIVE, tuple, list],
    "l1_ratio": [Interval(numbers.Real, 0, 1, closed="both")],
    "sample_shape": [tuple, list, None],
    "sample_norm": [StrOptions({"l1", "l2"}), None],
    "missing": [StrOptions({"error", "ignore"})],
    "init": [StrOptions({*INITS, "graph"}), list, tuple],
    "n_init": [AT_LEAST_ONE],
    "max_iter": [AT_LEAST_ONE],
    "tol": [NONNEGATIVE],
    "transport": [TransportOptions, None],
    "engine": [StrOptions(set(ENGINES))],
    "device": [str, None],
    "dtype": [StrOptions({"float32", "float64"}), None],
    "callbacks": [list, tuple, None],
    "random_state": ["random_state"],
    "batch_size": [AT_LEAST_ONE],
    "batch_iter": [AT_LEAST_ONE],
    "max_epochs": [AT_LEAST_ONE],
    "forget_factor": [Interval(numbers.Real, 0, 1, closed="right")],
}
"""Constraints by parameter name, shared by all classes with the parameter."""

NO_GRAPH_INIT = [StrOptions(set(INITS)), list, tuple]
"""Constraints of `init` for estimators without a graph."""
