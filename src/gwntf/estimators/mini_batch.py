"""MiniBatchGWNTF: the factors that samples share, learnt from one batch of samples after the other."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, indexable

from gwntf.core import FloatArray, InputError, Status
from gwntf.data import DataTensor, as_factors, pieces
from gwntf.estimators.base import check_parameters
from gwntf.estimators.constraints import NO_GRAPH_INIT
from gwntf.estimators.notices import warn, warn_empty_components, warn_samples_last
from gwntf.estimators.options import TransportOptions
from gwntf.estimators.parts import PerModeTransport
from gwntf.estimators.places import Place
from gwntf.estimators.sklearn_compat import (
    count_samples,
    in_cross_validation,
    take_samples,
)
from gwntf.geometry import CostSpec
from gwntf.losses import ObjectiveTerms
from gwntf.solver import Callback, Checkpoint, Iteration, Problem, Steps, Stopping, following, project, start_factors

_DECAY = 0.6
"""Power by which the weight of a new batch falls; averages converge for powers above one half and up to one."""

_EMBEDDING = 3  # steps that a batch takes alone, before the shared factors move with it
_FLOOR = 1e-10  # part of a column's largest entry below which no entry falls: what was never seen may still come


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
        Norm by which every sample is divided before the fit, so that all count alike.
    missing : {"error", "ignore"}, default="error"
        Whether NaN, or the mask of a masked array, raises an error or marks entries that were not observed.
    init : {"random", "nndsvd"} or list of arrays, default="random"
        Initial shared factors; "nndsvd" computes them from the first batch. Of a list the first array is not used.
    batch_size : int, default=1024
        Number of samples of a batch of `fit`.
    batch_iter : int, default=10
        Number of iterations on a batch.
    max_epochs : int, default=10
        Maximum number of passes of `fit` over the data; it ends when the objective, summed over the batches as they
        came, falls by no more than `tol` of its size.
    forget_factor : float in (0, 1], default=0.7
        Largest weight of the old mean when a batch is added: about the last ``1 / (1 - forget_factor)`` batches count.
        Use less for a stream that changes; 1 averages over all batches.
    max_iter : int, default=1000
        Maximum number of iterations of `transform`.
    tol : float, default=1e-4
        The fit stops when the objective falls by at most ``tol`` times the larger of its size and that of the data. 0
        runs `max_iter` iterations.
    transport : TransportOptions, optional
        Expert options of the transport solver.
    engine : {"auto", "cpu", "numpy", "torch"}, default="auto"
        Library for the computations: "cpu" is compiled code on all cores, "numpy" the slow reference, "torch" runs on a
        GPU or on tensors. "auto" is "torch" for tensors and where a `device` is given, else "cpu" where numba is
        installed. A Dask array is processed by the workers of the current `distributed.Client`, if there is one.
    device : str, optional
        Device of torch: "cuda", "cuda:1" or "cpu". By default that of a tensor X.
    dtype : {"float32", "float64"}, optional
        Number type of the computations; by default that of X, and float32 on torch.
    callbacks : list, optional
        Objects that follow the fit: a `ProgressBar`, or functions, which are called with an `Iteration` after every
        batch and end the fit by returning True. To continue later, save and load the model between calls of
        `partial_fit`.
    random_state : int, RandomState or None, default=None
        Seed of the random initial factors and of the order of the samples.

    Attributes
    ----------
    factors_, embedding_, components_, costs_, sample_scale_, reconstruction_err_, ...
        As for `GWNTF`; after `partial_fit` those of the samples are of its batch.
    objective_curve_ : array
        Of `fit`: F summed over the batches of each epoch, each embedded before it was learnt from. Of `partial_fit`: F
        of every batch. `objective_` is the last one.
    objective_terms_ : ObjectiveTerms
        F of the last batch, term by term.
    n_iter_, status_
        Epochs, and why they ended; after `partial_fit` its batches, and "stopped".
    n_batches_ : int
        Batches that the factors have seen.

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
        max_iter: int = 1000,
        tol: float = 1e-4,
        transport: TransportOptions | None = None,
        engine: str = "auto",
        device: str | None = None,
        dtype: str | None = None,
        callbacks: Sequence[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
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

    def partial_fit(self, X: Any, y: Any = None, *, sample_weight: None = None) -> Self:  # noqa: ARG002
        """Learn from one batch.

        Parameters
        ----------
        X : array-like
            Samples of the shape of the first batch.
        y : None
            Ignored.
        sample_weight : None
            Refused: all samples have the same weight.

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
        self._refuse_weights(sample_weight)
        self._check()
        with self._replaced(refit=False) as model:
            model._fit_batch(X)
        return self

    def _check(self) -> None:
        """Check the parameters, whatever the data."""
        check_parameters(self)
        if any(isinstance(callback, Checkpoint) for callback in self.callbacks or ()):
            given, allowed = "a Checkpoint", "other callbacks: save the model between calls of `partial_fit`"
            raise InputError("callbacks", given, allowed)
        if self._options().update != "mm":
            raise InputError("transport.update", repr(self._options().update), "'mm' for batches")

    def _fit_batch(self, X: Any) -> None:
        """Learn from one batch, and set the fitted attributes."""
        first = not hasattr(self, "n_batches_")
        with self._place(X) as place:
            tensor, scale = self._batch(X, place, check_random_state(self.random_state))
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
        """Go through the data until F converges, then embed all samples."""
        (X,) = indexable(X)
        rng = check_random_state(self.random_state)
        curve: list[float] = []
        self.status_ = Status.MAX_ITER
        while len(curve) < self.max_epochs and self.status_ is Status.MAX_ITER:
            value, size = self._epoch(X, rng, callbacks)
            curve.append(value)
            if len(curve) > 1 and self.tol > 0 and not Stopping(tol=self.tol).moving(curve[-2], value, size):
                self.status_ = Status.CONVERGED
        self.objective_curve_, self.objective_, self.n_iter_ = np.array(curve), curve[-1], len(curve)
        self.factors_ = [np.empty((0, self.n_components)), *self._shared()]
        with self._place(X) as place:
            raw = self._tensor(X, place, reset=False)
            embedding, scale, _ = self._project(raw)
            tensor = raw.normalised(self.sample_norm)[0]
            self._set_factors([embedding, *self._shared_on(tensor)], tensor, scale, X)
        if self.status_ is Status.MAX_ITER and self.tol > 0 and not in_cross_validation():
            warn(f"F had not converged in {self.max_epochs} epochs: raise `max_epochs` or `tol`.", ConvergenceWarning)
        warn_empty_components([np.asarray(mean) for mean in self._means])

    def _epoch(self, X: Any, rng: np.random.RandomState, callbacks: Sequence[Callback]) -> tuple[float, float]:
        """Learn from all samples in random order; return the sum of F over the batches, and of their masses."""
        order = rng.permutation(count_samples(X))
        values, sizes = [], []
        for rows in [*pieces(len(order), self.batch_size)] or [slice(0)]:  # an empty batch raises the validation error
            batch = take_samples(X, np.sort(order[rows]))
            with self._place(batch) as place:
                tensor, _ = self._batch(batch, place, rng)
                embedding, terms = self._learn(tensor)
                values.append(terms.total)
                sizes.append(tensor.mass)
            news = Iteration(0, self.n_batches_, terms.total, terms, [embedding, *self._shared()])
            stops = [callback(news) for callback in callbacks]
            if any(stops):
                self.status_ = Status.STOPPED
                break
        return sum(values), sum(sizes)

    def _batch(self, X: Any, place: Place, rng: np.random.RandomState) -> tuple[DataTensor, Any]:
        """Check a batch, and initialise the model from the first one; return it normalised, and its sample scales."""
        first = not hasattr(self, "n_batches_")
        raw = self._tensor(X, place, reset=first)
        if not first:
            return raw.normalised(self.sample_norm)
        checked = self._check_loss(raw.shape)
        if not isinstance(self.init, str):
            as_factors(self.init, (len(self.init[0]), *raw.shape[1:]), self.n_components)
        tensor, scale = raw.normalised(self.sample_norm)
        if not tensor.mass > 0:
            raise InputError("X", "only zeros in the first batch", "data with some mass")
        self._loss(checked, tensor)
        self.graph_ = None
        if isinstance(self.init, str):
            self._means: list[FloatArray] = start_factors(tensor, self.n_components, self.init, rng)[1:]
        else:
            self._means = [np.asarray(factor, np.float64) / np.sum(factor, axis=0) for factor in self.init[1:]]
        self.n_batches_ = 0
        return tensor, scale

    def _check_costs(self, shape: tuple[int, ...]) -> tuple[CostSpec, ...]:
        checked = super()._check_costs(shape)
        if checked[0] is not None:
            raise InputError("costs", "a cost between samples", "None for the samples: no batch has all of them")
        return checked

    def _learn(self, tensor: DataTensor) -> tuple[Any, ObjectiveTerms]:
        """Embed a batch and fit it, take its numerators into the means; return the embedding and F there."""
        backend, loss, rest = tensor.backend, self._loss_of_new_samples(), self._shared_on(tensor)
        embedding, _ = project(tensor, loss, rest, Stopping(_EMBEDDING, 0))
        steps = Steps(Problem(tensor, loss))
        with backend.quiet():
            at, terms = steps.first([embedding, *rest])
            for _ in range(self.batch_iter - 1):
                at, _ = steps.next(at)
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
        """Return the means with columns that sum to one."""
        raised = [np.maximum(mean, _FLOOR * mean.max(axis=0)) for mean in self._means]
        sums = [mean.sum(axis=0) for mean in raised]
        return [
            np.where(total > 0, mean / np.where(total > 0, total, 1), 1 / len(mean))
            for mean, total in zip(raised, sums, strict=True)
        ]

    def _shared_on(self, tensor: DataTensor) -> list[Any]:
        return [tensor.backend.asarray(factor, tensor.dtype) for factor in self._shared()]
