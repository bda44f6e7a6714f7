"""
How much of each substance? NMR mixtures
========================================

Substances were weighed and mixed, and the proton NMR spectrum of the mixture measured. The position of a peak depends
on acidity, concentration and temperature: every peak of the mixture is displaced from its place in the spectrum of the
pure substance, each by another distance, so that no shift of the whole axis corrects it.

The mixtures are measured ones if ``load_nmr_mixtures`` finds its file on this machine, and those of
``load_example_spectra`` otherwise; the text below is about the measured ones.
"""

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import nnls

from gwntf import DataError, Unmixer
from gwntf.datasets import load_example_spectra, load_nmr_mixtures


class Case(NamedTuple):
    """A mixture, its parts, the number of protons of each, and the true shares."""

    title: str
    ppm: np.ndarray
    mixture: np.ndarray
    references: np.ndarray
    names: tuple
    protons: np.ndarray
    truth: np.ndarray


def mixtures():
    """Return the measured mixtures, or three synthetic ones."""
    try:
        measured = load_nmr_mixtures(download=False)
    except DataError:
        made = load_example_spectra()
        return [
            Case(name, made.ppm, made.mixtures[k], made.references, made.names, np.ones(4), made.shares[k])
            for k, name in enumerate(made.samples[:3])
        ]
    cases = []
    for case in measured:
        ppm, first = np.unique(case.ppm, return_index=True)
        title = f"experiment {case.experiment}"
        parts = case.mixture[first], case.references[:, first], case.names, case.protons, case.truth_molar
        cases.append(Case(title, ppm, *parts))
    return cases


# %%
# The area of a spectrum counts protons. ``signal`` divides by the number of protons of each substance, so that shares
# are shares of molecules. Nothing else is set, and the spectra are used as they were measured, without bins.

cases, results = mixtures(), []
for case in cases:
    unmixer = Unmixer(case.references, positions=case.ppm, signal=case.protons).fit()
    results.append(unmixer.unmix(case.mixture[None]))
    squares = nnls(case.references.T, case.mixture / case.mixture.sum())[0] / case.protons
    errors = [np.mean(np.abs(s - case.truth) / case.truth) for s in (results[-1].shares[0], squares / squares.sum())]
    print(
        f"{case.title}: {len(case.ppm):,} places, mean relative error {errors[0]:.3f} (least squares {errors[1]:.3f})"
    )

# %%
# Shares with their intervals, compared with the weighed ones (triangles).

figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
for ax, case, result in zip(axes, cases, results, strict=True):
    places = np.arange(len(case.names))[::-1]
    ax.hlines(places, result.lower[0], result.upper[0], color="#1F5FA8", alpha=0.4, linewidth=6)
    ax.plot(result.shares[0], places, "o", color="#1F5FA8", label="found, and its interval of 90%")
    ax.plot(case.truth, places - 0.25, "^", color="black", label="weighed")
    ax.set_yticks(places, case.names)
    ax.set(title=case.title, xlabel="molar share", xlim=(0, 1))
    ax.grid(axis="x", alpha=0.3)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()

# %%
# A closer look at the first mixture, where its largest peaks are. Above, the references times their shares are beside
# the peaks of the mixture; below, transport has moved them. The plans also say how far each substance has moved on
# average.

case, result = cases[0], results[0]
parts = result.shares[0] * case.protons
parts = (parts / parts.sum())[:, None] * case.references / case.references.sum(axis=1, keepdims=True)
center = case.ppm[result.mixtures[0].argmax()]
shown = np.abs(case.ppm - center) < 0.6
figure, (above, below) = plt.subplots(2, 1, figsize=(9.5, 4.6), sharex=True, sharey=True, layout="constrained")
for ax, drawn, title in (
    (above, parts, "references times their shares"),
    (below, result.moved_parts[0], "the same, moved"),
):
    ax.stackplot(case.ppm[shown], drawn[:, shown], labels=case.names, alpha=0.8)
    ax.plot(case.ppm[shown], result.mixtures[0][shown], color="black", linewidth=0.8, label="mixture")
    ax.set_yticks([])
    ax.set_title(title, loc="left")
above.legend(loc="upper left")
below.set(xlabel="ppm", xlim=(center + 0.6, center - 0.6))
plt.show()
for name, distance in zip(case.names, result.displacement[0], strict=True):
    print(f"{name:20s} moved by {distance:+.3f} ppm")
