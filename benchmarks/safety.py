"""Fits at the limits of the number types: every estimator and engine over scales, weights, densities and odd data.

`python -m benchmarks.safety` draws combinations at random, fits and uses each model, and writes `results/safety.json`
and the tables of `docs/numerics.md`. A combination passes if all its results are finite, or if it raises an error
that names the argument; everything else is counted and recorded. Where the rules guarantee it, the objective must not
rise, and data multiplied by a power of two must give the same bits.
"""

from __future__ import annotations

import argparse
import json
import math
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.harness import RESULTS, machine
from benchmarks.pages import DOCS, replace_between
from gwntf import GNCP, GNMF, GWNTF, NCP, NMF, SDNMF, SWIFT, GwntfError, TransportOptions
from gwntf.core import Status
from gwntf.estimators.base import Factorization
from gwntf.io import atomic_path

ESTIMATORS: Mapping[str, type[Factorization]] = {
    kind.__name__: kind for kind in (GWNTF, NMF, GNMF, SDNMF, NCP, GNCP, SWIFT)
}
TRANSPORTED = ("GWNTF", "SDNMF", "SWIFT")
SHAPE = (12, 5, 4)
ENDS = ("finite", "refused", "diverged", "bad")
ROUNDING = {"float32": 1e-5, "float64": 1e-9}
"""By how much of its size the objective may rise in the number type of a fit."""

_SETTLED = {"max_iter": 1000, "tol": 1e-11}
"""Options of transports that are solved."""

_REFUSALS = ("Input X contains", "Negative values in data")
"""How scikit-learn begins when it refuses data."""


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
    reg_m: float = 1.0
    graph_reg: float = 1.0
    sample_norm: str | None = "l2"
    init: str = "random"
    missing: bool = False
    sparse: bool = False

    @property
    def possible(self) -> bool:
        """Whether the library offers this at all; what it refuses by design is tested elsewhere."""
        with_graph = self.estimator in ("GWNTF", "GNMF", "SDNMF", "GNCP") and self.graph_reg > 0
        return not (
            (self.sparse and self.missing)
            or (self.init == "graph" and not with_graph)
            or (self.estimator not in TRANSPORTED and (self.reg != 0.01 or self.reg_m != 1))
            or (self.estimator in ("NMF", "NCP", "SWIFT") and self.graph_reg != 0)
            or (self.missing and (self.dtype not in ("float32", "float64") or self.samples == "one entry"))
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
    "reg_m": (1.0, 1e-3, 1e3, math.inf),
    "graph_reg": (0.0, 1.0, 1e4, 1e8),
    "sample_norm": ("l2", "l1", None),
    "init": ("random", "nndsvd", "graph"),
    "missing": (False, True),
    "sparse": (False, True),
}


