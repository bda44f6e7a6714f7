"""
Why transport? Spectra whose peaks drift
========================================

Three substances are mixed, and a spectrometer measures the mixtures. Each substance has two peaks, which drift from one
measurement to the next because of temperature or calibration. How much of each substance is in each mixture?

For least squares and KL, a peak that has moved by more than its width is a different peak. For transport it is the same
mass in a nearby position.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from gwntf import GWNTF, NMF

position = np.arange(120)
PEAKS = (((20, 58), (1.0, 0.6)), ((38, 90), (0.8, 1.0)), ((72, 104), (1.0, 0.5)))


def measure(drift, n_samples=200, seed=0):
    """Return spectra of random mixtures, and the share of each substance in each."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet([0.6] * 3, n_samples)
    spectra = rng.exponential(2e-4, (n_samples, len(position)))  # a little background
    for share, (centres, heights) in zip(shares.T, PEAKS, strict=True):
        moved = np.array(centres) + rng.uniform(-drift, drift, (n_samples, 1))
        peaks = np.exp(-(((position - moved[:, :, None]) / 2) ** 2) / 2) * np.array(heights)[:, None]
        pure = peaks.sum(axis=1)
        spectra += share[:, None] * pure / pure.sum(axis=1, keepdims=True)
    return spectra, shares


still, _ = measure(0)
drifting, truth = measure(8)

# %%
# The cost determines how far mass may move. A drift of a few positions should be cheap compared with creating and
# destroying mass, which costs one; a move from one peak to another should not. The unit of length is therefore 16
# positions, twice the largest drift.

cost = ((position[:, None] - position[None, :]) / 16.0) ** 2
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
    """Return the share of the mixtures that is assigned to the wrong substance, in percent, and the matching."""
    found = model.fit_transform(spectra)
    found /= found.sum(axis=1, keepdims=True)
    apart = np.abs(found[:, :, None] - shares[:, None, :]).sum(axis=(0,)) / 2
    rows, columns = linear_sum_assignment(apart)
    return 100 * apart[rows, columns].sum() / len(spectra), columns


drifts = (0, 2, 4, 6, 8)
errors = {name: [error(model, *measure(drift))[0] for drift in drifts] for name, model in models.items()}

# %%
# Left: mixtures without and with drift. Right: the error of each loss. Without drift all three are accurate, and least
# squares or KL should be used, because they are faster and preserve the shape of the peaks. Once the drift exceeds the
# width of a peak, their components describe positions instead of substances.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
for number, (title, spectra) in enumerate((("no drift", still), ("drift of 8 positions", drifting))):
    left.plot(position, spectra[:12].T + 0.12 * number, color=f"C{number}", linewidth=0.7)
    left.text(119, 0.12 * number + 0.075, title, color=f"C{number}", ha="right")
left.set(xlabel="position", yticks=[], title="twelve of 200 spectra", ylim=(0, 0.25))
for name, values in errors.items():
    right.plot(drifts, values, marker="o", label=name)
right.set(
    xlabel="largest drift (standard deviation of a peak: 2)",
    ylabel="share assigned wrongly, %",
    title="error of the estimated shares",
)
right.legend()
right.grid(alpha=0.3)
plt.show()

# %%
# The spectra of the substances estimated with each loss at the largest drift, in the order of the true ones (dashed,
# without drift). Transport finds one narrow pair of peaks per substance; the other losses blur and mix them.

pure = np.stack([measure(0, seed=1)[0][measure(0, seed=1)[1][:, k].argmax()] for k in range(3)])
figure, axes = plt.subplots(3, 3, figsize=(9.5, 4.2), sharex=True, layout="constrained")
for column, (name, model) in zip(axes.T, models.items(), strict=True):
    _, order = error(model, drifting, truth)
    parts = model.components_[np.argsort(order)]
    for ax, part, true in zip(column, parts, pure, strict=True):
        ax.fill_between(position, part / part.max(), alpha=0.7)
        ax.plot(position, true / true.max(), "k--", linewidth=0.8)
        ax.set_yticks([])
    column[0].set_title(name)
    column[-1].set_xlabel("position")
plt.show()
