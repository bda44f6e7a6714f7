"""Base class of all factorizations: parameters and `fit`; `fitted` has the methods of fitted models."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils import check_random_state

from gwntf.core import Array, InputError
from gwntf.data import DataTensor, KruskalRows, as_factors, check_unscaled
from gwntf.estimators.constraints import CONSTRAINTS
from gwntf.estimators.context import Context
from gwntf.estimators.fitted import Fitted
from gwntf.estimators.nested import NestedDefaults
from gwntf.estimators.notices import (
    warn_empty_components,
    warn_isolated,
    warn_samples_last,
    warn_status,
    warn_uneven,
)
from gwntf.estimators.records import keeper_of
from gwntf.estimators.sklearn_compat import column_names, unweighted
from gwntf.losses import Loss, Plain
from gwntf.solver import Checkpoint, Problem, Result, Stopping, following, solve_each


class Factorization(Fitted, NestedDefaults):
    """Abstract base of the estimators: a CP model of samples-first data.

    An estimator combines this class with an order (`parts.Tensor` or `parts.Matrix`), a loss (`parts.LeastSquares` or
    `parts.Transport`) and optionally `parts.Graph`; its constructor lists all its parameters.
    """

    n_components: int
    parts: Any
    alpha: float | tuple[float, float]
    l1_ratio: float
    init: Any
    n_init: int
    max_iter: int
    tol: float
    dtype: str | None
    callbacks: Sequence[Any] | None
    random_state: Any

    _plain: Plain | None = None
    """The scheme of the papers, for their tables and for clustering; None is the scheme of the library."""

    _own_constraints: ClassVar[Mapping[str, Sequence[Any]]] = {}
    """Allowed types and values of parameters, by name, that override those of `CONSTRAINTS`."""

    @property
    def _parameter_constraints(self) -> dict[str, list[Any]]:
        """Allowed types and values of every parameter, read by scikit-learn."""
        return {name: list(self._own_constraints.get(name, CONSTRAINTS[name])) for name in self.get_params(deep=False)}

    # --- defined by the parts --------------------------------------------------------------------------------

    def _check_loss(self, shape: tuple[int, ...], names: Sequence[Any] | None = None) -> Any:
        """Check the parameters of the loss against the shape of the folded X; return the argument of `_loss`.

        `names` are the column names of X, if it is a data frame.
        """

    @abstractmethod
    def _loss(self, checked: Any, tensor: DataTensor) -> Loss:
        """Return the loss for normalised data, given the result of `_check_loss`."""

    def _check_graph(self, n_samples: int) -> csr_array | None:  # noqa: ARG002
        """Check the parameters of the graph; return a precomputed graph, or None."""
        return None

    def _build_graph(self, given: csr_array | None, tensor: DataTensor) -> tuple[csr_array | None, float]:  # noqa: ARG002
        """Return the graph on the samples and its weight; overridden by `parts.Graph`."""
        return None, 0.0

    def _prepare_start(self, tensor: DataTensor) -> None:
        """Compute what the starts of all fits of these data share."""

    def _start(self, tensor: DataTensor, rng: np.random.RandomState) -> Any:  # noqa: ARG002
        """Return the initial factors, or the name of the method that computes them."""
        return self.init

    # --- fitting --------------------------------------------------------------------------------------------

    @unweighted
    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Factorise X.

        Parameters
        ----------
        X : array-like, sparse array or chunked array of shape (n_samples, I_1, ..., I_{N-1})
            Nonnegative data, samples first. Sparse arrays are never made dense; a `numpy.memmap`, zarr or Dask array
            is read in blocks of samples (`docs/scaling.md`). A torch tensor stays on its device, and so do the results.
            With ``missing="ignore"`` NaN, or the mask of a masked array, marks entries that were not observed.
        y : None
            Ignored.

        Returns
        -------
        self
            Fitted attributes are set together at the end of the fit: a fit that is interrupted or raises an error
            leaves those of an earlier fit unchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from gwntf import NCP
        >>> X = np.random.default_rng(0).random((20, 4, 5))
        >>> model = NCP(n_components=3, max_iter=20, tol=0, random_state=0).fit(X)
        >>> [factor.shape for factor in model.factors_]
        [(20, 3), (4, 3), (5, 3)]
        """
        with self._replaced(refit=True) as model:
            model._fit_each(X, [model])
        return self

    @contextmanager
    def _replaced(self, *, refit: bool) -> Iterator[Self]:
        """Yield a copy to fit, whose state replaces that of this estimator if the block ends without an error.

        With `refit` the copy has no fitted attributes.
        """
        model = type(self).__new__(type(self))
        model.__dict__ = {name: value for name, value in vars(self).items() if not (refit and name.endswith("_"))}
        yield model
        self.__dict__ = model.__dict__

    def _fit_each(self, X: Any, models: Sequence[Self]) -> None:
        """Fit several models that differ only in `random_state`; the problem is built from this model."""
        check_parameters(self)
        checkpoint = checkpoint_of(self.callbacks)
        with self._context(X) as context:
            if context.cluster is not None:
                context.cluster.check()
            problem, scale = self._build_problem(X, context)
            keeper = keeper_of(models, checkpoint, problem, scale, self.device)
            params = self.get_params(deep=False)
            stated = {name: value for name, value in vars(self).items() if name not in params}
            steps = len(models) * self.n_init * self.max_iter
            with following(followers(self.callbacks), steps) as callbacks, keeper.listening():
                rngs = [check_random_state(model.random_state) for model in models]
                results = solve_each(
                    replace(problem, data=problem.data.on_cluster(context.cluster)),
                    self.n_components,
                    Stopping(self.max_iter, self.tol),
                    ((self._start(problem.data, rng), rng) for rng in rngs),
                    n_init=self.n_init,
                    callbacks=callbacks,
                    keeper=keeper,
                )
                for model, result in zip(models, results, strict=True):
                    model.__dict__.update(stated)
                    model._set_result(result, problem.data, scale, X)
        keeper.close()

    def _build_problem(self, X: Any, context: Context) -> tuple[Problem, Array]:
        """Check all input and build the problem; also return the scale of every sample."""
        raw = self._tensor(X, context, reset=True)
        shape = raw.shape
        checked, given = self._check_loss(shape, column_names(X)), self._check_graph(shape[0])
        self._penalties(shape[0])
        held = self._held(shape[1:])
        if not isinstance(self.init, str):
            as_factors(self.init, shape, self.n_components)
        tensor, scale = raw.normalised(self.sample_norm)
        if not tensor.mass > 0:
            raise InputError("X", "only zeros", "data with nonzero entries")
        if self.sample_norm is None:
            sums = tensor.backend.to_numpy(tensor.sample_sums)
            check_unscaled(tensor.dtype, tensor.largest, float(sums.sum()), self._degrees)
            warn_uneven(sums)
        warn_samples_last((shape[0], *self._layout))
        loss = self._loss(checked, tensor).fitted_by(self._plain, held[0].shape[1] if held else 0)
        self.graph_, graph_reg = self._build_graph(given, tensor)
        problem = Problem(tensor, loss, self.graph_, graph_reg, self._penalties(shape[0]), held)
        if self.graph_ is not None and graph_reg > 0:
            warn_isolated(self.graph_)
        self._prepare_start(tensor)
        return problem, scale

    def _set_result(self, result: Result, tensor: DataTensor, scale: Array, X: Any) -> None:
        """Set the fitted attributes, and warn if the fit did not converge."""
        self._set_factors(result.factors, tensor, scale, X)
        self.objective_, self.objective_curve_ = result.objective, result.objective_curve
        self.objective_terms_ = result.terms
        self.n_iter_, self.status_ = result.n_iter, result.status
        warn_status(self.status_, result, self.tol)
        warn_empty_components([tensor.backend.to_numpy(factor) for factor in result.factors])

    def _set_factors(self, factors: Sequence[Array], tensor: DataTensor, scale: Array, X: Any) -> None:
        """Set the factors, as arrays of the same kind as X, and delete attributes computed from earlier ones."""
        backend = tensor.backend
        self.__dict__.pop("components_", None)
        self.reconstruction_err_ = tensor.relative_error(KruskalRows(factors))
        self.factors_ = [backend.as_given(factor, X) for factor in factors]
        self.embedding_ = backend.as_given(self._in_units(backend, factors[0], scale), X)
        self.sample_scale_ = backend.as_given(scale, X)

    @unweighted
    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Factorise X and return `embedding_`, the embedding of the fit, which includes the graph.

        It differs from ``fit(X).transform(X)``, which treats X as new samples.

        Examples
        --------
        >>> import numpy as np
        >>> from gwntf import NCP
        >>> X = np.random.default_rng(0).random((20, 4, 5))
        >>> NCP(n_components=3, max_iter=20, tol=0, random_state=0).fit_transform(X).shape
        (20, 3)
        """
        return self.fit(X, y).embedding_

    @unweighted
    def fit_impute(self, X: Any, y: Any = None) -> Array:
        """Factorise X and return it with its missing entries filled in from the fitted model.

        Needs ``missing="ignore"`` if entries are missing. It differs from ``fit(X).impute(X)``, which treats X as new
        samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, I_1, ..., I_{N-1})
            Nonnegative data, NaN or masked at missing entries.
        y : None
            Ignored.

        Returns
        -------
        array of the same shape and kind as X
            In the number type of the fit: observed entries of X, and ``embedding_ @ components_`` at missing entries.

        Examples
        --------
        >>> import numpy as np
        >>> from gwntf import NMF
        >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
        >>> X[1, 2] = np.nan
        >>> NMF(1, missing="ignore", max_iter=200, tol=0, random_state=0).fit_impute(X)[1].round(3)
        array([2., 4., 8.])
        """
        self.fit(X, y)
        with self._context(X) as context:
            backend = context.backend
            embedding, scale = backend.asarray(self.factors_[0]), backend.asarray(self.sample_scale_)
            rows = self._fill(embedding, scale, self._tensor(X, context, reset=False))
            return self._as_frame(backend.as_given(rows, X), X, getattr(X, "columns", None))

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "ignore"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_parameters(model: Any) -> None:
    """Raise a ValueError unless every parameter of an estimator has a valid type and value; no data are needed."""
    model._validate_params()
    for name, allowed in model._parameter_constraints.items():
        value = getattr(model, name)
        if isinstance(value, bool) and "boolean" not in allowed:  # Python takes True for 1
            raise InputError(name, repr(value), "a number")
    for index, callback in enumerate(getattr(model, "callbacks", None) or ()):
        if not callable(callback) and not isinstance(callback, Checkpoint):
            raise InputError(f"callbacks[{index}]", type(callback).__name__, "a Checkpoint or a callable")


def checkpoint_of(callbacks: Sequence[Any] | None) -> Checkpoint | None:
    """Return the checkpoint among the callbacks, or None; its folder must exist."""
    found = [callback for callback in callbacks or () if isinstance(callback, Checkpoint)]
    if len(found) > 1:
        raise InputError("callbacks", f"{len(found)} checkpoints", "at most one")
    for checkpoint in found:
        checkpoint.check_folder()
    return found[0] if found else None


def followers(callbacks: Sequence[Any] | None) -> list[Any]:
    """Return the callbacks that are called after every iteration."""
    return [callback for callback in callbacks or () if not isinstance(callback, Checkpoint)]


Model = TypeVar("Model", bound=Factorization)


def fit_many(estimator: Model, X: Any, random_states: Sequence[Any]) -> list[Model]:
    """Fit an estimator once for every random state.

    Equivalent to fitting copies of it one after the other, but X is checked and transferred to the device once, and
    graph, costs and kernels are built once; on a GPU, small problems are recorded by the first fit and replayed by the
    others.

    Parameters
    ----------
    estimator : estimator of this library
        It is not fitted itself.
    X : array-like
        Data, as in `fit`.
    random_states : sequence of int, RandomState or None
        One for each fit; with a graph metric "auto" the first one also determines the graph of all fits. Callbacks
        follow all fits, one after the other.

    Returns
    -------
    list of estimators
        Fitted copies, in the order of the random states.

    Examples
    --------
    >>> import numpy as np
    >>> from gwntf import NCP, fit_many
    >>> X = np.random.default_rng(0).random((20, 4, 5))
    >>> models = fit_many(NCP(n_components=2, tol=0, max_iter=5), X, random_states=range(3))
    >>> [model.random_state for model in models]
    [0, 1, 2]
    """
    if not isinstance(estimator, Factorization):
        raise InputError("estimator", type(estimator).__name__, "an estimator of this library")
    models = [clone(estimator).set_params(random_state=state) for state in random_states]
    if not models:
        raise InputError("random_states", "an empty sequence", "at least one random state")
    for model in models:
        model.callbacks = estimator.callbacks  # not cloned: the same objects follow all fits
        model._clusters, model._plain = getattr(estimator, "_clusters", None), estimator._plain
    models[0]._fit_each(X, models)
    return models