def draw(count: int, seed: int) -> Iterator[Case]:
    """Draw so many possible combinations; half of the levels of each are the ordinary ones."""
    rng = np.random.default_rng(seed)
    while count:
        chosen = {
            name: levels[0 if rng.random() < 0.5 and name not in ("estimator", "engine") else rng.integers(len(levels))]
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


def model(case: Case, **transport: Any) -> Factorization:
    """Return the estimator of a combination, with these options of the transports where it has them."""
    params: dict[str, Any] = {
        "n_components": case.rank,
        "engine": case.engine,
        "sample_norm": case.sample_norm,
        "init": case.init,
        "max_iter": 12,
        "tol": 0,
        "random_state": 0,
        "missing": "ignore" if case.missing else "error",
    }
    kind = ESTIMATORS[case.estimator]
    if case.estimator in TRANSPORTED:
        params |= {"reg": case.reg, "reg_m": (case.reg_m, 1.0)}
        params["transport"] = TransportOptions(**transport)
    if "graph_reg" in kind().get_params():
        params["graph_reg"] = case.graph_reg
    if case.sparse and case.estimator in ("GWNTF", "NCP", "GNCP", "SWIFT") and case.samples != "one entry":
        params["sample_shape"] = SHAPE[1:]
    return kind(**params)


@dataclass(frozen=True)
class Found:
    """How a combination ended (one of `ENDS`), and why."""

    end: str
    why: str = ""


def look(case: Case) -> Found:
    """Fit a combination and use the model; anything but finite numbers and refusals by name is bad."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            status, faults = _use(case, data(case))
        except Exception as error:  # whatever is not a refusal is what the sweep looks for
            if isinstance(error, GwntfError) or str(error).startswith(_REFUSALS):
                return Found("refused", str(error).splitlines()[0])
            last = traceback.extract_tb(error.__traceback__)[-1]
            return Found("bad", f"{type(error).__name__}: {error} ({last.name}, line {last.lineno})")
    faults += [str(entry.message) for entry in caught if issubclass(entry.category, RuntimeWarning)]
    if faults:
        return Found("bad", "; ".join(faults))
    return Found("diverged" if status is Status.DIVERGED else "finite")


def _use(case: Case, X: Any) -> tuple[Status, list[str]]:
    """Fit and call everything; name what is not finite, or is not what it should be."""
    fitted, few = model(case).fit(X), X[:3]
    parts = {
        "objective": fitted.objective_curve_,
        "error": fitted.reconstruction_err_,
        "scale": fitted.sample_scale_,
        "transform": fitted.transform(few),
        "reconstruct": fitted.reconstruct(few),
        "score": fitted.score(few),
        **{f"factor {n}": factor for n, factor in enumerate(fitted.factors_)},
    }
    if case.missing:
        parts |= {"impute": fitted.impute(few), "fit_impute": model(case).fit_impute(X)}
    faults = [f"{name} not finite" for name, part in parts.items() if not np.isfinite(part).all()]
    faults += [f"negative factor {n}" for n, factor in enumerate(fitted.factors_) if np.min(factor) < 0]
    if not fitted.embedding_.any():
        faults.append("empty embedding")
    return fitted.status_, faults


def rise(case: Case) -> float:
    """By which part of its size the objective rose in the worst iteration of a fit with solved transports."""
    transported = case.estimator in TRANSPORTED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model(case, **_SETTLED).fit(data(case))
    curve, embedding = fitted.objective_curve_, np.asarray(fitted.factors_[0], np.float64)
    size = embedding.sum() if transported else 0.5 * (embedding**2).sum()
    return float((np.diff(curve) / np.maximum(np.abs(curve[:-1]), size)).max(initial=0.0))


def promised_to_fall(case: Case) -> bool:
    """Whether the objective of this combination must not rise."""
    return case.reg >= 1e-2 and math.isfinite(case.reg_m)


def rounding(case: Case) -> float:
    """By how much the objective of this combination may rise."""
    return ROUNDING["float32" if case.engine == "torch" or case.dtype == "float32" else "float64"]


def scaled_alike(case: Case, exponent: int) -> bool:
    """Whether data times a power of two give the same factors, bit by bit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, second = (model(case).fit(data(replace(case, scale=scale))).factors_ for scale in (1.0, 2.0**exponent))
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def promised_alike(case: Case) -> bool:
    """Whether the scale of this combination must not matter."""
    return case.sample_norm is not None and case.dtype in ("float32", "float64")


def examine(case: Case) -> dict[str, Any]:
    """Return everything about one combination."""
    found = look(case)
    record: dict[str, Any] = {"case": asdict(case), "end": found.end, "why": found.why}
    if found.end == "finite" and promised_to_fall(case):
        record["rise"], record["rounding"] = rise(case), rounding(case)
    if found.end == "finite" and promised_alike(case):
        record["alike"] = [scaled_alike(case, exponent) for exponent in (-60, 60)]
    return record


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """How combinations ended, by estimator, as Markdown."""
    head = ["", "combinations", *ENDS, "largest rise, float64", "float32", "same bits at 2^±60"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name in ESTIMATORS:
        own = [record for record in records if record["case"]["estimator"] == name]
        ends = Counter(record["end"] for record in own)
        rises = [
            max((record["rise"] for record in own if record.get("rounding") == limit), default=0.0)
            for limit in (ROUNDING["float64"], ROUNDING["float32"])
        ]
        alike = [all(record["alike"]) for record in own if "alike" in record]
        cells = [len(own), *(ends[end] for end in ENDS), *(f"{rise:.0e}" for rise in rises)]
        lines.append(f"| {name} | {' | '.join(map(str, cells))} | {sum(alike)} of {len(alike)} |")
    return "\n".join(lines)


def main() -> None:
    """Run, save, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    records = [examine(case) for case in draw(options.count, options.seed)]
    kept = [
        {key: value for key, value in record.items() if key != "case"}
        | {"case": {name: value for name, value in record["case"].items() if value != getattr(Case, name)}}
        for record in records
        if record["end"] in ("bad", "diverged")
        or record.get("rise", 0.0) > record.get("rounding", 0.0)
        or not all(record.get("alike", [True]))
    ]
    shown = table(records)
    content = {
        "command": f"python -m benchmarks.safety --count {options.count} --seed {options.seed}",
        "levels": {name: [str(level) for level in levels] for name, levels in LEVELS.items()},
        "combinations": len(records),
        "ends": dict(Counter(record["end"] for record in records)),
        "table": shown,
        "worth_a_look": kept,
        "machine": machine(),
    }
    with atomic_path(RESULTS / "safety.json") as aside:
        aside.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")
    replace_between(DOCS / "numerics.md", "safety", shown)


if __name__ == "__main__":
    main()
