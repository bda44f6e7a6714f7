"""Time to accuracy against scikit-learn and TensorLy: least squares and KL, from the same starts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import kl_div
from sklearn.decomposition import NMF as SklearnNMF  # noqa: N811
from tensorly.decomposition import non_negative_parafac, non_negative_parafac_hals

from benchmarks.arrival import (
    RANKS,
    Duel,
    Factors,
    Meeting,
    Trace,
    claims_of,
    meet,
    random_matrices,
    rounding,
    samples,
    thinned,
    timings_of,
)
from benchmarks.harness import Claim, Curve, Outcome, Timing
from gwntf import GWNTF, NCP, NMF
from gwntf.core import FloatArray
from gwntf.data import reconstruct

Matrix = FloatArray | csr_array

NOTE = (
    "Both programs start from the same random factors. Ours stops where its error is that of the other program at its "
    "end; complete fits are timed in turn, the others also with BLAS on one thread, and the fastest turn counts. The "
    "other programs do not compute their error in between."
)
TINY = 1e-30


def ours(model: Any, X: Any, start: Factors, count: int, callbacks: Sequence[Trace], **params: Any) -> Factors:
    """Fit a class of this library to data that are not normalised again."""
    for trace in callbacks:
        trace.begin()
    fitted = model(
        start[0].shape[1],
        init=list(start),
        max_iter=count,
        tol=0,
        sample_norm=None,
        callbacks=list(callbacks),
        **params,
    ).fit(X)
    found: Factors = fitted.factors_
    return found


def sklearn(solver: str, loss: str, X: Matrix, start: Factors, count: int) -> Factors:
    """Fit scikit-learn's NMF."""
    model = SklearnNMF(start[0].shape[1], init="custom", solver=solver, beta_loss=loss, max_iter=count, tol=0)
    W = model.fit_transform(X, W=start[0].copy(), H=np.ascontiguousarray(start[1].T))
    return [W, model.components_.T]


def tensorly(fit: Any, X: FloatArray, start: Factors, count: int) -> Factors:
    """Fit a nonnegative CP model of TensorLy, which changes the start that it is given."""
    rank = start[0].shape[1]
    weights, factors = fit(
        X,
        rank,
        n_iter_max=count,
        init=(np.ones(rank, X.dtype), [factor.copy() for factor in start]),
        tol=0,
    )
    return [factors[0] * weights, *factors[1:]]


def half_squares(X: FloatArray, factors: Factors) -> float:
    """Return 1/2 |X - X^|^2 in float64."""
    model = reconstruct([factor.astype(np.float64) for factor in factors])
    return float(0.5 * np.sum((X.reshape(model.shape) - model) ** 2))


def kullback_leibler(X: Matrix, factors: Factors) -> float:
    """Return KL(X | X^) in float64, of dense or sparse data."""
    W, H = (factor.astype(np.float64) for factor in factors)
    if not isinstance(X, csr_array):
        return float(kl_div(X.astype(np.float64), np.maximum(W @ H.T, TINY)).sum())
    places = X.tocoo()
    x, y = places.data.astype(np.float64), np.einsum("ir,ir->i", W[places.row], H[places.col])
    return float(np.sum(x * np.log(x / np.maximum(y, TINY)) - x) + W.sum(axis=0) @ H.sum(axis=0))


def least_squares_duel(name: str, seed: int, iterations: int = 200) -> Duel:
    """Return NMF against coordinate descent."""
    X = samples(name).reshape(len(samples(name)), -1)
    start = random_matrices(X, RANKS[name], seed)
    descent, multiplicative = (partial(sklearn, solver, "frobenius", X, start) for solver in ("cd", "mu"))
    fit, error = partial(ours, NMF, X, start), partial(half_squares, X)
    return Duel(fit, descent, error, iterations, 'scikit-learn, "cd"', {'scikit-learn, "mu"': multiplicative})


