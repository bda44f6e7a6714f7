"""Run all cases, or those named: a name, or the beginning of several names before a hyphen."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks import (
    arrival_balance,
    arrival_dense,
    arrival_new_samples,
    arrival_peers,
    arrival_transport,
    chunked,
    cluster,
    compiler,
    fits,
    gpu,
    import_time,
    long_modes,
    memory,
    scores,
    short_modes,
    sparse_counts,
    unmixing_accuracy,
    unmixing_speed,
)
from benchmarks.harness import save
from benchmarks.report import write_report

CASES = {
    case.__name__.replace("_", "-"): case
    for module in (
        arrival_transport,
        arrival_new_samples,
        arrival_peers,
        arrival_balance,
        arrival_dense,
        short_modes,
        compiler,
        long_modes,
        scores,
        fits,
        memory,
        import_time,
        sparse_counts,
        chunked,
        cluster,
        unmixing_accuracy,
        unmixing_speed,
    )
    for case in module.CASES
}


def chosen(given: Sequence[str]) -> list[str]:
    """Return the names of the cases that are meant."""
    found: list[str] = []
    for name in given:
        meant = [case for case in CASES if case == name or case.startswith(f"{name}-")]
        if not meant:
            raise SystemExit(f"no case {name!r}; there are {', '.join(CASES)}")
        found += meant
    return found


def main() -> None:
    """Run, save, report."""
    for name in chosen(sys.argv[1:]) or list(CASES):
        sys.stderr.write(f"{name}\n")
        outcome = CASES[name]()
        save(name, outcome)
        for claim in outcome.claims:
            target = "" if claim.target is None else f"  (target {claim.target:g}, met: {claim.met})"
            more = "over " if claim.lower_bound else ""
            sys.stderr.write(f"  {claim.what}: {more}{claim.value:.3g}{target}\n")
    write_report([*CASES, *(case.__name__.replace("_", "-") for case in gpu.CASES)])


main()
