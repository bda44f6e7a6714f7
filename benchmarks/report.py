"""`docs/performance.md` and its pictures, and the figures of `docs/scaling.md`, from the results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.estimate import estimate
from benchmarks.harness import RESULTS, Table
from benchmarks.pages import DOCS, replace_between
from benchmarks.pictures import Bar, draw_bars, draw_curves, times
from benchmarks.unmixing_page import CASES as UNMIXING
from benchmarks.unmixing_page import draw_unmixing

COMPARISONS = (
    (
        "arrival-transport",
        "GWNTF on COIL20 to within 1% of the lowest F",
        "the scheme of version 0.1",
        "COIL20, graph_reg=0: times sooner than",
    ),
    (
        "arrival-transport",
        "GWNTF on digits without a graph to within 1% of the lowest F",
        "the scheme of version 0.1",
        "digits, graph_reg=0: times sooner than the scheme",
    ),
    (
        "arrival-transport",
        "GWNTF on digits with a graph to within 1% of the lowest F",
        "the scheme of version 0.1",
        "digits, graph_reg=10000: times sooner than",
    ),
    (
        "arrival-new-samples",
        "new samples under transport to within 1e-6",
        "the scheme of version 0.1",
        "transport: times sooner",
    ),
    (
        "arrival-least-squares",
        "NMF on COIL20 to the error of 200 iterations",
        'scikit-learn, "cd"',
        "NMF, COIL20: times faster",
    ),
    (
        "arrival-least-squares",
        "NMF on PIE_pose27 to the error of 200 iterations",
        'scikit-learn, "cd"',
        "NMF, PIE_pose27: times faster",
    ),
    (
        "arrival-least-squares",
        "NMF on digits to the error of 200 iterations",
        'scikit-learn, "cd"',
        "NMF, digits: times faster",
    ),
    (
        "arrival-least-squares",
        "NCP on COIL20 to the error of 50 iterations",
        "TensorLy, HALS",
        "NCP, COIL20: times faster",
    ),
    ("arrival-kl", "KL on COIL20 to the error of 200 iterations", 'scikit-learn, "mu"', "KL, COIL20: times faster"),
    ("arrival-kl", "KL on digits to the error of 200 iterations", 'scikit-learn, "mu"', "KL, digits: times faster"),
    (
        "arrival-kl",
        "KL on sparse counts to the error of 200 iterations",
        'scikit-learn, "mu"',
        "KL, sparse counts: times faster",
    ),
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
        "unmixing-speed",
        "unmixing spectra of 256 channels into five parts",
        "POT, ot.bregman.unmix",
        "times faster than POT",
    ),
    (
        "unmixing-speed-nmr",
        "unmixing an NMR mixture at full resolution",
        "Magnetstein, CBC",
        "times faster than Magnetstein",
    ),
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


PANELS = {
    "GWNTF, COIL20, graph_reg=0": "arrival-transport",
    "GWNTF, COIL20, graph_reg=10000": "arrival-transport",
    "GWNTF, digits, graph_reg=0": "arrival-transport",
    "NMF, COIL20": "arrival-least-squares",
    "NMF, PIE_pose27": "arrival-least-squares",
    "NMF, digits": "arrival-least-squares",
    "NCP, COIL20": "arrival-least-squares",
    "KL, sparse counts": "arrival-kl",
    "new samples, transport": "arrival-new-samples",
}
"""Panels of the picture of the curves, and the case that has each."""

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
    unmixing = {name: found.pop(name) for name in UNMIXING if name in found}
    replace_between(DOCS / "unmixing_results.md", "results", body(unmixing))
    draw_unmixing(unmixing, DOCS / "images" / "unmixing.png")
    replace_between(DOCS / "performance.md", "results", body(found))
    found |= unmixing
    replace_between(DOCS.parent / "README.md", "speed", _speed(found))
    draw_bars(_compared(found), DOCS / "images" / "performance.png")
    curves = {title: found[case]["curves"].get(title) for title, case in PANELS.items() if case in found}
    draw_curves({title: lines for title, lines in curves.items() if lines}, DOCS / "images" / "arrival.png")


def body(found: dict[str, dict[str, Any]]) -> str:
    """Return the text of some results."""
    return "\n\n".join(map(_section, found.values()))


def _compared(found: Mapping[str, Any]) -> list[Bar]:
    """Return what was compared, with whom, and how many times faster it is."""
    return [
        Bar(what, peer, claim["value"], _more(claim))
        for name, what, peer, start in COMPARISONS
        for claim in found.get(name, {"claims": []})["claims"]
        if claim["what"].startswith(start)
    ]


def _more(claim: Mapping[str, Any]) -> bool:
    """Whether the value is only a lower bound."""
    return bool(claim.get("lower_bound", False))


def _speed(found: Mapping[str, Any]) -> str:
    lines = [f"| {bar.what} | {bar.peer} | {'over ' * bar.more}{times(bar.value)} |" for bar in _compared(found)]
    return "\n".join(["| | against | times faster |", "|---|---|---|", *lines])


def _section(record: dict[str, Any]) -> str:
    lines = [f"### {record['title']}"]
    if record["timings"]:
        lines += ["", "| | median | fastest to slowest |", "|---|---|---|"]
    lines += [
        f"| {name} | {_seconds(t['median'])} | {_seconds(t['low'])} to {_seconds(t['high'])} |"
        for name, t in record["timings"].items()
    ]
    for title, table in record.get("tables", {}).items():
        lines += ["", *_table(title, table)]
    lines += ["", "| figure | measured | target |", "|---|---|---|"]
    for claim in record["claims"]:
        sign = "at least" if claim["at_least"] else "at most"
        target = "" if claim["target"] is None else f"{sign} {claim['target']:g}{'' if claim['met'] else ': missed'}"
        lines.append(f"| {claim['what']} | {'over ' * _more(claim)}{claim['value']:.3g} | {target} |")
    notes = " ".join(record["notes"])
    machine = record["machine"]
    where = f"one {machine['device']}" if "device" in machine else f"{machine['cores']} cores"
    lines += ["", f"{notes} `{record['command']}` on {where}.".strip()]
    return "\n".join(lines)


def _table(title: str, table: Table) -> list[str]:
    """Return the lines of a table, with as many decimals as its largest figure needs."""
    columns = list(next(iter(table.values())))
    decimals = 1 if max(max(cells.values()) for cells in table.values()) > 1 else 3
    lines = [f"{title}:", "", f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    return [
        *lines,
        *(f"| {row} | {' | '.join(f'{cells[c]:.{decimals}f}' for c in columns)} |" for row, cells in table.items()),
    ]


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{value:.3g} s"
    return f"{1e3 * value:.3g} ms" if value >= 1e-3 else f"{1e6 * value:.3g} us"
