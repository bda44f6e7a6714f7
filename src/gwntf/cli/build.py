"""Estimators from the options of the command line."""

from typing import Any

from gwntf.core import GwntfError, InputError
from gwntf.estimators import MiniBatchGWNTF, TensorClustering, TransportOptions
from gwntf.estimators.base import check_parameters, checkpoint_of
from gwntf.estimators.files import KNOWN
from gwntf.geometry import KNNGraph
from gwntf.solver import Checkpoint, ProgressBar

METHODS = sorted(set(KNOWN) - {TensorClustering.__name__})
"""Factorizations that `gwntf fit` offers."""

_PARAMETERS = (
    "n_components",
    "n_clusters",
    "costs",
    "reg",
    "graph_reg",
    "sample_norm",
    "missing",
    "init",
    "n_init",
    "max_iter",
    "tol",
    "engine",
    "device",
    "dtype",
    "random_state",
)
"""Options that are parameters of an estimator under the same name; the reader has already folded the samples."""

_NESTED = {
    "neighbors": ("graph", "n_neighbors"),
    "graph_metric": ("graph", "metric"),
    "graph_weight": ("graph", "weight"),
}
"""Options that are parameters of a `KNNGraph` or of `TransportOptions`."""


def build_factorization(options: Any) -> Any:
    """Return an estimator of the method in the options; raise if it does not have one of the given parameters."""
    return _build(KNOWN[options.method](), options)


def build_clusterer(options: Any) -> TensorClustering:
    """Return a clusterer."""
    clusterer: TensorClustering = _build(TensorClustering(), options)
    return clusterer


def _build(estimator: Any, options: Any) -> Any:
    """Set the parameters that the user gave and the callbacks, and check them before any work."""
    given = {name: getattr(options, name, None) for name in (*_PARAMETERS, *_NESTED)}
    given = {name: value for name, value in given.items() if value is not None}
    own = estimator.get_params(deep=False)
    nested: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        parameter, field = _NESTED.get(name, (name, None))
        if parameter not in own:
            option = f"--{name.replace('_', '-')}"
            raise InputError(option, repr(value), f"no value: {type(estimator).__name__} does not have this option")
        if field is None:
            estimator.set_params(**{parameter: None if (name, value) == ("sample_norm", "none") else value})
        else:
            nested.setdefault(parameter, {})[field] = value
    for parameter, fields in nested.items():
        base = _default_graph(estimator) if parameter == "graph" else TransportOptions()
        estimator.set_params(**{parameter: base.set_params(**fields)})
    estimator.set_params(callbacks=_callbacks(estimator, options))
    try:
        check_parameters(estimator)
    except ValueError as error:
        raise GwntfError(str(error)) from error
    checkpoint_of(estimator.callbacks)
    return estimator


def _default_graph(estimator: Any) -> KNNGraph:
    """Return a copy of the graph that an estimator builds by default."""
    if isinstance(estimator, TensorClustering):
        graph: KNNGraph = estimator.factorization().graph
        return graph
    return KNNGraph()


def _callbacks(estimator: Any, options: Any) -> list[Any] | None:
    callbacks: list[Any] = [] if options.quiet else [ProgressBar()]
    if options.checkpoint is not None:
        if isinstance(estimator, MiniBatchGWNTF):
            raise InputError("--checkpoint", str(options.checkpoint), "no value: MiniBatchGWNTF has no checkpoints")
        callbacks.append(Checkpoint(options.checkpoint))
    return callbacks or None
