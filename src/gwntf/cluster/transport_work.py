"""What the workers do under a Wasserstein loss or KL: pure functions of a block, its rows, and small matrices."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gwntf.cluster.neighbors import with_neighbors
from gwntf.cluster.work import Place, Share
from gwntf.core import Array, FloatArray
from gwntf.backends import Backend
from gwntf.geometry import Kernel, SampleGraph
from gwntf.data import NonnegativeTensor, khatri_rao
from gwntf.losses import Wasserstein
from gwntf.losses.sweep import DenseColumns, Sweep, Swept, WarmStarts, by_columns, by_samples
from gwntf.transport import PlanTerms
from gwntf.updates import RULES

Scalings = dict[tuple[int, int], Array]


@dataclass(frozen=True)
class Job:
    """What all blocks of a fit under a Wasserstein loss have in common.

    Attributes
    ----------
    place : Place
        The backend.
    spec : Wasserstein
        The loss.
    dtype : dtype
        Of the data.
    warm : bool
        Whether scalings are kept from one transport to the next.
    """

    place: Place
    spec: Wasserstein
    dtype: np.dtype[Any]
    warm: bool

    def __reduce__(self) -> Any:
        return Job, (self.place, self.spec, self.dtype, self.warm)

    @cached_property
    def kernels(self) -> tuple[Kernel | None, ...]:
        """Built once on every worker."""
        return self.spec.kernels(self.place.backend, self.dtype)

    def sweep(self, last: Measured | None, scalings: int) -> Sweep:
        """Return a sweep that starts from copies of the last scalings, so that these stay as they were."""
        backend = self.place.backend
        warm = WarmStarts(backend, self.warm)
        for (mode, place), kept in (last.warm if last else {}).items():
            warm.keep(mode, place, backend.xp.asarray(backend.asarray(kept), copy=True))
        limits = replace(self.spec.limits, max_iter=scalings)
        return Sweep(backend, self.kernels, self.spec.relaxation, limits, warm, self.spec.transported)


@dataclass(frozen=True)
class Measured:
    """What the transports of a block have found.

    Attributes
    ----------
    samples : (n, R) array
        R_(1) A(-1), or for a block of columns its part of it.
    warm : dict
        Scalings, for the next transports.
    share : Share or None
        For the sum over blocks, until that is done.
    """

    samples: FloatArray
    warm: Scalings
    share: Share | None

    def __sizeof__(self) -> int:
        kept = sum(int(scaling.nbytes) for scaling in self.warm.values())
        return self.samples.nbytes + kept + sys.getsizeof(self.share)


def measure_samples(
    job: Job,
    block: NonnegativeTensor,
    a: FloatArray,
    rest: Sequence[FloatArray],
    last: Measured | None,
    scalings: int,
) -> Measured:
    """Transport a block of samples along all modes but theirs, or find its KL divergence."""
    backend, sweep = job.place.backend, job.sweep(last, scalings)
    first, *others = (backend.asarray(factor) for factor in (a, *rest))
    with backend.session(None), backend.quiet():
        swept = by_samples(sweep, block.values, block.observed, first, khatri_rao(others))
        misfit = 0.0 if sweep.modes else float(backend.xp.sum(swept.by_sample))
    return _measured(backend, sweep, swept, misfit, len(block.shape))


def measure_columns(
    job: Job,
    block: NonnegativeTensor,
    a: FloatArray,
    rest: Sequence[FloatArray],
    columns: slice,
    last: Measured | None,
    scalings: int,
) -> Measured:
    """Transport some columns of X_(1) along the samples."""
    backend, sweep = job.place.backend, job.sweep(last, scalings)
    first = backend.asarray(a)
    other = backend.asarray(khatri_rao(list(rest))[columns])
    with backend.session(None), backend.quiet():
        swept = by_columns(sweep, DenseColumns(block.values, block.observed), first, other)
    return _measured(backend, sweep, swept, 0.0, 1 + len(rest))


def _measured(backend: Backend, sweep: Sweep, swept: Swept, misfit: float, order: int) -> Measured:
    """Bring what is small to the host; the numbers are three a mode, and the misfit."""
    samples, others = (backend.to_numpy(product) for product in swept.products)
    numbers = np.zeros(3 * order + 1)
    for mode, terms in swept.terms.items():
        numbers[3 * mode : 3 * mode + 3] = [float(part) for part in terms.parts]
    numbers[-1] = misfit
    return Measured(samples, sweep.warm.by_place, Share(others, np.zeros(()), numbers))


def numbered_terms(numbers: FloatArray, transported: Sequence[int]) -> tuple[PlanTerms | None, ...]:
    """Name the numbers of the modes."""
    triples = numbers[:-1].reshape(-1, 3)
    return tuple(
        PlanTerms(*map(float, triple)) if mode in transported else None for mode, triple in enumerate(triples)
    )


def resting(measured: Measured, place: Place) -> Measured:
    """Return what the next step needs of it, in NumPy."""
    warm = {key: place.backend.to_numpy(kept) for key, kept in measured.warm.items()}
    return Measured(measured.samples, warm, None)


def numerator(a: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
    """W = A(1) * R_(1) A(-1), its parts being those of samples and of columns."""
    product = parts[0]
    for part in parts[1:]:
        product = product + part
    return a * product


def tied_step(
    job: Job, a: FloatArray, w: FloatArray, graph: SampleGraph, lent: Sequence[FloatArray]
) -> FloatArray:
    """One step of the rule on the rows of a block."""
    backend, rule = job.place.backend, RULES[job.spec.update]
    with backend.session(None), backend.quiet():
        here = with_neighbors(backend, graph, a, lent)
        return backend.to_numpy(rule(backend, backend.asarray(a), backend.asarray(w), job.spec.weight, here))
