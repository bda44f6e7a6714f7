"""A small synthetic set of spectra that is part of the package; ``docs/example_spectra.py`` makes its files."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gwntf.core import FloatArray

FOLDER = Path(__file__).parent / "files"


@dataclass(frozen=True, eq=False)
class ExampleSpectra:
    """Spectra of mixtures and their references, from `load_example_spectra`.

    Attributes
    ----------
    mixtures : (12, 300) array
        Counts, samples in rows.
    references : (4, 300) array
        Spectra of the pure substances, each of sum one.
    names, samples : tuples of str
        Names of the references and of the mixtures.
    ppm : (300,) array
        Axis of the spectra.
    shares : (12, 4) array
        True share of each reference in each mixture; rows sum to one.
    mixtures_file, references_file, shares_file : Path
        The files that were read: tables with a header, whose column ``name`` identifies the rows.

    Examples
    --------
    >>> from gwntf.datasets import load_example_spectra
    >>> example = load_example_spectra()
    >>> example.mixtures_file.name
    'mixtures.csv'
    """

    mixtures: FloatArray
    references: FloatArray
    names: tuple[str, ...]
    samples: tuple[str, ...]
    ppm: FloatArray
    shares: FloatArray
    mixtures_file: Path
    references_file: Path
    shares_file: Path


def load_example_spectra() -> ExampleSpectra:
    """Load 12 synthetic spectra of mixtures of four substances, with references and true shares.

    Like NMR spectra, they have narrow peaks on an axis in ppm. Every peak of every mixture is displaced by up to 0.09
    ppm, about as much as its width, and the channels are Poisson counts, 20,000 per spectrum.

    Returns
    -------
    ExampleSpectra

    Examples
    --------
    >>> from gwntf.datasets import load_example_spectra
    >>> example = load_example_spectra()
    >>> example.mixtures.shape, example.references.shape
    ((12, 300), (4, 300))
    """
    files = [FOLDER / name for name in ("mixtures.csv", "references.csv", "shares.csv")]
    (samples, header, mixtures), (names, _, references), (_, _, shares) = map(_read, files)
    return ExampleSpectra(mixtures, references, names, samples, np.array(header, dtype=np.float64), shares, *files)


def _read(path: Path) -> tuple[tuple[str, ...], tuple[str, ...], FloatArray]:
    """Return the names of the rows, the names of the columns and the values of a table."""
    with path.open(newline="", encoding="utf-8") as file:
        (_, *header), *rows = csv.reader(file)
    return tuple(row[0] for row in rows), tuple(header), np.array([row[1:] for row in rows], dtype=np.float64)
