"""The classic methods against TensorLy and scikit-learn, iteration by iteration."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.decomposition import NMF as SklearnNMF  # noqa: N811
from sklearn.exceptions import ConvergenceWarning
from tensorly.decomposition import non_negative_parafac, non_negative_parafac_hals

from benchmarks.data import images
from benchmarks.harness import Claim, Outcome, Timing, race
from gwntf import GNCP, GWNTF, NCP, NMF

LOW, HIGH, RANK = 10, 110, 20
NEVER = 1e-20
"""A tolerance that is never reached: everyone looks at the objective as often as they do when they may stop."""


def per_iteration(fits: Mapping[str, Callable[[int], Any]]) -> dict[str, Timing]:
    """Seconds of one iteration: the difference of a long and a short run, so that set-up does not count."""
    turns: dict[str, Callable[[], Any]] = {}
    for name, fit in fits.items():
        for count in (LOW, HIGH):
            turns[f"{name}/{count}"] = lambda fit=fit, count=count: fit(count)  # type: ignore[misc]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        raced = race(turns, turns=5)
    step = HIGH - LOW
    return {
        name: Timing(
            *(
                (getattr(raced[f"{name}/{HIGH}"], part) - getattr(raced[f"{name}/{LOW}"], other)) / step
                for part, other in (("median", "median"), ("low", "high"), ("high", "low"))
            )
        )
        for name in fits
    }


def tensor_peers() -> Outcome:
    """NCP and GNCP against TensorLy on COIL20."""
    X = images("coil20")[0]
    rng = np.random.RandomState(0)
    start = [rng.random_sample((size, RANK)).astype(np.float32) + 0.1 for size in X.shape]
    common: dict[str, Any] = {"init": start, "tol": NEVER, "sample_norm": None}
    cp = (np.ones(RANK, np.float32), [a.copy() for a in start])
    timings = per_iteration(
        {
            "NCP": lambda n: NCP(RANK, max_iter=n, **common).fit(X),
            "GNCP": lambda n: GNCP(RANK, max_iter=n, **common).fit(X),
            "TensorLy non_negative_parafac": lambda n: non_negative_parafac(X, RANK, n_iter_max=n, init=cp, tol=NEVER),
            "TensorLy non_negative_parafac_hals": lambda n: non_negative_parafac_hals(
                X, RANK, n_iter_max=n, init=cp, tol=NEVER
            ),
        }
    )
    theirs = timings["TensorLy non_negative_parafac"].median
    hals = timings["TensorLy non_negative_parafac_hals"].median
    return Outcome(
        "One iteration of a nonnegative CP model of COIL20: rank 20, float32",
        timings,
        [
            Claim("NCP, times faster than TensorLy's multiplicative updates", theirs / timings["NCP"].median, 1),
            Claim(
                "GNCP, times faster than TensorLy's multiplicative updates",
                theirs / timings["GNCP"].median,
                1,
            ),
            Claim("NCP, times faster than TensorLy's HALS", hals / timings["NCP"].median),
        ],
        ["A HALS iteration goes further than a multiplicative one."],
    )


def matrix_peers() -> Outcome:
    """NMF under least squares and KL against scikit-learn's multiplicative updates on COIL20."""
    X = images("coil20")[0].reshape(1440, -1)
    rng = np.random.RandomState(0)
    W, H = (rng.random_sample(shape).astype(np.float32) + 0.1 for shape in ((1440, RANK), (1024, RANK)))
    common: dict[str, Any] = {"init": [W, H], "tol": NEVER, "sample_norm": None}

    def sklearn(loss: str) -> Callable[[int], Any]:
        def fit(n: int) -> Any:
            model = SklearnNMF(RANK, init="custom", solver="mu", beta_loss=loss, max_iter=n, tol=NEVER)
            return model.fit_transform(X, W=W.copy(), H=np.ascontiguousarray(H.T))

        return fit

    timings = per_iteration(
        {
            "NMF": lambda n: NMF(RANK, max_iter=n, **common).fit(X),
            "scikit-learn NMF, mu": sklearn("frobenius"),
            "KL": lambda n: GWNTF(RANK, costs=(None, None), graph_reg=0, max_iter=n, **common).fit(X),
            "scikit-learn NMF, mu, KL": sklearn("kullback-leibler"),
        }
    )
    return Outcome(
        "One iteration of NMF on COIL20: 1440 x 1024, rank 20, float32",
        timings,
        [
            Claim(
                "NMF, times faster than scikit-learn",
                timings["scikit-learn NMF, mu"].median / timings["NMF"].median,
                1,
            ),
            Claim(
                "KL, times faster than scikit-learn",
                timings["scikit-learn NMF, mu, KL"].median / timings["KL"].median,
                1,
            ),
        ],
        ["scikit-learn looks at its objective every tenth iteration, the library at every one."],
    )


CASES = (tensor_peers, matrix_peers)
