"""Synthetic spectra of known shares of references whose peaks drift.

Every reference is a sum of Gaussian peaks. A channel contains the integral of the density from the midpoint to its left
neighbour to the midpoint to its right one, the end channels also what is beyond them: a drift moves mass and neither
creates nor destroys any.
"""

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.utils import check_random_state

from gwntf.core import FloatArray, InputError

DRIFTS = ("none", "gain", "shift", "peaks", "smooth")

MAX_AMOUNT = 0.15
"""Largest displacement as a fraction of the axis: peaks stay inside, and smooth displacements keep their order."""

_CENTERS = (0.2, 0.8)  # range of the peaks in the references, as fractions of the axis
_WIDTHS = (0.004, 0.01)  # standard deviations of the peaks, as fractions of the axis
_WAVES = 3  # cosines of a smooth displacement
_SOLVE_STEPS = 80  # each halves the error of a position, at least


@dataclass(frozen=True, eq=False)
class DriftingSpectra:
    """Spectra of known shares whose peaks drift, from `make_drifting_spectra`.

    Attributes
    ----------
    spectra : (n_samples, n_channels) array
        Counts, or `expected` if there is no noise.
    references : (n_references, n_channels) array
        Spectra of the references without drift, each of sum one.
    names : tuple of str
        Names of the references.
    positions : (n_channels,) array
        Positions of the channels on the axis.
    shares : (n_samples, n_references) array
        Share of each reference in the expected mass of a spectrum; with the background they sum to one.
    displacement : (n_samples, n_channels) array, or None
        How far a spectrum has moved what is at each position of the references. None for ``drift="peaks"``, where
        peaks at the same position move differently.
    peak_displacement : (n_samples, n_references, n_peaks) array
        How far the centre of each peak has moved.
    background : (n_samples, n_channels) array
        Expected part of a spectrum that is not among the references, in the unit of the spectra.
    expected : (n_samples, n_channels) array
        The spectra without noise.
    peak_centers, peak_widths, peak_areas : (n_references, n_peaks) arrays
        Centre and standard deviation of each peak of the references on the axis, and its share of the reference.

    Examples
    --------
    >>> from gwntf.datasets import make_drifting_spectra
    >>> data = make_drifting_spectra(10, 3, drift="shift", amount=0.02, counts=None, random_state=0)
    >>> centroid = data.expected @ data.positions                     # of spectra of sum one
    >>> moved = centroid - data.shares @ data.references @ data.positions
    >>> bool(abs(moved - data.displacement[:, 0]).max() < 1e-4)
    True
    """

    spectra: FloatArray
    references: FloatArray
    names: tuple[str, ...]
    positions: FloatArray
    shares: FloatArray
    displacement: FloatArray | None
    peak_displacement: FloatArray
    background: FloatArray
    expected: FloatArray
    peak_centers: FloatArray
    peak_widths: FloatArray
    peak_areas: FloatArray


def make_drifting_spectra(
    n_samples: int = 100,
    n_references: int = 4,
    n_channels: int = 256,
    *,
    n_peaks: int = 4,
    drift: str = "gain",
    amount: float = 0.05,
    counts: float | None = 5000,
    background: float = 0.0,
    concentration: float = 1.0,
    positions: ArrayLike | None = None,
    random_state: Any = None,
) -> DriftingSpectra:
    """Generate spectra of known shares of references whose peaks drift from sample to sample.

    A spectrum is a Poisson sample of ``counts * (sum of share * moved reference + background)``. The same
    `random_state` gives the same references, shares and random displacements, up to their size, for every `amount`,
    `counts` and `background`.

    Parameters
    ----------
    n_samples, n_references, n_channels : int
        Sizes.
    n_peaks : int
        Number of Gaussian peaks of every reference.
    drift : {"none", "gain", "shift", "peaks", "smooth"}
        Displacement of a spectrum: none; a stretch about the first position; a shift; every peak of every reference by
        itself; or smoothly varying along the axis, a sum of a constant and two cosines.
    amount : float from 0 to 0.15
        Largest displacement as a fraction of the length of the axis. Gains and shifts are uniform from minus to plus
        this amount, and so is the displacement of each peak for ``drift="peaks"``.
    counts : float or None
        Expected number of counts of a spectrum. None: no noise, and spectra of sum one.
    background : float, at least 0 and below 1
        Share of a broad part that is not among the references and does not drift.
    concentration : float
        Parameter of the symmetric Dirichlet distribution of the shares: 1 is uniform, less is closer to pure samples.
    positions : (n_channels,) array, optional
        Ascending positions of the channels, by default 0, 1, 2, ...
    random_state : int, RandomState or None
        Seed or generator of the random numbers.

    Returns
    -------
    DriftingSpectra

    Examples
    --------
    >>> from gwntf.datasets import make_drifting_spectra
    >>> data = make_drifting_spectra(20, 3, 128, drift="peaks", amount=0.02, random_state=0)
    >>> data.spectra.shape, data.references.shape, data.shares.shape
    ((20, 128), (3, 128), (20, 3))
    """
    sizes = {"n_samples": n_samples, "n_references": n_references, "n_channels": n_channels, "n_peaks": n_peaks}
    _check(sizes, drift, amount, counts, background, concentration)
    axis = _axis(positions, n_channels)
    rng = check_random_state(random_state)
    peaks_rng, shares_rng, drift_rng, noise_rng = (np.random.RandomState(rng.randint(2**31 - 1)) for _ in range(4))

    origin, length = axis[0], axis[-1] - axis[0]
    centers = origin + length * peaks_rng.uniform(*_CENTERS, (n_references, n_peaks))
    widths = length * peaks_rng.uniform(*_WIDTHS, (n_references, n_peaks))
    areas = peaks_rng.dirichlet(np.full(n_peaks, 2.0), n_references)
    shares = (1 - background) * shares_rng.dirichlet(np.full(n_references, concentration), n_samples)

    edges: FloatArray = (axis[1:] + axis[:-1]) / 2
    still = np.zeros((1, n_references, n_peaks))
    references = np.stack(
        [_moved(edges[None], centers, widths, areas, still, np.eye(n_references)[[k]])[0] for k in range(n_references)]
    )
    moves: FloatArray
    displacement: FloatArray | None
    sources: FloatArray = edges[None]
    if drift == "peaks":
        moves = amount * length * drift_rng.uniform(-1, 1, (n_samples, n_references, n_peaks))
        displacement = None
    else:
        field = _Field(drift, amount, origin, length, drift_rng, n_samples)
        displacement, sources = field.at(axis[None]), field.source(edges[None])
        moves = field.at(centers.reshape(1, -1)).reshape(n_samples, n_references, n_peaks)
    if drift == "none":
        model = shares @ references
    else:
        by_peak = moves if drift == "peaks" else still
        model = _moved(sources, centers, widths, areas, by_peak, shares)
    unknown = np.tile(background * _broad(edges, origin, length), (n_samples, 1))
    scale = 1.0 if counts is None else float(counts)
    expected = scale * (model + unknown)
    spectra = expected.copy() if counts is None else noise_rng.poisson(expected).astype(np.float64)
    names = tuple(f"reference {k}" for k in range(n_references))
    return DriftingSpectra(
        spectra, references, names, axis, shares, displacement, moves, scale * unknown, expected, centers, widths, areas
    )


