"""`docs/performance.md` and its picture from the results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.harness import RESULTS
from gwntf.io import atomic_path

DOCS = Path(__file__).parent.parent / "docs"
README_LINES = {
    "image-modes": ("transport along an image axis", "POT, column by column", "times faster than POT"),
    "coil20-fits": (
        "GWNTF on COIL20, all modes",
        "the same in NumPy",
        "times faster than the reference, all modes",
    ),
    "sample-mode": ("transport along 2856 samples", "all pairs by BLAS", "times faster than all pairs"),
    "long-grids": (
        "transport along 2048 places",
        "dense products by BLAS",
        "times faster than the dense product",
    ),
    "tensor-peers": (
        "an iteration of NCP",
        "TensorLy, multiplicative updates",
        "NCP, times faster than TensorLy's mult",
    ),
    "matrix-peers": ("an iteration of KL-NMF", 'scikit-learn, solver="mu"', "KL, times faster"),
}


def write_report(names: Sequence[str]) -> None:
    """Write what the results on disk say, case by case: the page, its picture and the table of the README."""
    paths = {name: RESULTS / f"{name}.json" for name in names}
    found = {n: json.loads(path.read_text(encoding="utf-8")) for n, path in paths.items() if path.exists()}
    _replace(DOCS / "performance.md", "results", "\n\n".join(map(_section, found.values())))
    _replace(DOCS.parent / "README.md", "speed", _speed(found))
    _picture(list(found.values()), DOCS / "images" / "performance.png")


def _replace(page: Path, mark: str, body: str) -> None:
    """Put a text between two marks of a page."""
    begin, end = f"<!-- begin {mark} -->", f"<!-- end {mark} -->"
    text = page.read_text(encoding="utf-8")
    head, tail = text.split(begin)[0], text.split(end)[1]
    with atomic_path(page) as aside:
        aside.write_text(f"{head}{begin}\n\n{body}\n\n{end}{tail}", encoding="utf-8")


def _speed(found: dict[str, dict[str, Any]]) -> str:
    lines = [
        f"| {what} | {peer} | {claim['value']:.2g} |"
        for name, (what, peer, start) in README_LINES.items()
        for claim in found.get(name, {"claims": []})["claims"]
        if claim["what"].startswith(start)
    ]
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
        target = (
            ""
            if claim["target"] is None
            else f"{sign} {claim['target']:g}{'' if claim['met'] else ': missed'}"
        )
        lines.append(f"| {claim['what']} | {claim['value']:.3g} | {target} |")
    notes = " ".join(record["notes"])
    lines += ["", f"{notes} `{record['command']}` on {record['machine']['cores']} cores.".strip()]
    return "\n".join(lines)


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{value:.3g} s"
    return f"{1e3 * value:.3g} ms" if value >= 1e-3 else f"{1e6 * value:.3g} us"


def _picture(records: Sequence[dict[str, Any]], path: Path) -> None:
    """Bars: every figure that says how many times faster something is."""
    bars = [
        (
            f"{claim['what'].replace('times faster than', 'against')}",
            claim["value"],
            record["title"].split(":")[0],
        )
        for record in records
        for claim in record["claims"]
        if "times faster" in claim["what"]
    ]
    with mpl.rc_context({"font.size": 9}):
        figure = Figure(figsize=(9, 0.34 * len(bars) + 1), layout="constrained")
        axes = figure.add_subplot()
        labels = [f"{title}, {what}" for what, _, title in bars]
        axes.barh(range(len(bars)), [value for _, value, _ in bars], color="#4C72B0")
        for place, (_, value, _) in enumerate(bars):
            axes.text(value * 1.05, place, f"{value:.3g}x", va="center")
        axes.set_yticks(range(len(bars)), labels)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_xlabel("times faster")
        axes.spines[["top", "right"]].set_visible(False)
        with atomic_path(path) as aside:
            figure.savefig(aside, dpi=120, format="png")
