"""What all factorizations share: fit, transform, inverse, labels, score."""

from __future__ import annotations

import numbers
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
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
from gwntf.problem import (
    KruskalRows,
    NonnegativeTensor,
    as_factors,
    as_real_array,
    as_tensor,
    khatri_rao,
    normalise_samples,
    relative_error,
)
from gwntf.solvers import INITS, Callback, LossSpec, Problem, ProgressBar, Stopping, project, solve

Constraints = dict[str, list[Any]]


@dataclass(eq=False, repr=False)
class Factorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Abstract base of the estimators: a CP model of samples-first data.

    The parameters of an estimator are the fields of its dataclass; a method is put together from this
    class, an order (`parts.Tensor` or `parts.Matrix`), a loss (`parts.LeastSquares` or `parts.Transport`)
    and, where it has one, `parts.Graph`.
    """

    n_components: int = 10
    _: KW_ONLY
    sample_norm: str | None = "l2"
    missing: str = "error"
    init: str | Sequence[Any] = "random"
    n_init: int = 1
    max_iter: int = 100
    tol: float = 1e-4
    n_clusters: int | None = None
    assign_labels: str = "kmeans"
    engine: str = "auto"
    dtype: str | None = None
    callbacks: Sequence[Callback] | None = None
    progress: bool = False
    random_state: Any = None

    _own_constraints: ClassVar[Constraints] = {
        "n_components": [Interval(numbers.Integral, 1, None, closed="left")],
        "sample_norm": [StrOptions({"l1", "l2"}), None],
        "missing": [StrOptions({"error", "ignore"})],
        "init": [StrOptions(set(INITS)), list, tuple],
        "n_init": [Interval(numbers.Integral, 1, None, closed="left")],
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

    _parameter_constraints: ClassVar[Constraints] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Gather the constraints of all parts, where scikit-learn looks for them."""
        super().__init_subclass__(**options)
        parts = [vars(part).get("_own_constraints", {}) for part in reversed(cls.__mro__)]
        cls._parameter_constraints = {name: rule for part in parts for name, rule in part.items()}

    # --- what the parts supply ------------------------------------------------------------------------------

    @abstractmethod
    def _fold(self, values: FloatArray) -> tuple[FloatArray, tuple[int, ...]]:
        """Give the data the order of the model; also return the shape of one sample."""

    @abstractmethod
    def _check_loss(self, shape: tuple[int, ...]) -> Any:
        """Check the parameters of the loss against the shape of the folded X, before any work."""

    @abstractmethod
    def _loss(self, checked: Any, tensor: NonnegativeTensor) -> LossSpec:
        """Specify the loss for normalised data, given what `_check_loss` returned."""

    @abstractmethod
    def _loss_of_new_samples(self) -> LossSpec:
        """Specify the loss for samples that come after the fit."""

    def _check_graph(self, n_samples: int) -> csr_array | None:  # noqa: ARG002
        """Check a graph that the user gave, before any work."""
        return None

    def _build_graph(
        self,
        given: csr_array | None,  # noqa: ARG002
        tensor: NonnegativeTensor,  # noqa: ARG002
    ) -> tuple[csr_array | None, float]:
        """Return the graph on the samples and its weight; without `parts.Graph` there is none."""
        return None, 0.0

    def _start(self, tensor: NonnegativeTensor) -> Any:  # noqa: ARG002
        """Return the starting factors, or how to draw them, as the solver takes them."""
        return self.init

    def _refined(self, labels: NDArray[np.int_]) -> NDArray[np.int_]:
        """Return better labels near those of the embedding; without `parts.Graph` there are none."""
        return labels

    # --- fitting --------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Factorise X.

        Parameters
        ----------
        X : array-like of shape (n_samples, I_1, ..., I_{N-1})
            Nonnegative data, samples first.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self._validate_params()
        for place, callback in enumerate(self.callbacks or ()):
            if not callable(callback):
                raise InputError(f"callbacks[{place}]", type(callback).__name__, "a callable")
        raw = self._tensor(X, reset=True)
        shape = raw.values.shape
        checked, given = self._check_loss(shape), self._check_graph(shape[0])
        if not isinstance(self.init, str):
            as_factors(self.init, shape, self.n_components)
        tensor, self.sample_scale_ = normalise_samples(raw, self.sample_norm)
        self.graph_, graph_reg = self._build_graph(given, tensor)
        problem = Problem(tensor, self._loss(checked, tensor), self.graph_, graph_reg)
        with self._watching() as callbacks:
            result = solve(
                problem,
                self.n_components,
                Stopping(self.max_iter, self.tol),
                get_engine(self.engine),
                init=self._start(tensor),
                n_init=self.n_init,
                rng=check_random_state(self.random_state),
                callbacks=callbacks,
            )
        self.__dict__.pop("labels_", None)
        self.factors_ = result.factors
        self.embedding_ = result.factors[0]
        self.components_ = khatri_rao(result.factors[1:]).T
        self.objective_, self.objective_curve_ = result.objective, result.objective_curve
        self.objective_terms_ = result.terms
        self.n_iter_, self.status_ = result.n_iter, result.status
        model = KruskalRows(self.embedding_, self.components_.T, shape[1:])
        self.reconstruction_err_ = relative_error(tensor, model)
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
        labels = assign(self.embedding_, n_clusters, self.assign_labels, self.random_state)
        self.labels_ = self._refined(labels)
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
            In normalised scale (see `sample_norm`); each sample is independent of the others and stops by the
            rule of the fit (`max_iter`, `tol`).
        """
        return self._embed(X)[0]

    def inverse_transform(self, Z: Any) -> FloatArray:
        """Return the model of embedded samples, in normalised scale and in the layout of the X of `fit`."""
        check_is_fitted(self)
        embedding = as_real_array(Z, "Z")
        width = self.embedding_.shape[1]
        if embedding.ndim != 2 or embedding.shape[1] != width:
            raise InputError("Z", f"shape {embedding.shape}", f"shape (n_samples, {width})")
        if not np.isfinite(embedding).all():
            raise InputError("Z", "entries that are not finite", "finite numbers")
        rows: FloatArray = embedding @ self.components_
        return rows.reshape(len(rows), *self._layout)

    def reconstruct(self, X: Any) -> FloatArray:
        """Transform X, invert, and give each sample its own scale back; missing entries come filled in."""
        embedding, scale, _ = self._embed(X)
        return self.inverse_transform(embedding * scale[:, None])

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Minus the relative reconstruction error |X - reconstruct(X)| / |X| over the observed entries."""
        embedding, scale, tensor = self._embed(X)
        model = KruskalRows(embedding * scale[:, None], self.components_.T, tensor.values.shape[1:])
        return -relative_error(tensor, model)

    # --- the parts ------------------------------------------------------------------------------------------

    def _tensor(self, X: Any, *, reset: bool) -> NonnegativeTensor:
        """Check X and fold its rows."""
        dtype = [self.dtype] if self.dtype else [np.float64, np.float32]
        values = estimator_data(self, X, reset=reset, allow_nan=self.missing == "ignore", dtype=dtype)
        folded, sample_shape = self._fold(values)
        if reset:
            self._layout, self.sample_shape_ = values.shape[1:], sample_shape
        elif values.shape[1:] != self._layout:
            raise InputError("X", f"samples of shape {values.shape[1:]}", f"shape {self._layout}")
        return as_tensor(folded, missing=self.missing)

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
        problem = Problem(tensor, self._loss_of_new_samples())
        stopping = Stopping(self.max_iter, self.tol)
        embedding, unsettled = project(problem, self.factors_[1:], stopping, get_engine(self.engine))
        if unsettled and self.tol > 0:
            message = (
                f"{unsettled} of {len(embedding)} new samples had not settled: raise `max_iter` or `tol`."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
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
