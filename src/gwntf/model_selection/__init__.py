"""Choice of the rank by stability: at the right rank, fits from different random starts agree.

May import `estimators`, `evaluation`, `datasets` and everything below. Start with `stability_curve`.
"""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state

from gwntf.backends import to_host
from gwntf.clustering import assign, check_clusters
from gwntf.core import FloatArray, InputError
from gwntf.estimators.base import Factorization
from gwntf.estimators.sklearn_compat import count_samples

__all__ = ["StabilityCurve", "stability_curve"]

_TOLERANCE = 0.02  # a rank is stable if its agreement is at most this far below the best


@dataclass(frozen=True)
class StabilityCurve:
    """Result of `stability_curve`, with one row per rank.

    Attributes
    ----------
    ranks : (n_ranks,) array
        Ranks in ascending order.
    component_agreement : (n_ranks, n_pairs) array
        Mean cosine of matched components, for every pair of fits.
    label_agreement : (n_ranks, n_pairs) array
        Adjusted Rand index of the clusters, for every pair of fits.
    reconstruction_err, objective : (n_ranks, n_seeds) arrays
        `reconstruction_err_` and `objective_` of every fit.

    Examples
    --------
    >>> import numpy as np
    >>> from gwntf.model_selection import StabilityCurve
    >>> agreement = np.array([[1.0], [0.99], [0.98], [0.7]])         # one pair of fits for each of four ranks
    >>> errors = np.zeros((4, 2))
    >>> StabilityCurve(np.array([1, 2, 3, 4]), agreement, agreement, errors, errors).best_rank
    3
    """

    ranks: NDArray[np.int_]
    component_agreement: FloatArray
    label_agreement: FloatArray
    reconstruction_err: FloatArray
    objective: FloatArray

    @property
    def best_rank(self) -> int:
        """Largest rank at which the components of different fits agree.

        The search starts at the rank with the highest mean `component_agreement` and goes upwards while the mean stays
        within 0.02 of it. Rank 1, whose fits always agree, is considered only if it is the only rank
        (`docs/model_selection.md`).
        """
        agreement = self.component_agreement.mean(axis=1)
        agreement = np.where((self.ranks == 1) & (len(self.ranks) > 1), -np.inf, agreement)
        best = int(np.argmax(agreement))
        stable = agreement[best:] >= agreement[best] - _TOLERANCE
        return int(self.ranks[best:][: int(np.argmin([*stable, False]))][-1])


def matched_cosine(first: FloatArray, second: FloatArray) -> float:
    """Return the mean cosine of components under the best one-to-one matching; components of zeros have cosine 0."""
    cosines = normalize(first.astype(np.float64)) @ normalize(second.astype(np.float64)).T
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    return float(cosines[rows, columns].mean())


def stability_curve(
    estimator: Factorization,
    X: Any,
    ranks: Sequence[int],
    *,
    n_clusters: int | None = None,
    n_seeds: int = 10,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> StabilityCurve:
    """Fit every rank from several random starts and measure how well the fits agree.

    Components of two fits are matched one to one by the Hungarian method and compared by their cosine; the k-means
    clusters of the two embeddings are compared by the adjusted Rand index.

    Parameters
    ----------
    estimator : an estimator of the library
        A factorization with ``init="random"``; clones of it are fitted.
    X : array-like of shape (n_samples, ...)
        Nonnegative data, samples first.
    ranks : sequence of int
        Values of `n_components` to try.
    n_clusters : int, optional
        Number of clusters of the labels; by default the rank.
    n_seeds : int, default=10
        Number of fits for every rank, with the same seeds for all ranks. Each fit is the best of `n_init` random starts
        of the estimator.
    n_jobs : int, optional
        Number of parallel fits, as in joblib.
    random_state : int, RandomState or None, default=None
        Generator of the seeds of the fits.

    Returns
    -------
    StabilityCurve

    Examples
    --------
    >>> from gwntf import NCP
    >>> from gwntf.datasets import make_kruskal_tensor
    >>> from gwntf.model_selection import stability_curve
    >>> X, _ = make_kruskal_tensor((40, 8, 6), 3, noise=0.1, random_state=0)
    >>> stability_curve(NCP(max_iter=300, tol=1e-5), X, [2, 3, 4], n_seeds=4, random_state=0).best_rank
    3
    """
    checked = _check_arguments(estimator, ranks, n_clusters, n_seeds)
    rng = check_random_state(random_state)
    seeds = [int(seed) for seed in rng.randint(np.iinfo(np.int32).max, size=n_seeds)]
    fits = Parallel(n_jobs=n_jobs)(
        delayed(_fit)(clone(estimator).set_params(n_components=rank, random_state=seed), X, n_clusters or rank)
        for rank in checked
        for seed in seeds
    )
    components, labels, errors, objectives = zip(*fits, strict=True)
    by_rank = np.arange(len(fits)).reshape(-1, n_seeds)
    pairs = [list(combinations(group, 2)) for group in by_rank]
    return StabilityCurve(
        np.array(checked),
        np.array([[matched_cosine(components[a], components[b]) for a, b in group] for group in pairs]),
        np.array([[adjusted_rand_score(labels[a], labels[b]) for a, b in group] for group in pairs]),
        np.reshape(errors, by_rank.shape),
        np.reshape(objectives, by_rank.shape),
    )


def _fit(model: Any, X: Any, n_clusters: int) -> tuple[FloatArray, NDArray[np.int_], float, float]:
    check_clusters(n_clusters, count_samples(X), model.n_components, "kmeans")
    model.fit(X)
    labels = assign(to_host(model.factors_[0]), n_clusters, "kmeans", model.random_state)
    return to_host(model.components_), labels, model.reconstruction_err_, model.objective_


def _check_arguments(estimator: Any, ranks: Any, n_clusters: Any, n_seeds: Any) -> list[int]:
    """Check all arguments; return the ranks in ascending order."""
    if not isinstance(estimator, Factorization):
        raise InputError("estimator", type(estimator).__name__, "an estimator of gwntf, such as GWNTF or NMF")
    if estimator.init != "random":
        given = repr(estimator.init) if isinstance(estimator.init, str) else "given factors"
        raise InputError("estimator", f"init={given}", "init='random', so that fits with different seeds differ")
    if n_clusters is not None and not (isinstance(n_clusters, numbers.Integral) and int(n_clusters) >= 1):
        raise InputError("n_clusters", repr(n_clusters), "a whole number of at least 1, or None")
    if not isinstance(n_seeds, numbers.Integral) or int(n_seeds) < 2:
        raise InputError("n_seeds", repr(n_seeds), "a whole number of at least 2")
    found = list(ranks) if isinstance(ranks, Sequence | range | np.ndarray) else []
    valid = all(isinstance(rank, numbers.Integral) and int(rank) >= 1 for rank in found)
    if not found or not valid or len(set(found)) < len(found):
        raise InputError("ranks", repr(ranks), "distinct whole numbers of at least 1")
    return sorted(int(rank) for rank in found)
