"""Run all cases, or those named."""

from __future__ import annotations

import sys

from benchmarks import (
    chunked,
    cluster,
    compiler,
    fits,
    gpu,
    import_time,
    long_modes,
    memory,
    peers,
    scores,
    short_modes,
    sparse_counts,
)
from benchmarks.harness import save
from benchmarks.report import write_report

CASES = {
    case.__name__.replace("_", "-"): case
    for module in (
        short_modes,
        compiler,
        long_modes,
        scores,
        fits,
        peers,
        memory,
        import_time,
        sparse_counts,
        chunked,
        cluster,
    )
    for case in module.CASES
}


def main() -> None:
    """Run, save, report."""
    names = sys.argv[1:] or list(CASES)
    for name in names:
        sys.stderr.write(f"{name}\n")
        outcome = CASES[name]()
        save(name, outcome)
        for claim in outcome.claims:
            target = "" if claim.target is None else f"  (target {claim.target:g}, met: {claim.met})"
            sys.stderr.write(f"  {claim.what}: {claim.value:.3g}{target}\n")
    write_report([*CASES, *(case.__name__.replace("_", "-") for case in gpu.CASES)])


main()
