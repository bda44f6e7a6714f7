"""
Why transport? Spectra whose peaks drift
========================================

Three substances are mixed, and a spectrometer measures the mixtures. Each substance has two peaks, but from one measurement to the next its peaks drift: the
temperature changes, the instrument is not calibrated. How much of each substance is in each mixture?

To least squares and to KL a peak that has moved by more than its width is another peak. To transport it is the same mass in a nearby place.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from gwntf import GWNTF, NMF

place = np.arange(120)
PEAKS = (((20, 58), (1.0, 0.6)), ((38, 90), (0.8, 1.0)), ((72, 104), (1.0, 0.5)))


def measure(drift, n_samples=200, seed=0):
    """Spectra of random mixtures, and the share of each substance in each."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet([0.6] * 3, n_samples)
    spectra = rng.exponential(2e-4, (n_samples, len(place)))  # a little background
    for share, (centres, heights) in zip(shares.T, PEAKS, strict=True):
        moved = np.array(centres) + rng.uniform(-drift, drift, (n_samples, 1))
        peaks = np.exp(-(((place - moved[:, :, None]) / 2) ** 2) / 2) * np.array(heights)[:, None]
        pure = peaks.sum(axis=1)
        spectra += share[:, None] * pure / pure.sum(axis=1, keepdims=True)
    return spectra, shares


still, _ = measure(0)
drifting, truth = measure(8)

# %%
# The cost says how far mass may move: a drift of a few places should be cheap beside making and destroying mass, which costs one, and a jump from
# one peak to another should not. So the unit of length is 16 places, twice the largest drift.

cost = ((place[:, None] - place[None, :]) / 16.0) ** 2
models = {
    "least squares": NMF(3, sample_norm="l1", max_iter=1000, tol=1e-7, n_init=5, random_state=0),
    "KL": GWNTF(
        3,
        costs=(None, None),
        graph_reg=0,
        sample_norm="l1",
        max_iter=1000,
        tol=1e-7,
        n_init=5,
        random_state=0,
    ),
    "transport": GWNTF(
        3, costs=(None, cost), reg=0.01, graph_reg=0, sample_norm="l1", max_iter=400, tol=0, random_state=0
    ),
}


def error(model, spectra, shares):
    """Share of the mixtures that is put down to the wrong substance, in percent."""
    found = model.fit_transform(spectra) * model.components_.sum(axis=1)
    found /= found.sum(axis=1, keepdims=True)
    apart = np.abs(found[:, :, None] - shares[:, None, :]).sum(axis=(0,)) / 2
    rows, columns = linear_sum_assignment(apart)
    return 100 * apart[rows, columns].sum() / len(spectra), columns


drifts = (0, 2, 4, 6, 8)
errors = {name: [error(model, *measure(drift))[0] for drift in drifts] for name, model in models.items()}

# %%
# On the left, mixtures without and with drift. On the right, what each loss makes of them: without drift all three are right, and least squares or KL are
# then the ones to use, for they are faster and keep the shape of the peaks. As drift grows past the width of a peak, both begin to describe places instead of substances.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
for number, (title, spectra) in enumerate((("no drift", still), ("drift of 8 places", drifting))):
    left.plot(place, spectra[:12].T + 0.12 * number, color=f"C{number}", linewidth=0.7)
    left.text(119, 0.12 * number + 0.075, title, color=f"C{number}", ha="right")
left.set(xlabel="place", yticks=[], title="twelve of 200 spectra", ylim=(0, 0.25))
for name, values in errors.items():
    right.plot(drifts, values, marker="o", label=name)
right.set(
    xlabel="largest drift (a peak is 2 wide)",
    ylabel="wrong share of a mixture, %",
    title="who is to be trusted?",
)
right.legend()
right.grid(alpha=0.3)
plt.show()

# %%
# The substances as each loss found them at the largest drift, in the order of the true ones (dashed, without drift). Transport finds one narrow pair of
# peaks a substance; the others blur and mix.

pure = np.stack([measure(0, seed=1)[0][measure(0, seed=1)[1][:, k].argmax()] for k in range(3)])
figure, axes = plt.subplots(3, 3, figsize=(9.5, 4.2), sharex=True, layout="constrained")
for column, (name, model) in zip(axes.T, models.items(), strict=True):
    _, order = error(model, drifting, truth)
    parts = model.components_[np.argsort(order)]
    for ax, part, true in zip(column, parts, pure, strict=True):
        ax.fill_between(place, part / part.max(), alpha=0.7)
        ax.plot(place, true / true.max(), "k--", linewidth=0.8)
        ax.set_yticks([])
    column[0].set_title(name)
    column[-1].set_xlabel("place")
plt.show()
