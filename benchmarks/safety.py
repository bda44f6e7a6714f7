"""Fits at the ends of what numbers can hold: every estimator and engine over scales, weights, densities and odd data.

`python -m benchmarks.safety` draws combinations at random, fits and uses each model, and writes `results/safety.json`
and the table of `docs/numerics.md`. A combination ends well if everything it returns is finite, or if the library
refuses it with its own error; whatever else happens is told and counted.
"""

from __future__ import annotations

import math
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gwntf import GNCP, GNMF, GWNTF, NCP, NMF, SDNMF, SWIFT, GwntfError
from gwntf.core import Status
from gwntf.estimators.base import Factorization

ESTIMATORS: Mapping[str, type[Factorization]] = {
    kind.__name__: kind for kind in (GWNTF, NMF, GNMF, SDNMF, NCP, GNCP, SWIFT)
}
TRANSPORTED = ("GWNTF", "SDNMF", "SWIFT")
SHAPE = (12, 5, 4)
_SETTLED = {"transport_max_iter": 2000, "transport_tol": 1e-12}


@dataclass(frozen=True)
class Case:
    """One combination; each field has its levels in `LEVELS`."""

    estimator: str = "GWNTF"
    engine: str = "cpu"
    dtype: str = "float64"
    scale: float = 1.0
    density: float = 1.0
    samples: str = "random"
    rank: int = 3
    reg: float = 1e-2
    reg_m_data: float = 1.0
    graph_reg: float = 1.0
    sample_norm: str | None = "l2"
    init: str = "random"
    update: str = "mm"
    missing: bool = False
    sparse: bool = False

    @property
    def possible(self) -> bool:
        """Whether the library offers this at all; what it refuses by design is tested elsewhere."""
        with_graph = self.estimator in ("GWNTF", "GNMF", "SDNMF", "GNCP") and self.graph_reg > 0
        return not (
            (self.sparse and (self.engine == "torch" or self.missing))
            or (self.init == "graph" and not with_graph)
            or (
                self.estimator not in TRANSPORTED
                and (self.update != "mm" or self.reg != 0.01 or self.reg_m_data != 1)
            )
            or (self.estimator in ("NMF", "NCP", "SWIFT") and self.graph_reg != 0)
            or (self.missing and self.dtype not in ("float32", "float64"))
            or (self.sparse and self.dtype == "float16")
        )


LEVELS: Mapping[str, tuple[Any, ...]] = {
    "estimator": tuple(ESTIMATORS),
    "engine": ("numpy", "cpu", "torch"),
    "dtype": ("float64", "float32", "float16", "int64", "bool"),
    "scale": (
        1.0,
        1e-300,
        1e-100,
        1e-45,
        1e-37,
        1e-20,
        1e-15,
        1e-8,
        1e8,
        1e17,
        1e20,
        1e35,
        1e37,
        1e100,
        1e300,
    ),
    "density": (1.0, 0.3, 0.01, 1e-4),
    "samples": (
        "random",
        "constant",
        "duplicate",
        "single",
        "one class",
        "some empty",
        "one entry",
        "uneven",
    ),
    "rank": (3, 1, 40),
    "reg": (1e-2, 1.0, 0.1, 1e-3, 1e-4),
    "reg_m_data": (1.0, 1e-3, 1e3, math.inf),
    "graph_reg": (0.0, 1.0, 1e4, 1e8),
    "sample_norm": ("l2", "l1", None),
    "init": ("random", "nndsvd", "graph"),
    "update": ("mm", "multiplicative"),
    "missing": (False, True),
    "sparse": (False, True),
}


def draw(count: int, seed: int) -> Iterator[Case]:
    """Draw so many possible combinations; half of the levels of each are the ordinary ones."""
    rng = np.random.default_rng(seed)
    while count:
        chosen = {
            name: levels[
                0 if rng.random() < 0.5 and name not in ("estimator", "engine") else rng.integers(len(levels))
            ]
            for name, levels in LEVELS.items()
        }
        case = Case(**chosen)
        if case.possible:
            count -= 1
            yield case


def data(case: Case) -> Any:
    """Return the X of a combination: nonnegative, of mass about one before it is scaled."""
    rng = np.random.default_rng(5)
    X = rng.random(SHAPE) * (rng.random(SHAPE) < case.density)
    X.flat[0] = 0.5
    if case.samples == "constant":
        X[:] = 0.5
    elif case.samples == "duplicate":
        X = X[[0, 1, 2] * 4]
    elif case.samples == "single":
        X = X[:1]
    elif case.samples == "one class":
        X = X[:1] * (1 + 0.01 * rng.random(SHAPE))
    elif case.samples == "some empty":
        X[::3] = 0
        X.flat[-1] = 0.5
    elif case.samples == "one entry":
        X = X[:, :1, :1]
    elif case.samples == "uneven":
        X = X * np.logspace(-9, 9, len(X)).reshape(-1, 1, 1)
    return _typed(case, X)


