"""The result of unmixing some samples."""

from __future__ import annotations

from dataclasses import dataclass

from gwntf.core import FloatArray


@dataclass(frozen=True, eq=False)
class Unmixing:
    """What `Unmixer.unmix` found for some samples.

    Attributes
    ----------
    names : list of str
        Names of the parts.
    positions : (I,) array
        Positions along the axis, increasing.
    shares : (n, R) array
        Share of each part in each sample; rows sum to one.
    lower, upper : (n, R) arrays
        Ends of the intervals of the shares.
    level : float
        Confidence level of the intervals.
    unexplained : (n,) array
        Fraction of the sum of each sample that no part explains: its mass would have to move farther than five drifts.
    goodness : (n,) array
        1 - |missing|^2 / |mixture|^2 of each sample, the explained fraction of the sum of squares.
    displacement : (n, R) array
        Mean distance by which each part has moved in each sample, in units of the axis, by calibration and transport.
    calibration : (n,) array
        Shift (in units of the axis) or stretch (as a fraction) of the whole sample; zero without calibration.
    mixtures : (n, I) array
        The samples, divided by their sums.
    model : (n, I) array
        The sum of the parts with these shares, where they are in the references.
    moved_parts : (n, R, I) array
        Every part with its share, where it is in the sample.
    missing : (n, I) array
        What no part explains; with the sum of the moved parts it is the mixture.
    gap : (n,) array
        Bound of the relative distance of the objective from its minimum.

    Examples
    --------
    >>> from gwntf import Unmixer
    >>> from gwntf.datasets import load_example_spectra
    >>> example = load_example_spectra()
    >>> found = Unmixer(example.references, positions=example.ppm).fit().unmix(example.mixtures)
    >>> bool(abs(found.moved_parts.sum(axis=1) + found.missing - found.mixtures).max() < 1e-12)
    True
    """

    names: list[str]
    positions: FloatArray
    shares: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float
    unexplained: FloatArray
    goodness: FloatArray
    displacement: FloatArray
    calibration: FloatArray
    mixtures: FloatArray
    model: FloatArray
    moved_parts: FloatArray
    missing: FloatArray
    gap: FloatArray
