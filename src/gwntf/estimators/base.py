"""What all factorizations share: fit, transform, inverse, labels, score."""

from __future__ import annotations

import numbers
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gwntf.core import FloatArray, InputError, Status
from gwntf.engines import ENGINES, get_engine
from gwntf.estimators.labels import ASSIGN_LABELS, assign, check_clusters
from gwntf.estimators.sklearn_compat import Interval, StrOptions, count_samples, estimator_data
from gwntf.geometry import (
    GRAPH_METRICS,
    GRAPH_WEIGHTS,
    check_graph,
    neighbor_graph,
)
from gwntf.problem import (
    NonnegativeTensor,
    as_factors,
    as_tensor,
    fold_samples,
    khatri_rao,
    normalise_samples,
    reconstruct,
    relative_error,
)
from gwntf.solvers import INITS, UPDATES, Callback, Problem, ProgressBar, Settings, project, solve
from gwntf.transport import TransportLimits


class Factorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Abstract base of the estimators: a CP model of samples-first data with a graph on the samples.

    A subclass is a list of parameters (its constructor) and the problem they state (`_problem`).
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(numbers.Integral, 1, None, closed="left")],
        "graph_reg": [Interval(numbers.Real, 0, None, closed="left")],
        "n_neighbors": [Interval(numbers.Integral, 1, None, closed="left")],
        "graph_weight": [StrOptions(set(GRAPH_WEIGHTS))],
        "graph_metric": [StrOptions(set(GRAPH_METRICS))],
        "sample_shape": [tuple, list, None],
        "sample_norm": [StrOptions({"l1", "l2"}), None],
        "missing": [StrOptions({"error", "ignore"})],
        "init": [StrOptions(set(INITS)), list, tuple],
        "n_init": [Interval(numbers.Integral, 1, None, closed="left")],
        "update": [StrOptions(set(UPDATES))],
        "inner_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
        "n_clusters": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "assign_labels": [StrOptions(set(ASSIGN_LABELS))],
        "engine": [StrOptions(set(ENGINES))],
        "dtype": [StrOptions({"float32", "float64"}), None],
        "callbacks": [list, tuple, None],
        "progress": ["boolean"],
        "random_state": ["random_state"],
    }

    # --- what a subclass says -------------------------------------------------------------------------------

    @abstractmethod
    def _check_model(self, shape: tuple[int, ...]) -> Any:
        """Check the parameters of the loss against the shape of X, before any work."""

    @abstractmethod
    def _problem(self, checked: Any, tensor: NonnegativeTensor, graph: csr_array | None) -> Problem:
        """State the problem for normalised data, given what `_check_model` returned."""

    @abstractmethod
    def _limits(self) -> TransportLimits:
        """Return the accuracy of the transports."""

    # --- fitting --------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Factorise X.

        Parameters
        ----------
        X : array-like of shape (n_samples, I_1, ..., I_{N-1})
            Nonnegative data, samples first. A 2-D X is a matrix, or a stack of folded samples with
            `sample_shape`.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self._validate_params()
        raw = self._tensor(X, reset=True)
        shape = raw.values.shape
        checked = self._check_model(shape)
        given = self._check_graph_and_init(shape)
        tensor, self.sample_scale_ = normalise_samples(raw, self.sample_norm)
        graph = self._sample_graph(given, tensor)
        problem = self._problem(checked, tensor, graph)
        with self._watching() as callbacks:
            result = solve(
                problem,
                self.n_components,
                self._settings(),
                self._limits(),
                get_engine(self.engine),
                init=self.init,
                n_init=self.n_init,
                rng=check_random_state(self.random_state),
                callbacks=callbacks,
            )
        self.costs_, self.graph_ = problem.costs, graph
        self.factors_ = result.factors
        self.embedding_ = result.factors[0]
        self.components_ = khatri_rao(result.factors[1:]).T
        self.objective_, self.objective_curve_ = result.objective, result.objective_curve
        self.objective_terms_ = result.terms
        self.n_iter_, self.status_ = result.n_iter, result.status
        self.reconstruction_err_ = relative_error(tensor, reconstruct(result.factors))
        self._warn_unless_converged()
        return self

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Factorise X and return `embedding_`, the sample factor of the fit (graph included).

        It differs from ``fit(X).transform(X)``, which treats X as new samples.
        """
        embedding: FloatArray = self.fit(X, y).embedding_
        return embedding

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int_]:
        """Factorise X and return the cluster labels of its samples, also kept in `labels_`."""
        self._validate_params()
        n_clusters = self.n_components if self.n_clusters is None else self.n_clusters
        check_clusters(n_clusters, count_samples(X), self.n_components, self.assign_labels)
        self.fit(X, y)
        self.labels_ = assign(self.embedding_, n_clusters, self.assign_labels, self.random_state)
        return self.labels_

    # --- new samples ----------------------------------------------------------------------------------------

    def transform(self, X: Any) -> FloatArray:
        """Embed new samples with the other factors fixed and no graph.

        Parameters
        ----------
        X : array-like
            Samples of the shape seen in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            In normalised scale (see `sample_norm`); each sample is independent of the others.
        """
        return self._embed(X)[0]

    def inverse_transform(self, Z: Any) -> FloatArray:
        """Return the model of embedded samples, in normalised scale and in the layout of the X of `fit`."""
        check_is_fitted(self)
        embedding = np.asarray(Z)
        width = self.embedding_.shape[1]
        if embedding.ndim != 2 or embedding.shape[1] != width:
            raise InputError("Z", f"shape {embedding.shape}", f"shape (n_samples, {width})")
        rows: FloatArray = embedding @ self.components_
        return rows if self._flat else rows.reshape(len(rows), *self.sample_shape_)

    def reconstruct(self, X: Any) -> FloatArray:
        """Transform X, invert, and give each sample its own scale back; missing entries come filled in."""
        embedding, scale, _ = self._embed(X)
        model = self.inverse_transform(embedding)
        return model * scale.reshape(-1, *(1,) * (model.ndim - 1))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Minus the relative reconstruction error |X - reconstruct(X)| / |X| over the observed entries."""
        embedding, scale, tensor = self._embed(X)
        model = reconstruct([embedding, *self.factors_[1:]])
        return -relative_error(tensor, model * scale.reshape(-1, *(1,) * (model.ndim - 1)))

    # --- the parts ------------------------------------------------------------------------------------------

    def _tensor(self, X: Any, *, reset: bool) -> NonnegativeTensor:
        """Check X and fold its rows."""
        dtype = [self.dtype] if self.dtype else [np.float64, np.float32]
        values = estimator_data(self, X, reset=reset, allow_nan=self.missing == "ignore", dtype=dtype)
        shape = None if self.sample_shape is None else tuple(self.sample_shape)
        folded = fold_samples(values, shape)
        if reset:
            self._flat, self.sample_shape_ = values.ndim == 2, folded.shape[1:]
        elif folded.shape[1:] != self.sample_shape_:
            raise InputError("X", f"samples of shape {folded.shape[1:]}", f"shape {self.sample_shape_}")
        return as_tensor(folded, missing=self.missing)

    def _check_graph_and_init(self, shape: tuple[int, ...]) -> csr_array | None:
        """Check the graph and the factors that the user gave, before any work."""
        if not isinstance(self.init, str):
            as_factors(self.init, shape, self.n_components)
        return None if self.graph is None else check_graph(self.graph, shape[0])

    def _sample_graph(self, given: csr_array | None, tensor: NonnegativeTensor) -> csr_array | None:
        if given is not None or self.graph_reg == 0:
            return given
        return neighbor_graph(tensor, self.n_neighbors, weight=self.graph_weight, metric=self.graph_metric)

    def _settings(self) -> Settings:
        return Settings(self.update, self.inner_iter, self.max_iter, self.tol)

    @contextmanager
    def _watching(self) -> Iterator[list[Callback]]:
        """Provide the user's callbacks, and a progress bar if wanted."""
        callbacks: list[Callback] = list(self.callbacks or ())
        if not self.progress:
            yield callbacks
            return
        with ProgressBar(self.n_init * self.max_iter) as bar:
            yield [*callbacks, bar]

    def _embed(self, X: Any) -> tuple[FloatArray, FloatArray, NonnegativeTensor]:
        """Embedding and scale of new samples, and the samples as a tensor."""
        check_is_fitted(self)
        raw = self._tensor(X, reset=False)
        tensor, scale = normalise_samples(raw, self.sample_norm)
        problem = self._problem((None, *self.costs_[1:]), tensor, None)
        settings, limits = self._settings(), self._limits()
        embedding = project(problem, self.factors_[1:], settings, limits, get_engine(self.engine))
        return embedding, scale, raw

    def _warn_unless_converged(self) -> None:
        if self.status_ in (Status.ROSE, Status.DIVERGED) or (
            self.status_ is Status.MAX_ITER and self.tol > 0
        ):
            warnings.warn(self.status_.message, ConvergenceWarning, stacklevel=3)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = self.missing == "ignore"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
