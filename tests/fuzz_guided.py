"""Damaged files guided by coverage: `python -m tests.fuzz_guided csv -max_total_time=600`, with atheris installed.

The first argument names a target of `mutations.TARGETS`; all others are libFuzzer's. It stops at the first defect.
A crash of a library ends this process: `tests.fuzz` continues after crashes and counts them.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["gwntf.readers", "gwntf.io", "numpy.lib", "PIL", "zarr", "zipfile", "csv"]):
    import zipfile  # noqa: F401

    from tests.mutations import TARGETS, Seed


def main() -> None:
    """Read the files of one target with the changes that libFuzzer makes."""
    name = sys.argv.pop(1)
    folder = Path(tempfile.mkdtemp(prefix="gwntf-fuzz-"))
    seed = Seed.written(TARGETS[name], folder)
    corpus = folder / "corpus"
    corpus.mkdir()
    for place, (_, whole) in enumerate(seed.files):
        (corpus / str(place)).write_bytes(bytes([place]) + whole)
    warnings.simplefilter("ignore")

    def once(data: bytes) -> None:
        file, whole = seed.files[(data[0] if data else 0) % len(seed.files)]
        file.write_bytes(seed.target.repair(data[1:]))
        seed.target.read(seed.path)
        file.write_bytes(whole)

    atheris.Setup([*sys.argv, str(corpus)], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
