"""MiniBatchGWNTF: factors learnt from batches of samples."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, indexable

from gwntf.core import FloatArray, InputError, Status
from gwntf.data import DataTensor, as_factors, pieces
from gwntf.estimators.base import check_parameters
from gwntf.estimators.constraints import NO_GRAPH_INIT
from gwntf.estimators.context import Context
from gwntf.estimators.notices import warn, warn_empty_components, warn_samples_last
from gwntf.estimators.options import TransportOptions
from gwntf.estimators.parts import PerModeTransport
from gwntf.estimators.sklearn_compat import (
    column_names,
    count_samples,
    in_cross_validation,
    take_samples,
    unweighted,
)
from gwntf.geometry import CostSpec
from gwntf.losses import ObjectiveTerms
from gwntf.solver import (
    Callback,
    Checkpoint,
    Iteration,
    Problem,
    Steps,
    Stopping,
    following,
    hold,
    next_state,
    project,
    start_factors,
)

_DECAY = 0.6
"""Power with which the weight of a new batch decays; averages converge for powers in (1/2, 1]."""

_EMBEDDING = 3  # updates of the embedding of a batch with fixed shared factors, before all factors are updated
_FLOOR = 1e-10  # smallest entry of a column relative to its largest: features that were zero so far may still occur


class MiniBatchGWNTF(PerModeTransport):
    r"""Wasserstein nonnegative tensor factorization from batches, for streams and for data larger than memory.

    The model and the data term are those of `GWNTF` without a graph (no batch has all samples) and without transport
    along the samples. Each batch is embedded with the current shared factors, and then fitted with all factors free.
    Its last numerators :math:`w_n = A^{(n)} * (\bar\Psi / \hat X)_{(n)} A^{(-n)}` enter a running mean

    .. math:: S_n \leftarrow \rho S_n + (1 - \rho) w_n, \qquad A^{(n)} = S_n \text{ with columns that sum to one},

    with :math:`\rho = \min(\text{forget\_factor}, 1 - t^{-0.6})` at batch t, so that early batches are soon forgotten
    (stepwise EM: O. Cappé and E. Moulines, *On-line expectation-maximization algorithm for latent data models*, JRSS B
    71, 2009).

    Parameters
    ----------
    n_components : int, default=10
        Number of components (the rank of the model).
    parts : array or list of arrays, optional
        Known parts that the fit keeps: the first components, in this order; all others are free. They are known up to
        scale. An array has one part per row, of the shape of a sample; a list has one (I_n, n_parts) factor per axis.
        If all components are given, the parts may be any tensors, otherwise they must be of rank one.
    costs : "auto" or sequence, default="auto"
        As for `GWNTF`, with None for the samples; "auto" is "grid" on every other axis. Costs between slices of the
        data are those of the first batch.
    reg : float, default=0.01
        Weight of the entropy, in the units of the costs.
    reg_m : float or pair of floats, default=1.0
        Weight of the relaxed marginals: creating or destroying a unit of mass costs about this much. A pair gives the
        weights for the data and for the model; that of the data may be ``inf`` (exact marginal).
    sample_shape : tuple of int, optional
        Shape into which each row of a 2-D X is folded, for example (28, 28).
    sample_norm : {"l2", "l1"} or None, default="l2"
        Norm by which every sample is divided before the fit, so that all have equal influence.
    missing : {"error", "ignore"}, default="error"
        Whether NaN, or the mask of a masked array, raises an error or marks entries that were not observed.
    init : {"random", "nndsvd"} or list of arrays, default="random"
        Initial shared factors; "nndsvd" computes them from the first batch. The first array of a list is not used.
    batch_size : int, default=1024
        Number of samples of a batch of `fit`.
    batch_iter : int, default=10
        Number of iterations on a batch.
    max_epochs : int, default=10
        Maximum number of passes of `fit` over the data; it stops when the objective, summed over the batches of a pass,
        decreases by at most ``tol`` times its size.
    forget_factor : float in (0, 1], default=0.7
        Largest weight of the old mean when a batch is added: about the last ``1 / (1 - forget_factor)`` batches
        contribute. Use a smaller value for a stream that changes; 1 averages over all batches.
    max_iter : int, default=2000
        Maximum number of iterations of `transform`.
    tol : float, default=1e-4
        `fit` stops when the objective of an epoch decreases by at most ``tol`` times the larger of its size and that of
        the data; 0 runs `max_epochs` epochs. `transform` stops by the same rule.
    transport : TransportOptions, optional
        Expert options of the transport solver.
    engine : {"auto", "cpu", "numpy", "torch"}, default="auto"
        Library for the computations: "cpu" is compiled code on all cores, "numpy" the slow reference, "torch" runs on a
        GPU or on tensors. "auto" is "torch" for tensors and if a `device` is given, else "cpu" if numba is
        installed. A Dask array is processed by the workers of the current `distributed.Client`, if there is one.
    device : str, optional
        Torch device: "cuda", "cuda:1" or "cpu". By default that of X if X is a tensor.
    dtype : {"float32", "float64"}, optional
        Number type of the computations; by default that of X, or float32 with torch.
    callbacks : list, optional
        Objects that follow the fit: a `ProgressBar`, or functions, which are called with an `Iteration` after every
        batch and stop the fit by returning True. To continue later, save and load the model between calls of
        `partial_fit`.
    random_state : int, RandomState or None, default=None
        Seed of the random initial factors and of the order of the samples.

    Attributes
    ----------
    factors_, embedding_, components_, costs_, sample_scale_, reconstruction_err_, ...
        As for `GWNTF`; after `partial_fit`, attributes of the samples are those of its batch.
    objective_curve_ : array
        After `fit`, F of each epoch, summed over its batches, each embedded before the factors were updated with it.
        After `partial_fit`, F of every batch. `objective_` is the last value.
    objective_terms_ : ObjectiveTerms
        Terms of F of the last batch.
    n_iter_, status_
        Number of epochs and why they ended; after `partial_fit`, number of batches and "stopped".
    n_batches_ : int
        Number of batches processed.

    Examples
    --------
    >>> from gwntf import MiniBatchGWNTF, datasets
    >>> X, _ = datasets.load_digits_tensor()
    >>> model = MiniBatchGWNTF(10, random_state=0)
    >>> for start in range(0, 600, 200):
    ...     model = model.partial_fit(X[start : start + 200])
    >>> model.n_batches_, model.transform(X[:5]).shape
    (3, (5, 10))
    """

    _own_constraints: ClassVar = {"init": NO_GRAPH_INIT}
    alpha, l1_ratio, n_init = 0.0, 0.0, 1  # parameters that other estimators have

    def __init__(
        self,
        n_components: int = 10,
        *,
        parts: Any = None,
        costs: str | Sequence[CostSpec] = "auto",
        reg: float = 0.01,
        reg_m: float | tuple[float, float] = 1.0,
        sample_shape: Sequence[int] | None = None,
        sample_norm: str | None = "l2",
        missing: str = "error",
        init: str | Sequence[Any] = "random",
        batch_size: int = 1024,
        batch_iter: int = 10,
        max_epochs: int = 10,
        forget_factor: float = 0.7,
        max_iter: int = 2000,
        tol: float = 1e-4,
        transport: TransportOptions | None = None,
        engine: str = "auto",
        device: str | None = None,
        dtype: str | None = None,
        callbacks: Sequence[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.parts = parts
        self.costs = costs
        self.reg = reg
        self.reg_m = reg_m
        self.sample_shape = sample_shape
        self.sample_norm = sample_norm
        self.missing = missing
        self.init = init
        self.batch_size = batch_size
        self.batch_iter = batch_iter
        self.max_epochs = max_epochs
        self.forget_factor = forget_factor
        self.max_iter = max_iter
        self.tol = tol
        self.transport = transport
        self.engine = engine
        self.device = device
        self.dtype = dtype
        self.callbacks = callbacks
        self.random_state = random_state

    @unweighted
    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Update the model with one batch.

        Parameters
        ----------
        X : array-like
            Samples of the shape of the first batch.
        y : None
            Ignored.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from gwntf import MiniBatchGWNTF
        >>> batches = np.random.default_rng(0).random((3, 20, 4, 5))
        >>> model = MiniBatchGWNTF(2, random_state=0)
        >>> for batch in batches:
        ...     model = model.partial_fit(batch)
        >>> model.components_.shape
        (2, 20)
        """
        self._check()
        with self._replaced(refit=False) as model:
            model._fit_batch(X)
        return self

    def _check(self) -> None:
        """Check the parameters; no data are needed."""
        check_parameters(self)
        if any(isinstance(callback, Checkpoint) for callback in self.callbacks or ()):
            given, allowed = "a Checkpoint", "other callbacks: save the model between calls of `partial_fit`"
            raise InputError("callbacks", given, allowed)

    def _fit_batch(self, X: Any) -> None:
        """Update the model with one batch, and set the fitted attributes."""
        first = not hasattr(self, "n_batches_")
        with self._context(X) as context:
            tensor, scale = self._batch(X, context, check_random_state(self.random_state))
            embedding, terms = self._learn(tensor)
            self._set_factors([embedding, *self._shared_on(tensor)], tensor, scale, X)
        self.objective_ = terms.total
        self.objective_curve_ = np.append(() if first else self.objective_curve_, terms.total)
        self.n_iter_, self.status_ = self.n_batches_, Status.STOPPED

    def _fit_each(self, X: Any, models: Sequence[Self]) -> None:
        self._check()
        warn_samples_last(getattr(X, "shape", ()))
        steps = self.max_epochs * -(-count_samples(X) // self.batch_size)
        with following(self.callbacks or (), len(models) * steps) as callbacks:
            for model in models:
                model._fit_batches(X, callbacks)

    def _fit_batches(self, X: Any, callbacks: Sequence[Callback]) -> None:
        """Run epochs until F converges, then embed all samples."""
        (X,) = indexable(X)
        rng = check_random_state(self.random_state)
        curve: list[float] = []
        self.status_ = Status.MAX_ITER
        while len(curve) < self.max_epochs and self.status_ is Status.MAX_ITER:
            value, size, stopped = self._epoch(X, rng, callbacks)
            curve.append(value)
            if stopped:
                self.status_ = Status.STOPPED
            elif len(curve) > 1 and self.tol > 0 and not Stopping(tol=self.tol).moving(curve[-2], value, size):
                self.status_ = Status.CONVERGED
        self.objective_curve_, self.objective_, self.n_iter_ = np.array(curve), curve[-1], len(curve)
        self.factors_ = [np.empty((0, self.n_components)), *self._shared()]
        with self._context(X) as context:
            raw = self._tensor(X, context, reset=False)
            embedding, scale, _ = self._project(raw)
            tensor = raw.normalised(self.sample_norm)[0]
            self._set_factors([embedding, *self._shared_on(tensor)], tensor, scale, X)
        if self.status_ is Status.MAX_ITER and self.tol > 0 and not in_cross_validation():
            message = f"The objective did not converge in {self.max_epochs} epochs: raise `max_epochs` or `tol`."
            warn(message, ConvergenceWarning)
        warn_empty_components([np.asarray(mean) for mean in self._means])

    def _epoch(self, X: Any, rng: np.random.RandomState, callbacks: Sequence[Callback]) -> tuple[float, float, bool]:
        """Update the model with all samples in random order.

        Returns the sums of F and of the mass over the batches, and whether a callback stopped the fit.
        """
        order = rng.permutation(count_samples(X))
        values, sizes = [], []
        for rows in [*pieces(len(order), self.batch_size)] or [slice(0)]:  # an empty batch raises the validation error
            batch = take_samples(X, np.sort(order[rows]))
            with self._context(batch) as context:
                tensor, _ = self._batch(batch, context, rng)
                embedding, terms = self._learn(tensor)
                values.append(terms.total)
                sizes.append(tensor.mass)
            report = Iteration(0, self.n_batches_, terms.total, terms, [embedding, *self._shared()])
            stops = [callback(report) for callback in callbacks]
            if any(stops):
                return sum(values), sum(sizes), True
        return sum(values), sum(sizes), False

    def _batch(self, X: Any, context: Context, rng: np.random.RandomState) -> tuple[DataTensor, Any]:
        """Check a batch, and initialise the model from the first one; return it normalised, and its sample scales."""
        first = not hasattr(self, "n_batches_")
        raw = self._tensor(X, context, reset=first)
        if not first:
            return raw.normalised(self.sample_norm)
        checked = self._check_loss(raw.shape, column_names(X))
        held = self._held(raw.shape[1:])
        if not isinstance(self.init, str):
            as_factors(self.init, (len(self.init[0]), *raw.shape[1:]), self.n_components)
        tensor, scale = raw.normalised(self.sample_norm)
        if not tensor.mass > 0:
            raise InputError("X", "only zeros in the first batch", "data with nonzero entries")
        self._loss(checked, tensor)
        self.graph_ = None
        given = self.init if isinstance(self.init, str) else [np.ones((len(raw), self.n_components)), *self.init[1:]]
        self._means: list[FloatArray] = start_factors(tensor, self.n_components, given, rng, held)[1:]
        self.n_batches_ = 0
        return tensor, scale

    def _check_costs(self, shape: tuple[int, ...], names: Sequence[Any] | None) -> tuple[CostSpec, ...]:
        checked = super()._check_costs(shape, names)
        if checked[0] is not None:
            raise InputError("costs", "a cost between samples", "None for the samples, which are not transported")
        return checked

    def _learn(self, tensor: DataTensor) -> tuple[Any, ObjectiveTerms]:
        """Embed and fit a batch, and add its numerators to the means; return the embedding and the terms of F."""
        backend, loss, rest = tensor.backend, self._loss_of_new_samples(), self._shared_on(tensor)
        held = self._held(tensor.shape[1:])
        loss = loss.fitted_by(None, held[0].shape[1] if held else 0)
        embedding, _ = project(tensor, loss, rest, Stopping(_EMBEDDING, 0))
        steps = Steps(Problem(tensor, loss))
        with backend.quiet():
            at, terms = steps.first([embedding, *rest])
            for _ in range(self.batch_iter - 1):
                at, terms = next_state(steps, at, terms.total)
            moved = loss.moved_rest(steps.blocks, at)
            masses = backend.to_numpy(backend.xp.sum(at.kept[0].own, axis=0, dtype=backend.xp.float64))
        self.n_batches_ += 1
        self.objective_terms_ = terms
        kept = min(float(self.forget_factor), 1 - self.n_batches_**-_DECAY)
        self._means = [
            kept * mean + (1 - kept) * masses * backend.to_numpy(factor)
            for mean, factor in zip(self._means, moved, strict=True)
        ]
        return embedding, terms

    def _shared(self) -> list[FloatArray]:
        """Return the shared factors: the means, scaled to columns that sum to one."""
        raised = [np.maximum(mean, _FLOOR * mean.max(axis=0)) for mean in self._means]
        sums = [mean.sum(axis=0) for mean in raised]
        shared = [
            np.where(total > 0, mean / np.where(total > 0, total, 1), 1 / len(mean))
            for mean, total in zip(raised, sums, strict=True)
        ]
        held = self._held(self.sample_shape_)
        return hold([np.empty(0), *shared], held)[1:] if held else shared

    def _shared_on(self, tensor: DataTensor) -> list[Any]:
        return [tensor.backend.asarray(factor, tensor.dtype) for factor in self._shared()]
