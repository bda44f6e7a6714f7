"""`gwntf unmix`: shares of known spectra in mixtures."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from gwntf.cli.output import Output, check_output, printed_warnings, write_table, write_text
from gwntf.cli.shares import print_shares, result_columns, result_facts
from gwntf.core import InputError
from gwntf.estimators import Unmixer
from gwntf.plots import require_matplotlib
from gwntf.readers import Spectra, read_spectra
from gwntf.reports import UnmixingPage, unmixing_report

_TOLERANCE = 1e-3  # difference of positions that counts as none, in relation to the smallest distance of neighbours


def run_unmix(options: Any, output: Output) -> None:
    """Read mixtures and references, find the shares, print or write them and, if requested, write a report."""
    inputs = [options.mixtures, options.references]
    target = None if options.output in (None, Path("-")) else options.output
    if options.report is not None:
        require_matplotlib()
    check_output(target, ".csv", inputs=inputs)
    check_output(options.report, ".html", inputs=[*inputs, target])
    if options.reach is not None and options.calibration is None:
        raise InputError("--reach", f"{options.reach:g} without --calibration", "--calibration shift or stretch too")
    mixtures, references, signal = _read(options, output)
    names = list(mixtures.index or (f"mixture {k + 1}" for k in range(len(mixtures.values))))
    unmixer = Unmixer(
        references,
        drift="auto" if options.drift is None else options.drift,
        calibration=options.calibration,
        reach=options.reach,
        signal=signal,
        n_free=options.n_free,
        random_state=0,
    )
    with printed_warnings():
        found = unmixer.fit(mixtures).unmix(mixtures, options.level)
    output.line("drift", f"{unmixer.drift_:.3g} {options.axis or ''}".rstrip(), drift=unmixer.drift_)
    output.record(**result_facts(found, names))
    if target is None:
        print_shares(output, found, names)
    else:
        write_table(target, result_columns(found), names)
        output.written(target)
    if options.report is not None:
        facts = UnmixingPage(
            source=f"{options.mixtures.name}, references in {options.references.name}",
            samples=names,
            axis=options.axis,
            descending=bool(mixtures.columns[0] > mixtures.columns[-1]),
            drift=unmixer.drift_,
            calibration=options.calibration,
        )
        with printed_warnings():
            write_text(options.report, unmixing_report(found, facts))
        output.written(options.report, key="report")


def _read(options: Any, output: Output) -> tuple[Spectra, Spectra, Any]:
    """Return the mixtures and the references at the same positions, and the signals of the references."""
    column = options.signal if isinstance(options.signal, str) else None
    mixtures = _clipped(options.mixtures, read_spectra(options.mixtures, axis=options.axis), "mixture", options)
    table = read_spectra(options.references, axis=options.axis, signal=column)
    references = _clipped(options.references, table, "part", options)
    for label, path, spectra in (
        ("mixtures", options.mixtures, mixtures),
        ("references", options.references, references),
    ):
        output.line(label, f"{path}: {spectra.note}", **{label: {"path": str(path), "note": spectra.note}})
    index = references.index or ()
    twice = next((name for name in index if index.count(name) > 1), None)
    if twice is not None:
        raise InputError(str(options.references), f"two references {twice!r}", "references of different names")
    signal = references.signal if column is not None else options.signal
    if signal is not None and len(signal) != len(references.values):
        raise InputError("--signal", f"{len(signal)} number(s)", f"{len(references.values)}, one for each reference")
    if signal is not None and not min(signal) > 0:
        raise InputError("--signal", f"{min(signal):g}", "positive numbers")
    return mixtures, _aligned(references, mixtures, options), signal


def _clipped(path: Path, spectra: Spectra, kind: str, options: Any) -> Spectra:
    """Return spectra without negative values: raise for them, or with --clip set them to zero."""
    values, below = spectra.values, spectra.values < 0
    names = spectra.index or [f"{kind} {k + 1}" for k in range(len(values))]
    if below.any() and not options.clip:
        row, place = np.unravel_index(values.argmin(), values.shape)
        lowest = f"the lowest {values.min():.3g} in {names[row]} at {spectra.columns[place]:g}"
        given = f"{int(below.sum())} negative values of {values.size}, {lowest}"
        raise InputError(str(path), given, "no negative values: subtract the baseline, or set them to zero with --clip")
    values = np.where(below, 0.0, values)
    empty = np.flatnonzero(~values.any(axis=1))
    if empty.size:
        raise InputError(str(path), f"no positive value in {names[empty[0]]}", "spectra with some signal")
    return dataclasses.replace(spectra, values=values)


def _aligned(references: Spectra, mixtures: Spectra, options: Any) -> Spectra:
    """Return the references in the order of the positions of the mixtures; raise if these differ."""
    own, other = mixtures.columns, references.columns
    values = references.values
    if len(own) > 1 and len(other) > 1 and (own[0] < own[-1]) != (other[0] < other[-1]):
        other, values = other[::-1], values[:, ::-1]
    count = min(len(own), len(other))
    tolerance = _TOLERANCE * float(np.abs(np.diff(own)).min(initial=np.inf)) if len(own) > 1 else 0.0
    wrong = np.flatnonzero(np.abs(own[:count] - other[:count]) > tolerance)
    if len(own) != len(other) or wrong.size:
        first = int(wrong[0]) if wrong.size else count
        here, there = (f"{one[first]:.10g}" if first < len(one) else "missing" for one in (own, other))
        given = f"other positions than {options.mixtures}: number {first + 1} is {there} instead of {here}"
        allowed = f"the same {len(own)} positions in both files: interpolate one of them to those of the other"
        raise InputError(str(options.references), given, allowed)
    return dataclasses.replace(references, values=np.ascontiguousarray(values), columns=own)
