"""`docs/performance.md` and its picture, and the figures of `docs/scaling.md`, from the results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.estimate import estimate
from benchmarks.harness import RESULTS
from benchmarks.pages import DOCS, replace_between
from gwntf.io import atomic_path

COMPARISONS = (
    ("image-modes", "transport along an image axis", "POT, column by column", "times faster than POT"),
    (
        "image-modes",
        "transport along an image axis",
        "NumPy",
        "times faster than NumPy, exponential kernel, axis 1",
    ),
    (
        "long-grids",
        "transport along 2048 places",
        "dense products by BLAS",
        "times faster than the dense product",
    ),
    ("sample-mode", "transport along 2856 samples", "all pairs by BLAS", "times faster than all pairs"),
    (
        "coil20-fits",
        "GWNTF on COIL20, all modes",
        "NumPy, all pairs",
        "times faster than the reference, all modes",
    ),
    ("coil20-fits", "GWNTF on COIL20, image modes", "NumPy", "times faster than the reference, images only"),
    (
        "tensor-peers",
        "an iteration of NCP",
        "TensorLy, multiplicative",
        "NCP, times faster than TensorLy's mult",
    ),
    ("matrix-peers", "an iteration of NMF", 'scikit-learn, "mu"', "NMF, times faster"),
    ("matrix-peers", "an iteration of NMF, KL", 'scikit-learn, "mu"', "KL, times faster"),
    (
        "gpu-transport",
        "8 million columns of 32 on a GPU",
        "torch, eager",
        "times faster than eager torch, 32 x 8 million, exponential, highest",
    ),
    (
        "gpu-iteration",
        "an iteration on a million images on a GPU",
        "torch, eager",
        "times faster than eager torch",
    ),
)
"""What the README and the picture show: case, what is compared, with whom, and how the figure begins."""


SCALING = {
    "sparse": ("sparse-counts", "sparse-against-dense"),
    "chunked": ("chunked-fit",),
    "cluster": ("cluster-scaling", "cluster-loss"),
}
"""Cases of each part of the page on data past memory; all others are on the page on performance."""


def write_report(names: Sequence[str]) -> None:
    """Write what the results on disk say, case by case: the page, its picture and the table of the README."""
    paths = {name: RESULTS / f"{name}.json" for name in names}
    found = {n: json.loads(path.read_text(encoding="utf-8")) for n, path in paths.items() if path.exists()}
    if all(name in found for name in ("chunked-fit", "cluster-scaling", "gpu-iteration")):
        replace_between(DOCS / "scaling.md", "estimate", estimate(found))
    for part, cases in SCALING.items():
        held = {name: found.pop(name) for name in cases if name in found}
        replace_between(DOCS / "scaling.md", part, body(held))
    replace_between(DOCS / "performance.md", "results", body(found))
    replace_between(DOCS.parent / "README.md", "speed", _speed(found))
    _picture(_compared(found), DOCS / "images" / "performance.png")


def body(found: dict[str, dict[str, Any]]) -> str:
    """Return the text of some results."""
    return "\n\n".join(map(_section, found.values()))


def _compared(found: dict[str, dict[str, Any]]) -> list[tuple[str, str, float]]:
    """Return what was compared, with whom, and how many times faster it is."""
    return [
        (what, peer, claim["value"])
        for name, what, peer, start in COMPARISONS
        for claim in found.get(name, {"claims": []})["claims"]
        if claim["what"].startswith(start)
    ]


def _times(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def _speed(found: dict[str, dict[str, Any]]) -> str:
    lines = [f"| {what} | {peer} | {_times(value)} |" for what, peer, value in _compared(found)]
    return "\n".join(["| | against | times faster |", "|---|---|---|", *lines])


def _section(record: dict[str, Any]) -> str:
    lines = [f"### {record['title']}", "", "| | median | fastest to slowest |", "|---|---|---|"]
    lines += [
        f"| {name} | {_seconds(t['median'])} | {_seconds(t['low'])} to {_seconds(t['high'])} |"
        for name, t in record["timings"].items()
    ]
    lines += ["", "| figure | measured | target |", "|---|---|---|"]
    for claim in record["claims"]:
        sign = "at least" if claim["at_least"] else "at most"
        target = "" if claim["target"] is None else f"{sign} {claim['target']:g}{'' if claim['met'] else ': missed'}"
        lines.append(f"| {claim['what']} | {claim['value']:.3g} | {target} |")
    notes = " ".join(record["notes"])
    machine = record["machine"]
    where = f"one {machine['device']}" if "device" in machine else f"{machine['cores']} cores"
    lines += ["", f"{notes} `{record['command']}` on {where}.".strip()]
    return "\n".join(lines)


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{value:.3g} s"
    return f"{1e3 * value:.3g} ms" if value >= 1e-3 else f"{1e6 * value:.3g} us"


def _picture(bars: Sequence[tuple[str, str, float]], path: Path) -> None:
    """Draw how many times faster, on a logarithmic axis that begins at equal speed."""
    with mpl.rc_context({"font.size": 9}):
        figure = Figure(figsize=(8, 0.36 * len(bars) + 0.9), layout="constrained")
        axes = figure.add_subplot()
        for place, (_, _, value) in enumerate(bars):
            axes.plot([1, value], [place, place], color="#4C72B0", linewidth=7, solid_capstyle="butt")
            axes.annotate(f"{_times(value)}x", (max(value, 1), place), (6, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(bars)), [f"{what}, against {peer}" for what, peer, _ in bars])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlim(0.7, 3000)
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_xlabel("times faster (left of the line: slower)")
        axes.spines[["top", "right", "left"]].set_visible(False)
        with atomic_path(path) as aside:
            figure.savefig(aside, dpi=120, format="png")
