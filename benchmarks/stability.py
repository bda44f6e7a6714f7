"""Stability curves of data with a known rank and of digits.

`python -m benchmarks.stability` writes `results/stability.json`, and picture and tables of `docs/model_selection.md`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.harness import RESULTS, machine
from benchmarks.pages import DOCS, replace_between
from gwntf import GWNTF, NCP, NMF
from gwntf.datasets import load_digits_tensor, make_kruskal_tensor
from gwntf.io import atomic_path
from gwntf.model_selection import StabilityCurve, stability_curve
from gwntf.plots import plot_stability

SEEDS = 10


def curves() -> dict[str, StabilityCurve]:
    """Return the two curves."""
    known, _ = make_kruskal_tensor((60, 10, 8), 4, noise=0.1, random_state=0)
    digits, _ = load_digits_tensor()
    parts = NCP(max_iter=1000, tol=1e-6)
    clusters = GWNTF(
        graph_reg=100,
        costs=(None, "grid", "grid"),
        max_iter=50,
        tol=0,
    )
    options: dict[str, Any] = {"n_seeds": SEEDS, "random_state": 0}
    return {
        "NCP on a tensor of rank 4": stability_curve(parts, known, range(1, 9), **options),
        "GWNTF on 500 digits": stability_curve(clusters, digits[:500], range(2, 21, 2), **options),
    }


def recovery() -> dict[str, list[int]]:
    """Return `best_rank` minus the rank of the data, for eight tensors of rank 3 and 4 and three methods."""
    rules: dict[str, Any] = {"max_iter": 300, "tol": 1e-6, "n_init": 3}
    methods = {
        "NMF": NMF(**rules),
        "NCP": NCP(**rules),
        "KL on tensors": GWNTF(graph_reg=0, costs=(None, None, None), **rules),
    }
    misses: dict[str, list[int]] = {name: [] for name in methods}
    for rank in (3, 4):
        for seed in range(4):
            X, _ = make_kruskal_tensor((60, 10, 8), rank, noise=0.1, random_state=seed)
            for name, method in methods.items():
                ranks = range(rank - 1, rank + 3)
                curve = stability_curve(method, X, ranks, n_seeds=5, random_state=0)
                misses[name].append(curve.best_rank - rank)
    return misses


def table(curve: Mapping[str, Any]) -> str:
    """Means as Markdown."""
    names = {"component_agreement": "components", "label_agreement": "labels", "reconstruction_err": "error"}
    lines = [f"| rank | {' | '.join(names.values())} |", "|---" * (len(names) + 1) + "|"]
    for place, rank in enumerate(curve["ranks"]):
        cells = [f"{np.mean(curve[name][place]):.2f} ± {np.std(curve[name][place]):.2f}" for name in names]
        mark = "**" if rank == curve["best_rank"] else ""
        lines.append(f"| {mark}{rank}{mark} | {' | '.join(cells)} |")
    return "\n".join(lines)


def body(found: Mapping[str, Any], misses: Mapping[str, list[int]]) -> str:
    """Return what the page shows of the results."""
    lines = ["| `best_rank` found | right | one too many | otherwise |", "|---|---|---|---|"]
    for name, values in misses.items():
        right, above = values.count(0), values.count(1)
        lines.append(f"| {name} | {right} | {above} | {len(values) - right - above} |")
    curves = [f"{name}:\n\n{table(curve)}" for name, curve in found.items()]
    return "\n\n".join([*curves, "Eight tensors of rank 3 and 4, noise 0.1:\n\n" + "\n".join(lines)])


def main() -> None:
    """Run, save, draw, report."""
    found = curves()
    fields = ("ranks", "component_agreement", "label_agreement", "reconstruction_err", "objective")
    plain = {
        name: {field: getattr(curve, field).tolist() for field in fields} | {"best_rank": curve.best_rank}
        for name, curve in found.items()
    }
    misses = recovery()
    record = {"command": "python -m benchmarks.stability", "curves": plain, "misses": misses}
    record |= {"machine": machine()}
    with atomic_path(RESULTS / "stability.json") as aside:
        aside.write_text(json.dumps(record) + "\n", encoding="utf-8")
    with mpl.rc_context({"font.size": 9}):
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        for axes, (name, curve) in zip(figure.subplots(1, 2), found.items(), strict=True):
            plot_stability(curve, ax=axes).set_title(name)
    with atomic_path(DOCS / "images" / "stability.png") as aside:
        figure.savefig(aside, dpi=120, format="png")
    replace_between(DOCS / "model_selection.md", "stability", body(plain, misses))


if __name__ == "__main__":
    main()
