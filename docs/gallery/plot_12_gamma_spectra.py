"""
Gamma spectra of a detector whose gain drifts
=============================================

The gain of a scintillation detector changes with temperature and voltage, and with it the channel of every line. Which
isotope was in front of the detector, and what is its gain now?

The spectra are measured ones with four isotopes if ``load_gamma_spectra`` finds its file on this machine, and
synthetic ones otherwise; the text below is about the measured ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import nnls

from gwntf import DataError, Unmixer
from gwntf.datasets import load_gamma_spectra, make_drifting_spectra


def measurements():
    """Return references, their names, spectra of one isotope each, and the index of the isotope."""
    try:
        data = load_gamma_spectra(download=False)
    except DataError:
        made = make_drifting_spectra(120, 4, drift="none", counts=4000, concentration=0.02, random_state=0)
        return made.references, made.names, made.spectra, made.shares.argmax(axis=1)
    isotopes = data.labels[:, :4]
    chosen = np.flatnonzero(isotopes.sum(axis=1) == 1)[::16]
    return data.references, data.names, data.spectra[chosen], isotopes[chosen].argmax(axis=1)


def with_gain(spectra, gain):
    """Return what a detector with another gain measures: the counts of a channel, spread evenly over its width."""
    edges = np.arange(spectra.shape[1] + 1)
    sums = np.pad(np.cumsum(spectra, axis=1), ((0, 0), (1, 0)))
    return np.stack([np.diff(np.interp(edges / gain, edges, row)) for row in sums])


references, names, spectra, truth = measurements()
print(f"{len(spectra)} spectra of {references.shape[1]} channels; parts: {', '.join(names)}")

# %%
# A gain multiplies the energy, so it is a shift of the logarithm of the energy. ``calibration="shift"`` fits one shift
# of the whole axis first, and transport explains what this leaves, because no detector is exactly linear. ``reach`` is
# the largest shift that is tried, here a gain between 0.86 and 1.16. Everything else is chosen automatically.

energy = np.log(np.arange(references.shape[1]) + 3.5)
unmixer = Unmixer(references, positions=energy, calibration="shift", reach=0.15).fit()
plain = Unmixer(references, positions=energy).fit()


def least_squares(rows):
    """Return nonnegative weights."""
    return np.array([nnls(references.T, row / row.sum())[0] for row in rows])


gains = np.array([0.90, 0.94, 0.97, 1.00, 1.03, 1.06, 1.10])
isotopes = slice(0, truth.max() + 1)
right, shift = {}, []
for gain in gains:
    drifted = with_gain(spectra, gain)
    found = unmixer.unmix(drifted)
    shift.append(found.calibration)
    weights = {
        "transport and a shift of the axis": found.shares,
        "transport": plain.transform(drifted),
        "nonnegative least squares": least_squares(drifted),
    }
    for name, rows in weights.items():
        right.setdefault(name, []).append(100 * np.mean(rows[:, isotopes].argmax(axis=1) == truth))

# %%
# Left: how often the largest share is that of the isotope that was there. Least squares takes the lines of one isotope
# for those of another once they have moved by their width. Right: the gain that is found, without a calibration source.
# A shift is only fitted where it explains a spectrum much better; smaller ones are left to transport. The references
# were simulated, and their gain differs from that of the detector by one to two percent.

figure, (left, middle) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
for (name, values), color in zip(right.items(), ("#1F5FA8", "#7FB2E5", "#B0B0B0"), strict=True):
    left.plot(gains, values, marker="o", color=color, label=name)
left.set(xlabel="gain of the detector", ylabel="right isotope, %", ylim=(0, 130), yticks=range(0, 101, 20))
left.legend(loc="upper center", ncols=1, fontsize=8)
left.grid(alpha=0.3)
estimates = np.exp(np.array(shift))
middle.violinplot(list(estimates), positions=gains, widths=0.02, showmedians=True, showextrema=False)
middle.plot(gains, gains, "k--", linewidth=0.8, label="true gain")
middle.set(xlabel="gain of the detector", ylabel="gain found, of every spectrum")
middle.legend()
middle.grid(alpha=0.3)
plt.show()

# %%
# A spectrum of the third part at a gain of 1.1: above, the references with the shares that were found, where they
# belong; below, the same moved to where the spectrum has them. What is left white below the line is not explained.

pick = int(np.flatnonzero(truth == 2)[0])
result = unmixer.unmix(with_gain(spectra[[pick]], 1.1))
figure, (above, below) = plt.subplots(2, 1, figsize=(9.5, 4.6), sharex=True, sharey=True, layout="constrained")
panels = (
    (above, result.shares[0][:, None] * references, "references times their shares"),
    (below, result.moved_parts[0], "the same, moved"),
)
colors = [f"C{k}" for k in range(len(references))]
for ax, parts, title in panels:
    ax.stackplot(energy, parts, colors=colors, labels=names, alpha=0.8)
    ax.plot(energy, result.mixtures[0], color="black", linewidth=0.8, label="spectrum")
    ax.set_yticks([])
    ax.set_title(title, loc="left")
channels = np.array([0, 5, 10, 20, 40, 80, 160, 250])
below.set_xticks(np.log(channels + 3.5), channels)
below.set(xlabel="channel", xlim=(energy[0], energy[-1]))
above.legend(ncols=3)
plt.show()
for name, share, low, high in zip(names, result.shares[0], result.lower[0], result.upper[0], strict=True):
    print(f"{name:12s} {share:.2f} ({low:.2f} to {high:.2f})")
print(f"not explained: {result.unexplained[0]:.3f}")
