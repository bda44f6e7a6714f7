"""
A custom cost: hours on a clock
===============================

Midnight is next to eleven in the evening, but under ``"grid"`` the day is a line whose ends are far apart. Any square
matrix can be the cost of an axis, so the distances on a clock can be used instead.
"""

import matplotlib.pyplot as plt
import numpy as np

from gwntf import GWNTF

# %%
# Activity of four hundred people over a day. Half are active around midnight, half around noon, each at slightly
# different hours.

rng = np.random.default_rng(0)
hour = np.arange(24)
night = np.arange(400) < 200
middle = np.where(night, 0, 12) + rng.normal(0, 2.0, 400)
away = np.abs(hour - middle[:, None]) % 24
X = np.exp(-((np.minimum(away, 24 - away) / 1.0) ** 2) / 2)

# %%
# On a clock the distance is the shorter way around, at most twelve hours.

straight = np.abs(hour[:, None] - hour[None, :])
around = np.minimum(straight, 24 - straight) / 12
costs = {"grid: a line": "grid", "custom cost: a clock": around}

figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
axes[0].imshow(X[rng.permutation(400)[:60]], cmap="Greys", aspect="auto")
axes[0].set(title="sixty people", xlabel="hour", yticks=[])
for ax, (name, cost) in zip(axes[1:], costs.items(), strict=True):
    model = GWNTF(2, costs=(None, cost), reg=0.02, graph_reg=0, max_iter=300, tol=0, n_init=3, random_state=0).fit(X)
    share = model.embedding_ / model.embedding_.sum(axis=1, keepdims=True)
    of_night = share[:200].mean(axis=0).argmax()
    right = np.mean((share[:, of_night] > 0.5) == night)
    ax.bar(hour - 0.2, model.components_[of_night], 0.4, label="night")
    ax.bar(hour + 0.2, model.components_[1 - of_night], 0.4, label="day")
    ax.set(title=f"{name}\n{100 * right:.0f}% of the people identified", xlabel="hour", xticks=range(0, 24, 6))
axes[1].legend()
plt.show()
