"""The report of mixtures of known parts: shares with intervals, moved parts, and what is not explained."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gwntf.plots import plot_shares, plot_unmixing, require_matplotlib
from gwntf.plots.unmixing import part_colors, plain_text
from gwntf.reports.page import cell, html_table, new_figure, page, pair, paragraph, picture, section, subheading
from gwntf.unmixing import FAR, Unmixing

_MAX_DRAWN, _FIRST = 12, 6  # mixtures with pictures; of more mixtures the first ones and the worst explained ones
_MAX_PANELS = 10  # parts in the chart of all mixtures
_PHONE = 4.4  # width in inches of figures whose text is legible on a phone
_NAMED = 4  # parts in a heading
_TRACE = 0.005  # share below which a part is not in a heading


@dataclass(frozen=True)
class UnmixingPage:
    """What a report says beside the result.

    Attributes
    ----------
    source : str
        Where the spectra come from.
    samples : sequence of str
        Names of the mixtures.
    axis : str or None
        Name of the axis, if it has one.
    descending : bool
        Whether the axis is drawn from high to low positions.
    drift : float
        Distance of free movement.
    calibration : str or None
        Form of the displacement of whole mixtures.
    """

    source: str
    samples: Sequence[str]
    axis: str | None
    descending: bool
    drift: float
    calibration: str | None

    def distance(self, value: float) -> str:
        """Return a distance with the name of the axis as its unit."""
        return f"{value:.3g} {self.axis or ''}".rstrip()


def unmixing_report(found: Unmixing, about: UnmixingPage) -> str:
    """Return the report as one self-contained HTML document; of many mixtures some are drawn, all are in the tables."""
    require_matplotlib()
    drawn = _chosen(found)
    several = len(about.samples) > 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # characters that the font of the figures lacks
        sections = [paragraph(_facts(found, about))]
        if several:
            table = [paragraph(_TABLE.format(level=f"{100 * found.level:g}")), _share_table(found, about)]
            sections.append(section("Shares", _overview(found), *table))
        for heading, rows in drawn.items():
            parts = [part for row in rows for part in _mixture(found, about, row, titled=several)]
            sections.append(section(heading, paragraph(_HOW), *parts) if parts else "")
        if several:
            sections.append(section("Displacements", paragraph(_MOVED), _displacement_table(found, about)))
    return page(_headline(found, about), [one for one in sections if one])


_HOW = (
    "Coloured areas: each part, moved to where its peaks are in the mixture (black line). Dashed line: the parts in "
    "these shares where their peaks are in the references. Residual: what no part explains, on the same axis."
)
_TABLE = (
    "Shares in percent, and below each the interval that contains the true share with a probability of {level} % if "
    "the references are complete. Unexplained: percent of the signal that no part explains. Goodness: explained "
    "percent of the sum of squares."
)
_MOVED = "Mean distance by which the peaks of each part have moved from the references, in the units of the axis."


def _headline(found: Unmixing, about: UnmixingPage) -> str:
    """Return what was found in one sentence."""
    if len(about.samples) == 1:
        return f"{about.samples[0]}: {_composition(found, 0)}"
    largest, counts = np.unique(found.shares.argmax(axis=1), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    total, rest = len(about.samples), len(order) - _NAMED
    named = [f"{found.names[largest[k]]} in {counts[k]}" for k in order[:_NAMED]]
    more = f" and {rest} other part{'s' if rest > 1 else ''} in the rest" if rest > 0 else ""
    return f"Largest part of {total} mixtures: {', '.join(named)}{more}"


def _composition(found: Unmixing, row: int) -> str:
    """Return the largest shares of a mixture, and whether something is not explained."""
    order = np.argsort(-found.shares[row], kind="stable")
    shown = [k for k in order[:_NAMED] if found.shares[row, k] >= _TRACE]
    named = [f"{100 * found.shares[row, k]:.0f} % {found.names[k]}" for k in shown]
    rest = float(found.shares[row].sum() - found.shares[row, shown].sum())
    named += [f"{100 * rest:.0f} % other parts"] if rest >= _TRACE else []
    return f"{', '.join(named)}; {100 * found.unexplained[row]:.1f} % of the signal unexplained"


def _facts(found: Unmixing, about: UnmixingPage) -> str:
    """Return where the data come from, how far peaks have moved, and which mixture is explained worst."""
    text = (
        f"{_plural(len(about.samples), 'mixture')} from {about.source}, as sums of "
        f"{_plural(len(found.names), 'part')}. Peaks may move by {about.distance(about.drift)} at no cost, farther "
        f"at a price; what would have to move more than {about.distance(FAR * about.drift)} counts as unexplained."
    )
    if about.calibration is not None:
        count = int(np.count_nonzero(found.calibration))
        text += f" A {about.calibration} of the whole axis was fitted first, and used for {count} of them."
    if len(about.samples) > 1:
        worst = int(found.unexplained.argmax())
        text += (
            f" On average {100 * float(found.unexplained.mean()):.1f} % of the signal is unexplained, at most "
            f"{100 * found.unexplained[worst]:.1f} % ({about.samples[worst]})."
        )
    return text


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _chosen(found: Unmixing) -> dict[str, list[int]]:
    """Return the mixtures that are drawn under each heading."""
    count = len(found.shares)
    if count <= _MAX_DRAWN:
        return {"Mixtures" if count > 1 else "Mixture": list(range(count))}
    order = np.argsort(-found.unexplained, kind="stable")
    worst = [int(k) for k in order if k >= _FIRST][: _MAX_DRAWN - _FIRST]
    return {
        f"The first {_FIRST} mixtures": list(range(_FIRST)),
        f"The {len(worst)} others with most unexplained signal": worst,
    }


def _mixture(found: Unmixing, about: UnmixingPage, row: int, *, titled: bool) -> list[str]:
    """Return the pictures and the table of one mixture."""
    count = len(found.names)
    curves = new_figure(_PHONE, 3.6 + 0.09 * (count + 3))
    plot_unmixing(found, row, axis=about.axis or "position", descending=about.descending, ax=curves.subplots())
    bars = new_figure(_PHONE, min(40.0, 0.8 + 0.42 * max(count, 2)))
    plot_shares(found, row, ax=bars.subplots())
    name = about.samples[row]
    goodness = f"goodness {100 * found.goodness[row]:.2f} %"
    shares = f"{name}: shares with their intervals. {100 * found.unexplained[row]:.1f} % unexplained, {goodness}."
    if about.calibration is not None:
        amount = found.calibration[row]
        shift = about.distance(amount) if about.calibration == "shift" else f"{100 * amount:.3g} %"
        shares += f" {about.calibration.capitalize()} of the whole axis: {shift}."
    rows = [
        [
            cell(part),
            cell(f"{100 * found.shares[row, k]:.1f} %"),
            cell(f"{100 * found.lower[row, k]:.1f} to {100 * found.upper[row, k]:.1f}"),
            cell(_distance(found.displacement[row, k])),
        ]
        for k, part in enumerate(found.names)
    ]
    head = [
        "part",
        "share",
        f"{100 * found.level:g} % interval",
        f"moved by, {about.axis}" if about.axis else "moved by",
    ]
    heading = [subheading(f"{name}: {_composition(found, row)}")] if titled else []
    pictures = pair(picture(curves, f"{name}: the mixture and its parts."), picture(bars, shares))
    return [*heading, pictures, html_table(head, rows)]


def _distance(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+.3g}"


def _share_table(found: Unmixing, about: UnmixingPage) -> str:
    rows = []
    for row, name in enumerate(about.samples):
        cells = [cell(name)]
        for share, low, high in zip(
            100 * found.shares[row], 100 * found.lower[row], 100 * found.upper[row], strict=True
        ):
            cells.append(cell(f"{share:.1f}", f"{low:.1f} to {high:.1f}"))
        rows.append([*cells, cell(f"{100 * found.unexplained[row]:.1f}"), cell(f"{100 * found.goodness[row]:.2f}")])
    return html_table(["mixture", *found.names, "unexplained", "goodness"], rows)


def _displacement_table(found: Unmixing, about: UnmixingPage) -> str:
    calibrated = about.calibration is not None
    rows = [
        [
            cell(name),
            *(cell(_distance(value)) for value in found.displacement[row]),
            *([cell(f"{found.calibration[row]:+.3g}")] if calibrated else []),
        ]
        for row, name in enumerate(about.samples)
    ]
    return html_table(["mixture", *found.names, *([f"{about.calibration} of the axis"] if calibrated else [])], rows)


def _overview(found: Unmixing) -> str:
    """Return a chart of the share of every part in all mixtures, in their order, with the intervals."""
    parts = np.sort(np.argsort(-found.shares.mean(axis=0), kind="stable")[:_MAX_PANELS])
    figure = new_figure(_PHONE, 0.6 + 1.15 * len(parts))
    panels: Any = figure.subplots(len(parts), sharex=True, squeeze=False)[:, 0]
    numbers, colors = np.arange(1, len(found.shares) + 1), part_colors(len(found.names))
    size = 5.0 if len(numbers) <= 30 else 2.5
    for panel, part in zip(panels, parts, strict=True):
        shares, lower, upper = (100 * one[:, part] for one in (found.shares, found.lower, found.upper))
        panel.vlines(numbers, lower, upper, color="0.6", linewidth=min(1.5, 0.4 * size))
        panel.plot(numbers, shares, "o", color=colors[part], markersize=size)
        panel.set(ylim=(0, 1.08 * max(float(upper.max()), 1.0)))
        panel.set_title(plain_text(found.names[part], 40), fontsize="small", loc="left", pad=3)
        panel.tick_params(labelsize="small")
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].xaxis.get_major_locator().set_params(integer=True)
    panels[-1].set_xlabel("mixture, in the order of the file", fontsize="small")
    left = len(found.names) - len(parts)
    more = f" The {left} smallest of {len(found.names)} parts are not drawn." if left else ""
    return picture(figure, f"Share of every part in percent in all mixtures, with intervals.{more}")
