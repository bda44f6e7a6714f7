"""Make the example spectra that are part of the package: ``python docs/example_spectra.py``."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gwntf.datasets import make_drifting_spectra
from gwntf.datasets.example import FOLDER
from gwntf.io import atomic_path

SUBSTANCES = ("substance A", "substance B", "substance C", "substance D")


def write_example(folder: Path) -> None:
    """Write mixtures.csv, references.csv and shares.csv."""
    ppm = np.round(0.5 + 0.03 * np.arange(300), 2)
    data = make_drifting_spectra(
        12, 4, 300, n_peaks=3, drift="peaks", amount=0.01, counts=20000, positions=ppm, random_state=7
    )
    samples = [f"mixture {k + 1}" for k in range(12)]
    header = [f"{position:.2f}" for position in ppm]
    _write(folder / "mixtures.csv", header, samples, data.spectra, "{:.0f}")
    _write(folder / "references.csv", header, SUBSTANCES, data.references, "{:.6g}")
    _write(folder / "shares.csv", SUBSTANCES, samples, data.shares, "{:.6f}")


def _write(path: Path, header: Iterable[str], names: Iterable[str], rows: np.ndarray, number: str) -> None:
    """Write a table whose first column, "name", contains the names of the rows."""
    with atomic_path(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", *header])
        writer.writerows([name, *map(number.format, row)] for name, row in zip(names, rows, strict=True))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    write_example(FOLDER)
