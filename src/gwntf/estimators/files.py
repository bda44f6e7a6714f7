"""Model files: their content, and the checks when a model is loaded."""

import math
import os
from typing import Any

import numpy as np

from gwntf.core import InputError, ModelFileError, Status
from gwntf.estimators.base import Factorization, check_parameters
from gwntf.estimators.clusterer import TensorClustering
from gwntf.estimators.matrix import GNMF, NMF, SDNMF
from gwntf.estimators.mini_batch import MiniBatchGWNTF
from gwntf.estimators.records import MODEL_RECORDS, SESSION
from gwntf.estimators.tensor import GNCP, GWNTF, NCP, SWIFT
from gwntf.estimators.unmixer import Unmixer
from gwntf.estimators.unmixer_input import as_matrix
from gwntf.geometry import KNNGraph, NearFarCost, TrainingSamples, check_cost
from gwntf.io import read_document, write_document
from gwntf.losses import ObjectiveTerms

KNOWN: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (GNCP, GNMF, GWNTF, NCP, NMF, SDNMF, SWIFT, MiniBatchGWNTF, TensorClustering, Unmixer)
}
"""Estimators that a file may contain."""

FITTED_FIELDS = (
    "factors_",
    "embedding_",
    "sample_scale_",
    "objective_",
    "objective_curve_",
    "objective_terms_",
    "n_iter_",
    "status_",
    "reconstruction_err_",
    "graph_",
    "sample_shape_",
    "n_features_in_",
    "_layout",
)
"""Attributes of every fitted model."""

OPTIONAL_FIELDS = (
    "costs_",
    "graph_metric_",
    "modularity_",
    "feature_names_in_",
    "_training",
    "_means",
    "n_batches_",
)
"""Attributes that depend on class and parameters."""


UNMIXER_FIELDS = (
    "references_",
    "names_",
    "positions_",
    "scale_",
    "drift_",
    "n_features_in_",
    "_signal",
    "_backwards",
    "_columns",
)
"""Attributes of a fitted unmixer."""


def write_model(model: Factorization, path: str | os.PathLike[str]) -> None:
    """Write a fitted factorization."""
    write_document(path, "model", _content(model), MODEL_RECORDS)


def write_clusterer(clusterer: TensorClustering, path: str | os.PathLike[str], rows: Any) -> None:
    """Write a fitted clusterer; `rows` are the training samples embedded as new ones."""
    content = {
        "class": "TensorClustering",
        "params": _params(clusterer),
        "fitted": {"model_": _content(clusterer.model_), "labels_": clusterer.labels_, "_rows": rows},
    }
    write_document(path, "model", content, MODEL_RECORDS)


def write_unmixer(unmixer: Unmixer, path: str | os.PathLike[str]) -> None:
    """Write a fitted unmixer; references in a data frame are written as an array, with the positions of its columns."""
    fitted = {name: vars(unmixer)[name] for name in UNMIXER_FIELDS}
    params = {**_params(unmixer), "references": as_matrix(unmixer.references, "references")}
    if unmixer._columns is not None:
        params["positions"] = unmixer._columns
    write_document(path, "model", {"class": "Unmixer", "params": params, "fitted": fitted}, MODEL_RECORDS)


def _content(model: Factorization) -> dict[str, Any]:
    fields = (*FITTED_FIELDS, *OPTIONAL_FIELDS)
    return {
        "class": type(model).__name__,
        "params": _params(model),
        "fitted": {name: vars(model)[name] for name in fields if name in vars(model)},
    }


