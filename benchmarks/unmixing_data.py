"""Mixtures with known parts for the cases of unmixing: gamma spectra, NMR, synthetic spectra."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gwntf.core import FloatArray
from gwntf.datasets import (
    DriftingSpectra,
    GammaSpectra,
    NMRMixture,
    load_gamma_spectra,
    load_nmr_mixtures,
    make_drifting_spectra,
)

GAINS: dict[str, float | tuple[float, float]] = {
    "0.90": 0.90,
    "0.94": 0.94,
    "1.00": 1.00,
    "1.03": 1.03,
    "1.06": 1.06,
    "1.10": 1.10,
    "0.95 to 1.05": (0.95, 1.05),
    "1.05 to 0.95": (1.05, 0.95),
}
"""Gains by name; two numbers are the gain at the first and at the last channel."""

COUNTS = (200, 2_000, 20_000)
ISOTOPES = 4
"""References that are isotopes; the last one is the background."""

_FIRST_CHANNEL = 3.5
_MERGED = 6
"""Measured spectra that are added to obtain more than 20,000 counts."""

_BACKGROUND = "background_20240124"


@dataclass(frozen=True, eq=False)
class GammaCase:
    """Measured spectra of at least one source, with the references and their common axis.

    Attributes
    ----------
    spectra : (n, 256) array
        Counts.
    present : (n, 4) array of bool
        Isotopes of every spectrum.
    references : (5, 256) array
        Of the isotopes and of the background.
    positions : (256,) array
        Logarithm of the channel, so that a gain is a shift.
    """

    spectra: FloatArray
    present: NDArray[np.bool_]
    references: FloatArray
    positions: FloatArray

    @property
    def single(self) -> NDArray[np.bool_]:
        """Spectra of one isotope."""
        found: NDArray[np.bool_] = self.present.sum(axis=1) == 1
        return found


def gamma_case(data: GammaSpectra, counts: int | None = None, step: int = 1, seed: int = 0) -> GammaCase:
    """Return every `step`-th spectrum of sources, thinned to a number of counts; the most need spectra to be added."""
    chosen = data.source != _BACKGROUND
    spectra, present, source = data.spectra[chosen], data.labels[chosen, :ISOTOPES], data.source[chosen]
    if counts == max(COUNTS):
        spectra, present = add_neighbours(spectra, present, source, _MERGED)
    spectra, present = spectra[::step], present[::step]
    if counts is not None:
        spectra = thinned(spectra, counts, np.random.default_rng(seed))
    positions = np.log(np.arange(spectra.shape[1]) + _FIRST_CHANNEL)
    return GammaCase(spectra, present, data.references, positions)


def add_neighbours(
    spectra: FloatArray, present: NDArray[np.bool_], source: NDArray[np.str_], count: int
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Add every `count` spectra of the same measurement and the same isotopes."""
    keys = np.array([f"{name} {''.join(map(str, row.astype(int)))}" for name, row in zip(source, present, strict=True)])
    sums, labels = [], []
    for key in np.unique(keys):
        rows = np.flatnonzero(keys == key)
        for group in np.split(rows, range(count, len(rows), count)):
            if len(group) == count:
                sums.append(spectra[group].sum(axis=0))
                labels.append(present[group[0]])
    return np.array(sums), np.array(labels)


def thinned(spectra: FloatArray, counts: int, rng: np.random.Generator) -> FloatArray:
    """Return spectra of integers with every count kept with the same probability; small spectra as they are."""
    kept = np.minimum(counts / spectra.sum(axis=1, keepdims=True), 1.0)
    return rng.binomial(spectra.astype(np.int64), kept).astype(np.float64)


def with_gain(spectra: FloatArray, gain: float | tuple[float, float]) -> FloatArray:
    """Return spectra with another gain: counts are distributed evenly over the width of their channel."""
    edges = np.arange(spectra.shape[1] + 1.0)
    moved = edges * (np.linspace(*gain, len(edges)) if isinstance(gain, tuple) else gain)
    sums = np.hstack([np.zeros((len(spectra), 1)), np.cumsum(spectra, axis=1)])
    return np.stack([np.diff(np.interp(moved, edges, row)) for row in sums])


@cache
def gamma() -> GammaSpectra:
    """Return the gamma spectra."""
    return load_gamma_spectra()


@cache
def mixtures() -> list[NMRMixture]:
    """Return the NMR mixtures, without repeated positions."""
    found = []
    for case in load_nmr_mixtures():
        ppm, first = np.unique(case.ppm, return_index=True)
        mixture, references = case.mixture[first], case.references[:, first]
        found.append(NMRMixture(case.experiment, ppm, mixture, references, case.names, case.protons, case.truth_molar))
    return found


def synthetic(drift: str, counts: int, amount: float, sets: int = 6, samples: int = 30) -> Iterator[DriftingSpectra]:
    """Generate sets of spectra, each with its own five references, on 256 channels."""
    for seed in range(sets):
        yield make_drifting_spectra(samples, 5, 256, drift=drift, amount=amount, counts=counts, random_state=seed)