class _Field:
    """Displacement of every position of the references, for every sample."""

    def __init__(
        self, drift: str, amount: float, origin: float, length: float, rng: np.random.RandomState, samples: int
    ) -> None:
        self._drift, self._origin, self._length = drift, origin, length
        weights = rng.uniform(-1, 1, (samples, _WAVES))
        self._weights = weights * (0.0 if drift == "none" else amount * length)

    def at(self, positions: FloatArray) -> FloatArray:
        """Return the displacement at positions of the references; rows are samples."""
        fraction = (positions - self._origin) / self._length
        if self._drift == "smooth":
            waves = [weight[:, None] * np.cos(np.pi * k * fraction) for k, weight in enumerate(self._weights.T)]
            smooth: FloatArray = np.sum(waves, axis=0) / _WAVES
            return smooth
        return np.asarray(self._weights[:, :1] * (fraction if self._drift == "gain" else np.ones_like(fraction)))

    def source(self, positions: FloatArray) -> FloatArray:
        """Return the positions of the references that are moved to these positions.

        The displacement changes by less than half of the distance, so that the iteration converges.
        """
        found: FloatArray = positions + np.zeros((len(self._weights), 1))
        for _ in range(_SOLVE_STEPS):
            found = positions - self.at(found)
        return found


def _moved(
    sources: FloatArray,
    centers: FloatArray,
    widths: FloatArray,
    areas: FloatArray,
    moves: FloatArray,
    shares: FloatArray,
) -> FloatArray:
    """Return mixtures whose channels end where these positions of the references have moved to."""
    cumulative = np.zeros((max(len(sources), len(shares)), sources.shape[1]))
    for k, j in np.ndindex(centers.shape):
        standard = (sources - centers[k, j] - moves[:, k, j, None]) / widths[k, j]
        cumulative = cumulative + (shares[:, k] * areas[k, j])[:, None] * ndtr(standard)
    total = shares.sum(axis=1)[:, None]
    return np.maximum(np.diff(np.hstack([np.zeros_like(total), cumulative, total])), 0.0)


def _broad(edges: FloatArray, origin: float, length: float) -> FloatArray:
    """Return a broad spectrum of sum one: half exponentially decreasing, half a wide hump in the middle."""
    fraction = (edges - origin) / length
    decreasing = -np.expm1(-np.clip(fraction, 0, None) / 0.3)
    cumulative = (decreasing + ndtr((fraction - 0.5) / 0.15)) / 2
    return np.diff(np.concatenate([[0.0], cumulative, [1.0]]))


def _axis(positions: ArrayLike | None, n_channels: int) -> FloatArray:
    if positions is None:
        return np.arange(float(n_channels))
    axis = np.asarray(positions, dtype=np.float64)
    if axis.shape != (n_channels,):
        raise InputError(
            "positions", f"an array of shape {axis.shape}", f"one position for each of {n_channels} channels"
        )
    if not (np.isfinite(axis).all() and (np.diff(axis) > 0).all()):
        raise InputError("positions", "positions that are not ascending and finite", "ascending, finite positions")
    return axis


def _check(
    sizes: dict[str, Any], drift: str, amount: float, counts: float | None, background: float, concentration: float
) -> None:
    for name, size in sizes.items():
        least = 2 if name == "n_channels" else 1
        if not isinstance(size, numbers.Integral) or size < least:
            raise InputError(name, repr(size), f"an integer of at least {least}")
    if drift not in DRIFTS:
        raise InputError("drift", repr(drift), f"one of {', '.join(map(repr, DRIFTS))}")
    if not 0 <= amount <= MAX_AMOUNT:
        raise InputError("amount", repr(amount), f"a number from 0 to {MAX_AMOUNT}")
    if counts is not None and not 0 < counts < np.inf:
        raise InputError("counts", repr(counts), "a positive number, or None")
    if not 0 <= background < 1:
        raise InputError("background", repr(background), "a number of at least 0 and below 1")
    if not 0 < concentration < np.inf:
        raise InputError("concentration", repr(concentration), "a positive number")