def _params(model: Any) -> dict[str, Any]:
    """Return the parameters for a file; raise InputError if they cannot be written."""
    if KNOWN.get(type(model).__name__) is not type(model):
        raise InputError("model", f"a {type(model).__name__}", f"one of {', '.join(KNOWN)}")
    own = model.get_params(deep=False)
    graph = own.get("graph")
    if isinstance(graph, KNNGraph) and callable(graph.metric):
        allowed = "a named metric, or `graph=KNNGraph(metric=...).build(X)`: functions cannot be written to files"
        raise InputError("graph.metric", "a function", allowed)
    return {name: value for name, value in own.items() if name not in SESSION}


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model or a clusterer written by `save`.

    No code from the file is executed. Files that are damaged, truncated, of another kind or of a later version raise an
    error.

    Parameters
    ----------
    path : path
        File to read.

    Returns
    -------
    estimator
        Same class and parameters as the saved estimator (except `callbacks`), and the same results for new samples, to
        the bit. Its arrays are NumPy arrays.

    Raises
    ------
    ModelFileError
        If the file cannot be loaded; the message says why.

    Examples
    --------
    >>> import os, tempfile, numpy as np
    >>> from gwntf import NMF, load
    >>> X = np.random.default_rng(0).random((20, 6))
    >>> model = NMF(2, max_iter=20, tol=0, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.gwntf")
    ...     model.save(path)
    ...     bool((load(path).transform(X) == model.transform(X)).all())
    True
    """
    content = read_document(path, "model", MODEL_RECORDS)
    try:
        return _loaded(content)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        message = f"{path} does not contain a valid model: {type(error).__name__}: {error}"
        raise ModelFileError(message) from error


def _loaded(content: dict[str, Any]) -> Any:
    kind, params, fitted = content["class"], content["params"], content["fitted"]
    model = KNOWN[kind](**params)
    check_parameters(model)
    if isinstance(model, TensorClustering):
        return _clusterer(model, **fitted)
    if isinstance(model, Unmixer):
        return _unmixer(model, fitted)
    unknown = set(fitted) - {*FITTED_FIELDS, *OPTIONAL_FIELDS}
    if unknown or not set(FITTED_FIELDS) <= set(fitted):
        raise ValueError("unknown or missing attributes")
    _check_fitted(fitted)
    model.__dict__.update(fitted)
    return model


def _clusterer(clusterer: TensorClustering, model_: Any, labels_: Any, _rows: Any) -> TensorClustering:
    model = _loaded(model_)
    size = len(model.embedding_)
    fits = [
        isinstance(model, GWNTF),
        labels_.shape == (size,) and labels_.dtype.kind == "i",
        _rows.shape == model.embedding_.shape and _rows.dtype.kind == "f",
    ]
    if not all(fits):
        raise ValueError("inconsistent labels")
    clusterer.set_fitted(model, labels_)
    clusterer._training.rows = _rows
    return clusterer


def _unmixer(unmixer: Unmixer, fitted: dict[str, Any]) -> Unmixer:
    if set(fitted) != set(UNMIXER_FIELDS):
        raise ValueError("unknown or missing attributes")
    positions, parts, signal = (fitted[name] for name in ("positions_", "references_", "_signal"))
    size, rank = len(positions), len(fitted["names_"])
    fits = [
        parts.shape == (size, rank) and parts.dtype == positions.dtype == signal.dtype == np.float64,
        parts.flags.c_contiguous and size > 2 and bool((np.diff(positions) > 0).all()),
        bool((parts >= 0).all() and np.isfinite(parts).all() and parts.any(axis=0).all()),
        signal.shape == (rank,) and bool((signal > 0).all()),
        fitted["n_features_in_"] == size and isinstance(fitted["_backwards"], bool),
        all(isinstance(name, str) for name in fitted["names_"]),
        fitted["_columns"] is None or fitted["_columns"].shape == (size,),
        min(fitted["scale_"], fitted["drift_"]) > 0,
    ]
    if not all(fits):
        raise ValueError("inconsistent attributes")
    unmixer.__dict__.update(fitted)
    unmixer._prepare()
    return unmixer


def _check_fitted(fitted: dict[str, Any]) -> None:
    """Raise ValueError unless all sizes match those of the factors, since compiled code does not check them."""
    factors, graph = fitted["factors_"], fitted["graph_"]
    sizes, rank = [len(factor) for factor in factors], factors[0].shape[1]
    layout, sample_shape = fitted["_layout"], fitted["sample_shape_"]
    fits = [
        isinstance(factors, list) and len(factors) > 1 and rank > 0 and min(sizes) > 0,
        all(factor.shape == (size, rank) for factor, size in zip(factors, sizes, strict=True)),
        all(factor.dtype.kind == "f" for factor in factors),
        fitted["embedding_"].shape == (sizes[0], rank) and fitted["embedding_"].dtype.kind == "f",
        isinstance(layout, tuple) and isinstance(sample_shape, tuple),
        math.prod(layout) == math.prod(sample_shape) == math.prod(sizes[1:]),
        len(sizes) == 2 or sample_shape == tuple(sizes[1:]),
        graph is None or (graph.format == "csr" and graph.shape == (sizes[0],) * 2),
        fitted["sample_scale_"].shape == (sizes[0],) and fitted["objective_curve_"].ndim == 1,
        isinstance(fitted["status_"], Status) and isinstance(fitted["objective_terms_"], ObjectiveTerms),
        isinstance(fitted.get("_training"), TrainingSamples | None),
    ]
    means = [mean.shape for mean in fitted.get("_means", factors[1:])]
    if not all(fits) or means != [factor.shape for factor in factors[1:]]:
        raise ValueError("inconsistent attributes")
    costs = fitted.get("costs_", ())
    if len(sizes) == 2 and len(costs) == 1 + len(sample_shape):  # one factor may stand for all axes of a sample
        sizes = [sizes[0], *sample_shape]
    for mode, cost in enumerate(costs):
        if isinstance(cost, NearFarCost):
            if cost.size != sizes[mode]:
                raise ValueError("a cost and its factor have different sizes")
        elif isinstance(cost, str):
            raise ValueError("an unresolved cost")
        else:
            check_cost(cost, sizes[mode], f"costs_[{mode}]")