def _typed(case: Case, X: NDArray[np.float64]) -> Any:
    if case.dtype == "bool":
        X = (X > 0).astype(bool)
    elif case.dtype == "int64":
        X = np.ceil(np.minimum(X * min(max(case.scale, 1.0), 1e15), 1e15)).astype(np.int64)
    else:
        with np.errstate(over="ignore", under="ignore"):
            X = (X * case.scale).astype(case.dtype)
    if case.missing:
        X = X.copy()
        X[np.random.default_rng(6).random(X.shape) < 0.2] = np.nan
    return csr_array(X.reshape(len(X), -1)) if case.sparse else X


def model(case: Case, **changes: Any) -> Factorization:
    """Return the estimator of a combination."""
    params: dict[str, Any] = {
        "n_components": case.rank,
        "engine": case.engine,
        "sample_norm": case.sample_norm,
        "init": case.init,
        "max_iter": 12,
        "tol": 0,
        "n_clusters": 1,
        "random_state": 0,
        "missing": "ignore" if case.missing else "error",
    }
    kind = ESTIMATORS[case.estimator]
    for name in ("reg", "reg_m_data", "graph_reg", "update"):
        if name in kind().get_params():
            params[name] = getattr(case, name)
    if case.sparse and case.estimator in ("GWNTF", "NCP", "GNCP", "SWIFT") and case.samples != "one entry":
        params["sample_shape"] = SHAPE[1:]
    return kind(**{**params, **changes})


@dataclass
class Found:
    """How a combination ended: "finite", "refused" or "bad", why, and what was said meanwhile."""

    end: str
    why: str = ""
    said: list[str] = field(default_factory=list)


def look(case: Case) -> Found:
    """Fit a combination and use the model; anything but finite numbers and our own errors is bad."""
    X = data(case)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            why = _faults(case, X)
        except GwntfError as error:
            return Found("refused", str(error))
        except ValueError as error:
            if _by_scikit_learn(error):
                return Found("refused", str(error).splitlines()[0])
            return Found("bad", _trace(error))
        except Exception as error:  # everything else is what the sweep looks for
            return Found("bad", _trace(error))
    said = sorted({f"{entry.category.__name__}: {entry.message}" for entry in caught})
    floating = [text for text in said if text.startswith("RuntimeWarning")]
    why = [*why, *floating]
    return Found("bad" if why else "finite", "; ".join(why), said)


def _by_scikit_learn(error: ValueError) -> bool:
    """Whether scikit-learn refused the data, in its own words."""
    return str(error).startswith(("Input X contains", "Negative values in data"))


def _trace(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({last.filename.split('/')[-1]}:{last.lineno})"


def _faults(case: Case, X: Any) -> list[str]:
    """Name everything that a fit and the methods after it return and that is not finite, or is not what it should be."""
    fitted = model(case).fit(X)
    few = X[:3]
    parts = {
        "objective": fitted.objective_curve_,
        "error": fitted.reconstruction_err_,
        "scale": fitted.sample_scale_,
        "transform": fitted.transform(few),
        "reconstruct": fitted.reconstruct(few),
        "labels": fitted.predict(few),
        "score": fitted.score(few),
        **{f"factor {n}": factor for n, factor in enumerate(fitted.factors_)},
    }
    if case.missing:
        parts["impute"] = fitted.impute(few)
        parts["fit_impute"] = model(case).fit_impute(X)
    faults = [f"{name} not finite" for name, part in parts.items() if not np.isfinite(part).all()]
    faults += [
        f"{name} negative" for name, part in parts.items() if name.startswith("factor") and np.min(part) < 0
    ]
    if fitted.status_ is Status.DIVERGED:
        faults.append("diverged")
    if not faults and np.max(fitted.embedding_) == 0:
        faults.append("embedding empty")
    return faults


def rise(case: Case) -> float:
    """By how much the objective of a fit with solved transports rose in its worst iteration, relative to its size."""
    settled = _SETTLED if case.estimator in TRANSPORTED else {}
    fitted = model(case, **settled).fit(data(case))
    curve = fitted.objective_curve_
    X, _ = _normalised(case)
    size = X.sum() if case.estimator in TRANSPORTED else 0.5 * (X * X).sum()
    return float((np.diff(curve) / np.maximum(np.abs(curve[:-1]), size)).max())


def _normalised(case: Case) -> tuple[Any, Any]:
    fitted = model(case)
    from gwntf.engines import get_engine

    fitted._validate_params()
    tensor, scale = fitted._tensor(data(case), get_engine("numpy"), reset=True).normalised(case.sample_norm)
    return np.asarray(tensor.values, np.float64), scale


if __name__ == "__main__":
    import sys

    count, seed = int(sys.argv[1]), int(sys.argv[2])
    ends = Counter()
    bad = []
    for i, case in enumerate(draw(count, seed)):
        found = look(case)
        ends[found.end] += 1
        if found.end != "finite":
            plain = {
                f.name: getattr(case, f.name) for f in fields(Case) if getattr(case, f.name) != f.default
            }
            bad.append((found.end, found.why, plain))
    print(ends)
    groups = {}
    for end, why, plain in bad:
        groups.setdefault((end, why[:150]), []).append(plain)
    for key, cases in sorted(groups.items(), key=lambda kv: -len(kv[1])):
        print(len(cases), key)
        for c in sorted(cases, key=len)[:2]:
            print("      ", c)
