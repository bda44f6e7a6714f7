"""A validated nonnegative tensor of which only the nonzero entries are held, samples first."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from gwntf.core import FloatArray, InputError
from gwntf.backends import Backend, get_backend
from gwntf.data.factors import KruskalRows
from gwntf.data.fibers import Fibers, Places, changes, find_fibers


@dataclass(frozen=True, eq=False)
class SparseTensor:
    """Nonzero entries and their places; every other entry is an observed zero.

    Attributes
    ----------
    places : (N, nnz) array
        Places of the entries, in their order with the last axis fastest, none twice.
    values : (nnz,) array
        Finite and positive.
    shape : tuple of int
        Samples first.
    backend : Backend
        Who works on it: one of those that hold NumPy arrays.
    complete : bool
        Nothing is missing.
    """

    places: Places
    values: FloatArray
    shape: tuple[int, ...]
    backend: Backend = field(default_factory=lambda: get_backend("numpy"))
    complete: bool = True

    def __len__(self) -> int:
        """Count the samples."""
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Order of the tensor."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the values."""
        return self.values.dtype

    @property
    def on_host(self) -> SparseTensor:
        """Itself."""
        return self

    @cached_property
    def _fibers(self) -> dict[int, Fibers]:
        return {}

    def fibers(self, mode: int) -> Fibers:
        """Return the nonzero fibers of a mode, found once."""
        if mode not in self._fibers:
            self._fibers[mode] = find_fibers(self.places, self.values, self.shape, mode)
        return self._fibers[mode]

    @cached_property
    def own_fibers(self) -> Fibers:
        """The nonzero fibers of a mode other than the samples: each lies in one sample."""
        sizes = [(self.fibers(mode).count, mode) for mode in range(1, self.ndim)]
        return self.fibers(min(sizes)[1])

    @property
    def rows(self) -> csr_array:
        """One row per sample, as wide as a sample is large."""
        wide = _flat(self.places[1:], self.shape[1:])
        entries = (self.values, (self.places[0], wide))
        return csr_array(entries, shape=(self.shape[0], math.prod(self.shape[1:])))

    def slices(self, mode: int) -> csr_array:
        """One row per place on a mode: that slice of the tensor, without columns in which all slices are zero."""
        return self.fibers(mode).matrix.T.tocsr()

    @cached_property
    def sample_sums(self) -> FloatArray:
        """Sum of every sample, in float64."""
        sums = np.bincount(self.places[0], self.values.astype(np.float64), minlength=self.shape[0])
        return sums.astype(np.float64)

    @property
    def sample_tops(self) -> FloatArray:
        """Largest entry of every sample."""
        tops = np.zeros(self.shape[0], self.dtype)
        np.maximum.at(tops, self.places[0], self.values)
        return tops

    def astype(self, dtype: Any) -> SparseTensor:
        """Return the same entries in another number type, without those that it rounds to zero."""
        values = self.values.astype(dtype, copy=False)
        kept = values > 0
        if kept.all():
            return replace(self, values=values)
        return replace(self, places=self.places[:, kept], values=values[kept])

    @property
    def largest(self) -> float:
        """Largest entry."""
        return float(self.values.max())

    @property
    def mass(self) -> float:
        """Sum of all entries."""
        return float(self.values.sum(dtype=np.float64))

    def reshape(self, *shape: int) -> SparseTensor:
        """Return the same entries under another shape of the same size; one length may be -1."""
        known = math.prod(size for size in shape if size != -1)
        whole = tuple(math.prod(self.shape) // known if size == -1 else int(size) for size in shape)
        if whole == self.shape:
            return self
        places = np.stack(np.unravel_index(_flat(self.places, self.shape), whole)).astype(np.int64)
        return replace(self, places=places, shape=whole)

    def of(self, samples: slice) -> SparseTensor:
        """Return some of the samples."""
        first, last, _ = samples.indices(self.shape[0])
        part = slice(*np.searchsorted(self.places[0], [first, last]))
        places = self.places[:, part].copy()
        places[0] -= first
        return replace(self, places=places, values=self.values[part], shape=(last - first, *self.shape[1:]))

    def batches(self, entries: int) -> Iterator[slice]:  # noqa: ARG002
        """All samples at once: no work on them needs memory for more than their nonzero fibers."""
        return iter([slice(0, self.shape[0])])

    def normalised(self, norm: str | None) -> tuple[SparseTensor, FloatArray]:
        """Divide every sample by its norm ("l2", "l1" or None); return tensor and norms (1 for zeros)."""
        if norm is None:
            return self, np.ones(self.shape[0], self.dtype)
        sample, values = self.places[0], self.values.astype(np.float64)
        largest = self.sample_tops.astype(np.float64)
        power = 2 if norm == "l2" else 1
        parts = (values / largest[sample]) ** power
        norms = largest * np.bincount(sample, parts, minlength=self.shape[0]) ** (1 / power)
        if norms.max() > float(np.finfo(self.dtype).max):
            allowed = "smaller numbers, or dtype='float64' for float32 data"
            raise InputError("X", f"a sample whose norm {norms.max():g} is out of range", allowed)
        scale = np.where(norms > 0, norms, 1).astype(self.dtype)
        return replace(self, values=self.values / scale[sample]), scale

    def relative_error(self, model: KruskalRows) -> float:
        """|X - X^| / |X| from |X|^2 - 2 <X, X^> + |X^|^2, whose last term comes from the factors' Gram matrices."""
        top = float(self.values.max(initial=0))
        unit = top if top > 0 else 1.0
        samples, *rest = (np.asarray(factor, np.float64) for factor in model.factors)
        scaled = [samples / unit, *rest]
        fibers = self.own_fibers
        square = float(((self.values.astype(np.float64) / unit) ** 2).sum())
        across = (fibers.matrix.astype(np.float64) @ scaled[fibers.mode]) / unit
        cross = float((across * fibers.weights(scaled)).sum())
        gram = np.ones((samples.shape[1],) * 2)
        for factor in scaled:
            gram = gram * (factor.T @ factor)
        error = math.sqrt(max(square - 2 * cross + float(gram.sum()), 0.0))
        return error / math.sqrt(square) if square > 0 else error * unit


def is_sparse(X: Any) -> bool:
    """Whether this is a SciPy sparse matrix or a sparse array of the `sparse` library."""
    kind = getattr(sys.modules.get("sparse"), "SparseArray", None)
    return bool(issparse(X)) or (kind is not None and isinstance(X, kind))


def as_sparse_tensor(X: Any, *, backend: Backend | None = None) -> SparseTensor:
    """Check a sparse array of order N >= 2: duplicates are summed, stored zeros dropped.

    float32 and float64 are kept, everything else becomes float64.
    """
    places, values, shape = _entries(X)
    if values.dtype.kind not in "fiub":
        raise InputError("X", f"entries of type {values.dtype}", "an array of real numbers")
    keep = values.dtype in (np.float32, np.float64)
    values = values.astype(values.dtype if keep else np.float64)
    if not np.isfinite(values).all():
        kind = "NaN" if np.isnan(values).any() else "infinite"
        allowed = "finite nonnegative numbers; in a sparse array every entry counts as observed"
        raise InputError("X", f"{kind} entries", allowed)
    order = np.lexsort(places[::-1])
    places, values = places[:, order], values[order]
    first = np.flatnonzero(changes(places))
    if first.size < values.size:
        places, values = places[:, first], np.add.reduceat(values, first)
    if values.size and values.min() < 0:
        raise InputError("X", f"negative entries (smallest {values.min():g})", "nonnegative numbers")
    kept = values > 0
    if not kept.all():
        places, values = places[:, kept], values[kept]
    return SparseTensor(places, values, shape, backend or get_backend("numpy"))


def _entries(X: Any) -> tuple[Places, FloatArray, tuple[int, ...]]:
    """Places, values and shape of a sparse array of either library."""
    if not issparse(X) and X.fill_value != 0:
        raise InputError("X", f"a sparse array with fill_value={X.fill_value}", "one whose fill_value is 0")
    coo = X.tocoo() if hasattr(X, "tocoo") else X
    shape = tuple(int(size) for size in coo.shape)
    if len(shape) < 2:
        raise InputError("X", f"{len(shape)} dimension(s)", "2 or more dimensions, samples first")
    if 0 in shape:
        raise InputError("X", f"the empty shape {shape}", "at least one entry along every axis")
    places = np.stack([np.asarray(axis, np.int64) for axis in coo.coords])
    return places, np.asarray(coo.data), shape


def _flat(places: Places, shape: Sequence[int]) -> Places:
    """Places as one number each, last axis fastest."""
    if math.prod(shape) > np.iinfo(np.int64).max:
        raise InputError("X", f"a sparse array of shape {tuple(shape)}", "fewer than 2^63 entries to reshape")
    flat: Places = np.ravel_multi_index(tuple(places), tuple(shape)).astype(np.int64)
    return flat
