"""Methods of fitted factorizations: embedding, reconstruction and imputation of new samples, and saving."""

import math
import numbers
import os
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial, reduce
from operator import mul
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gwntf.backends import Backend, is_foreign
from gwntf.core import Array, FloatArray, InputError
from gwntf.data import DataTensor, KruskalRows, as_data, as_real_array, check_layout, check_unscaled, khatri_rao
from gwntf.estimators.context import Context, open_context
from gwntf.estimators.held_parts import check_parts
from gwntf.estimators.notices import warn_graph_left_out, warn_new_samples
from gwntf.estimators.sklearn_compat import as_float_array, as_frame, note_features, unweighted
from gwntf.geometry import Ties
from gwntf.io import check_target
from gwntf.losses import Loss, Penalties, Penalty
from gwntf.solver import Stopping, project


class Fitted(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """Methods of fitted factorizations, the base of `base.Factorization`."""

    factors_: list[Array]
    embedding_: Array
    _layout: tuple[int, ...]

    def _context(self, given: Any) -> AbstractContextManager[Context]:
        """Return a context manager that opens the backend and cluster for these data."""
        return open_context(self.engine, self.device, given)

    def _tensor(self, X: Any, context: Context, *, reset: bool) -> DataTensor:
        """Check X, transfer it to the backend or to the workers, and fold its rows."""
        dtype = self.dtype or context.default_dtype
        data = as_data(
            X,
            context.backend,
            missing=self.missing,
            dtype=dtype,
            scaled=self.sample_norm is not None,
            as_array=partial(as_float_array, dtype=dtype, estimator=self),
            cluster=context.cluster,
        )
        layout = data.shape[1:]
        if not reset and layout != self._layout and (len(layout) > 1 or len(self._layout) > 1):
            raise InputError("X", f"samples of shape {layout}", _as_in_fit(data.shape, self._layout))
        note_features(self, X, reset=reset)
        folded, sample_shape = self._fold(data)
        if reset:
            self._layout, self.sample_shape_ = layout, tuple(sample_shape)
        return folded

    def _held(self, sample_shape: Sequence[int]) -> list[FloatArray]:
        """Return the factors of the held components, for samples of this shape in the model."""
        return check_parts(self.parts, sample_shape, self.n_components)

    @abstractmethod
    def _fold(self, data: DataTensor) -> tuple[DataTensor, tuple[int, ...]]:
        """Reshape the data to the order of the model; also return the shape of one sample."""

    @property
    def _degrees(self) -> tuple[int, int]:
        """Powers of the data that must not underflow and overflow: 1 for transport, 2 for least squares and a graph."""
        return 1, 1

    @abstractmethod
    def _loss_of_new_samples(self) -> Loss:
        """Return the loss for new samples."""

    def _ties(self, tensor: DataTensor) -> Ties | None:  # noqa: ARG002
        """Return the edges from new samples to training samples; overridden by `parts.Graph`."""
        return None

    @property
    def _graph_left_out(self) -> bool:
        """Whether the fit had a graph that cannot be extended to new samples."""
        return False

    def transform(self, X: Any) -> Array:
        """Embed new samples with the other factors fixed.

        The graph of the fit is extended: every new sample is joined to its nearest training samples. A `graph` given as
        a matrix, and the graph of data that are not in memory, cannot be extended; new samples are then embedded
        without it, with a `GraphNotExtendedWarning`.

        Parameters
        ----------
        X : array-like
            Samples of the shape seen in `fit`.

        Returns
        -------
        array of shape (n_samples, n_components)
            Same kind and units as X: the contribution of each component to the sum of the sample (divide by the row
            sums for proportions). Each sample is embedded independently of the others, with the `max_iter` and `tol`
            of the fit.

        Examples
        --------
        >>> import numpy as np
        >>> from gwntf import NCP
        >>> X = np.random.default_rng(0).random((20, 4, 5))
        >>> model = NCP(n_components=3, max_iter=20, tol=0, random_state=0).fit(X)
        >>> model.transform(X[:2]).shape
        (2, 3)
        """
        with self._context(X) as context:
            embedding, scale, _ = self._embed(X, context)
            if self._graph_left_out:
                warn_graph_left_out()
            return context.backend.as_given(self._in_units(context.backend, embedding, scale), X)

    def inverse_transform(self, Z: Any) -> Array:
        """Return the model of embedded samples, in the units and the layout of the X of `fit`.

        Examples
        --------
        >>> import numpy as np
        >>> from gwntf import NCP
        >>> X = np.random.default_rng(0).random((20, 4, 5))
        >>> model = NCP(n_components=3, max_iter=20, tol=0, random_state=0).fit(X)
        >>> model.inverse_transform(model.embedding_).shape
        (20, 4, 5)
        """
        check_is_fitted(self)
        with self._context(Z) as context:
            backend = context.backend
            check_layout(Z, "Z")
            embedding = backend.asarray(Z if is_foreign(Z) else as_real_array(Z, "Z"))
            width = self.embedding_.shape[1]
            if embedding.ndim != 2 or embedding.shape[1] != width:
                raise InputError("Z", f"shape {tuple(embedding.shape)}", f"shape (n_samples, {width})")
            if not bool(backend.xp.all(backend.xp.isfinite(embedding))):
                raise InputError("Z", "entries that are not finite", "finite numbers")
            return self._as_frame(backend.as_given(self._model(backend, embedding), Z), Z)

    def reconstruct(self, X: Any) -> Array:
        """Return the model of X, ``inverse_transform(transform(X))``; missing entries are filled in.

        The result is dense, also if X is sparse.

        Examples
        --------
        >>> import numpy as np
        >>> from gwntf import NMF
        >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])      # rank one
        >>> NMF(1, max_iter=200, tol=0, random_state=0).fit(X).reconstruct([[5.0, 10.0, 20.0]]).round(3)
        array([[ 5., 10., 20.]])
        """
        with self._context(X) as context:
            embedding, scale, _ = self._embed(X, context)
            rows = self._model(context.backend, self._in_units(context.backend, embedding, scale))
            return self._as_frame(context.backend.as_given(rows, X), X, getattr(X, "columns", None))

    def impute(self, X: Any) -> Array:
        """Return new samples with missing entries filled in from `reconstruct`; observed entries are unchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from gwntf import NMF
        >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])      # rank one
        >>> model = NMF(1, missing="ignore", max_iter=200, tol=0, random_state=0).fit(X)
        >>> model.impute([[5.0, np.nan, 20.0]]).round(3)
        array([[ 5., 10., 20.]])
        """
        with self._context(X) as context:
            rows = self._fill(*self._embed(X, context))
            return self._as_frame(context.backend.as_given(rows, X), X, getattr(X, "columns", None))

    @unweighted
    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Return minus the relative reconstruction error |X - reconstruct(X)| / |X| over the observed entries.

        Examples
        --------
        >>> import numpy as np
        >>> from gwntf import NMF
        >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])      # rank one
        >>> abs(round(NMF(1, max_iter=200, tol=0, random_state=0).fit(X).score(X), 3))
        0.0
        """
        with self._context(X) as context:
            embedding, scale, tensor = self._embed(X, context)
            return -tensor.relative_error(self._rows(embedding, scale, tensor))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `gwntf.load` reads.

        `docs/reliability.md` describes the format. `callbacks` are not written; a function as graph metric raises an
        error. Tensors are written as NumPy arrays.

        Parameters
        ----------
        path : path
            File to write, usually with the suffix ".gwntf".

        Examples
        --------
        >>> import os, tempfile, numpy as np
        >>> from gwntf import NMF, load
        >>> model = NMF(2, max_iter=5, tol=0, random_state=0).fit(np.eye(6) + 0.1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "model.gwntf"))
        ...     load(os.path.join(folder, "model.gwntf")).n_iter_
        5
        """
        from gwntf.estimators.files import write_model  # it imports all classes, which inherit from this one

        check_is_fitted(self)
        check_target(path)
        write_model(self, path)

    def _as_frame(self, rows: Array, like: Any, names: Any = None) -> Any:
        """Return samples as a data frame if `set_output` or the input requires it and every sample is a row."""
        return as_frame(rows, like, getattr(self, "feature_names_in_", names), self)

    def _model(self, backend: Backend, embedding: Array) -> Array:
        """Return the model of embedded samples, in the wider of the two number types and in the layout of X."""
        components = backend.asarray(self.components_)
        wide = np.result_type(backend.dtype(embedding), backend.dtype(components))
        rows = backend.asarray(embedding, wide) @ backend.asarray(components, wide)
        return rows.reshape(rows.shape[0], *self._layout)

    def _in_units(self, backend: Backend, embedding: Array, scale: Array) -> Array:
        """Return rows of A(1) in the units of X: the contribution of each component to the sum of a sample."""
        factors = [backend.asarray(factor) for factor in self.factors_[1:]]
        return embedding * column_masses(backend, factors, backend.dtype(embedding)) * scale[:, None]

    def _rows(self, embedding: Array, scale: Array, tensor: DataTensor) -> KruskalRows:
        """Return the model of samples, multiplied by their scales, in the order of `tensor`."""
        rest = [tensor.backend.asarray(factor, tensor.dtype) for factor in self.factors_[1:]]
        return KruskalRows([embedding * scale[:, None], *rest])

    def _fill(self, embedding: Array, scale: Array, tensor: DataTensor) -> Array:
        """Fill the missing entries of samples from their model, in the layout of the X of `fit`."""
        return tensor.filled(self._rows(embedding, scale, tensor)).reshape(-1, *self._layout)

    def _embed(self, X: Any, context: Context) -> tuple[Array, Array, DataTensor]:
        """Return embedding and scale of new samples, and the samples as a tensor; warn if many did not converge."""
        check_is_fitted(self)
        raw = self._tensor(X, context, reset=False)
        embedding, scale, far = self._project(raw)
        if self.tol > 0:
            warn_new_samples(far / len(embedding), self.max_iter)
        return embedding, scale, raw

    def _penalties(self, n_samples: int) -> Penalties:
        """Return the L1 and L2 penalties; those on the parts are proportional to the number of samples."""
        given: Any = self.alpha
        pair = (given, given) if isinstance(given, numbers.Real) else tuple(given)
        if len(pair) != 2 or not all(isinstance(one, numbers.Real) and 0 <= float(one) < math.inf for one in pair):
            raise InputError("alpha", repr(given), "a nonnegative number, or a pair (embedding, parts) of them")
        weights = (float(pair[0]), float(pair[1]) * n_samples)
        return Penalties(*(Penalty(weight * self.l1_ratio, weight * (1 - self.l1_ratio)) for weight in weights))

    def _rows_as_new(self, X: Any) -> FloatArray:
        """Embed samples as new ones, in normalised scale; return a NumPy array; never warn."""
        check_is_fitted(self)
        with self._context(X) as context:
            return context.backend.to_numpy(self._project(self._tensor(X, context, reset=False))[0])

    def _project(self, raw: DataTensor) -> tuple[Array, Array, int]:
        """Return embedding and scale of samples as new ones, and the number far from converged."""
        tensor, scale = raw.normalised(self.sample_norm)
        if self.sample_norm is None:
            check_unscaled(tensor.dtype, 1.0, float(tensor.sample_sums.max()), self._degrees)
        stopping, ties = Stopping(self.max_iter, self.tol), self._ties(tensor)
        loss, penalty = self._loss_of_new_samples(), self._penalties(len(tensor)).samples
        embedding, far = project(tensor, loss, self.factors_[1:], stopping, ties, penalty)
        return embedding, scale, far

    @cached_property
    def components_(self) -> Array:
        """Khatri-Rao product of all factors but the sample factor, one row of sum one per component."""
        check_is_fitted(self)
        with self._context(self.embedding_) as context:
            backend = context.backend
            factors = [backend.asarray(factor) for factor in self.factors_[1:]]
            masses = column_masses(backend, factors, backend.dtype(factors[0]))
            rows = khatri_rao(factors) / backend.xp.where(masses > 0, masses, backend.xp.ones_like(masses))
            return backend.as_given(rows.T, self.embedding_)


def column_masses(backend: Backend, factors: Sequence[Array], dtype: Any) -> Array:
    """Return the sum of the entries of every component, the product of the column sums of some factors."""
    sums = (backend.xp.sum(factor, axis=0, dtype=backend.xp.float64) for factor in factors)
    return backend.asarray(reduce(mul, sums), dtype)


def _as_in_fit(shape: tuple[int, ...], layout: tuple[int, ...]) -> str:
    """Return the expected shape of new samples as text, with the reshape that gives it if it is evident."""
    allowed = f"samples of shape {layout}, as in `fit`"
    if shape == layout:
        return f"{allowed}: one sample is X[None]"
    if math.prod(shape[1:]) == math.prod(layout) and 1 in (len(shape) - 1, len(layout)):
        return f"{allowed}: X.reshape({', '.join(map(str, (-1, *layout)))})"
    return allowed