def cp_duel(name: str, seed: int, iterations: int = 50) -> Duel:
    """Return NCP against hierarchical alternating least squares."""
    X, rng = samples(name), np.random.RandomState(seed)
    start = [rng.random_sample((size, RANKS[name])).astype(np.float32) + 0.1 for size in X.shape]
    hals, multiplicative = (
        partial(tensorly, fit, X, start) for fit in (non_negative_parafac_hals, non_negative_parafac)
    )
    fit, error = partial(ours, NCP, X, start), partial(half_squares, X)
    return Duel(fit, hals, error, iterations, "TensorLy, HALS", {"TensorLy, multiplicative": multiplicative})


def kl_duel(X: Matrix, rank: int, seed: int, iterations: int = 200) -> Duel:
    """Return the KL loss against multiplicative updates."""
    start = random_matrices(X, rank, seed)
    theirs = partial(sklearn, "mu", "kullback-leibler", X, start)
    fit = partial(ours, GWNTF, X, start, costs=(None, None), graph_reg=0)
    return Duel(fit, theirs, partial(kullback_leibler, X), iterations, 'scikit-learn, "mu"')


class Record:
    """What the duels of a case found."""

    def __init__(self) -> None:
        self.timings: dict[str, Timing] = {}
        self.claims: list[Claim] = []
        self.meetings: list[Meeting] = []
        self.curves: dict[str, dict[str, Curve]] = {}

    def add(self, what: str, duels: Sequence[Duel], target: float, turns: int = 3) -> None:
        """Hold the duels of one data set, one for each start; curves are those of the first."""
        meetings, peer = [meet(duel, turns=turns) for duel in duels], duels[0].peer
        self.meetings += meetings
        self.timings |= timings_of(what, peer, meetings)
        self.claims += claims_of(what, peer, meetings, target)
        self.curves[what] = {"gwntf": thinned(meetings[0].curve), **duels[0].curves()}

    def outcome(self, title: str, *notes: str) -> Outcome:
        """Return it all."""
        return Outcome(title, self.timings, [*self.claims, rounding(self.meetings)], [NOTE, *notes], self.curves)


def arrival_least_squares(names: Sequence[str] = tuple(RANKS), starts: int = 5, cp_starts: int = 3) -> Outcome:
    """NMF against scikit-learn, and NCP against TensorLy."""
    record = Record()
    for name in names:
        record.add(f"NMF, {name}", [least_squares_duel(name, seed) for seed in range(starts)], 0.7)
    for name in names:
        record.add(f"NCP, {name}", [cp_duel(name, seed) for seed in range(cp_starts)], 0.2)
    ranks = ", ".join(f"{RANKS[name]} on {name}" for name in names)
    return record.outcome(
        "Least squares: time to the error that others have after 200 iterations (NMF) or 50 (NCP), float32",
        f"The rank is {ranks}.",
    )


def texts(n_samples: int = 2_000, n_words: int = 1_500, topics: int = 20, length: int = 80) -> csr_array:
    """Return the counts of words in texts, each of which mixes a few topics."""
    rng = np.random.default_rng(0)
    words = rng.dirichlet(np.full(n_words, 0.05), topics)
    shares = rng.dirichlet(np.full(topics, 0.1), n_samples)
    counts = [rng.multinomial(1 + rng.poisson(length), share @ words) for share in shares]
    return csr_array(np.array(counts, dtype=np.float64))


def arrival_kl(names: Sequence[str] = tuple(RANKS), starts: int = 3) -> Outcome:
    """KL against scikit-learn, on images and on sparse counts."""
    record = Record()
    data: dict[str, tuple[Matrix, int]] = {}
    for name in names:
        data[name] = samples(name).reshape(len(samples(name)), -1), RANKS[name]
    counts = texts()
    data["sparse counts"] = counts, 20
    for name, (X, rank) in data.items():
        record.add(f"KL, {name}", [kl_duel(X, rank, seed) for seed in range(starts)], 0.25, turns=2)
    size = " x ".join(f"{length:,}" for length in counts.shape)
    return record.outcome(
        "KL: time to the error that scikit-learn has after 200 iterations",
        f"Images are float32; the counts, {size} with {counts.nnz / np.prod(counts.shape):.1%} nonzeros, are float64, "
        "and both programs are given the sparse matrix.",
    )


CASES = (arrival_least_squares, arrival_kl)
